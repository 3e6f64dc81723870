#include "system/observe/messages/message_times.h"

#include <algorithm>

#include "ub_fabric/sub_plane.h"

namespace cm384::observe {

using supernode::LinkName;
using Cause = MessageCause;

struct MessageTimes::Wire {
  Cause cause{};
  bool up = false, down = false;
  // In the sub-plane's table, as it is when a packet passes.
  const ub::LinkTiming* timing = nullptr;
  Time pipeline;       // of the chip at its end, for what goes on to another chip
  Time pipeline_down;  // for what goes on to an endpoint
  Time free;           // once its last packet has left
  struct Gap {
    Time begin, end;
    std::int64_t before_ps = 0;  // of all earlier ones
  };
  std::vector<Gap> gaps;  // between packets, longer than a flit's border

  Time latency() const { return timing->latency; }
  double flit_ps() const {
    return static_cast<double>(timing->flit.numerator()) / static_cast<double>(timing->flit.denominator());
  }
  // A packet leaves.
  void occupy(Time start, Time tail) {
    if (static_cast<double>((start - free).ps) > flit_ps() + 1) {
      if (gaps.size() == kMostGaps) gaps.erase(gaps.begin(), gaps.begin() + kMostGaps / 2);
      gaps.push_back({free, start, total()});
    }
    free = tail;
  }
  // Of gaps since then.
  std::int64_t idle_since(Time from) const {
    // Mostly among the last ones.
    std::size_t back = 1;
    while (back < gaps.size() && gaps[gaps.size() - back].end > from) back *= 2;
    const auto begin = gaps.end() - static_cast<std::ptrdiff_t>(std::min(back, gaps.size()));
    const auto first = std::ranges::upper_bound(begin, gaps.end(), from, {}, &Gap::end);
    if (first == gaps.end()) return 0;
    return total() - first->before_ps - std::max<std::int64_t>(0, (from - first->begin).ps);
  }
  std::int64_t total() const {
    return gaps.empty() ? 0 : gaps.back().before_ps + (gaps.back().end - gaps.back().begin).ps;
  }
  static constexpr std::size_t kMostGaps = 1u << 12;
};

std::string_view name_of(MessageCause cause) {
  constexpr std::array<std::string_view, kMessageCauses> kNames{
      "source_queue", "issue", "uplink", "trunk", "downlink", "credits", "target", "answer", "other"};
  return kNames.at(static_cast<std::size_t>(cause));
}

MessageTimes::MessageTimes(supernode::Supernode& machine) : machine_(machine), pages_(kPages), answered_(1) {
  machine.trace_links();
  machine.visit_links([this](const LinkName& link) { add_wire(link); });
  if (machine.thread_choice().threads() > 1) answered_.resize(wires_.size());
  machine.probes().link_packet.attach(this, [](void* self, const supernode::LinkPacket& packet) {
    static_cast<MessageTimes*>(self)->sent(packet);
  });
}

MessageTimes::~MessageTimes() {
  machine_.probes().link_packet.detach(this);
}

std::size_t MessageTimes::place_of(const LinkName& name) const {
  if (name.number >= 0) return static_cast<std::size_t>(name.number);
  return machine_.plane(name.plane).network().links() + static_cast<std::size_t>(name.endpoint);
}

MessageTimes::Flight& MessageTimes::flight(ub::PacketIndex index) {
  std::atomic<Flight*>& page = pages_[index >> kPageShift];
  Flight* at = page.load(std::memory_order_acquire);
  if (at == nullptr) {
    const std::lock_guard lock(making_);
    at = page.load(std::memory_order_relaxed);
    if (at == nullptr) {
      made_.push_back(std::make_unique<Flight[]>(std::size_t{1} << kPageShift));
      at = made_.back().get();
      page.store(at, std::memory_order_release);
    }
  }
  return at[index & ((1u << kPageShift) - 1)];
}

void MessageTimes::add_wire(const LinkName& name) {
  const auto in_machine = static_cast<std::size_t>(name.plane);
  if (in_machine >= wires_.size()) wires_.resize(in_machine + 1);
  std::vector<std::unique_ptr<Wire>>& of_plane = wires_[in_machine];
  const std::size_t place = place_of(name);
  if (place >= of_plane.size()) of_plane.resize(place + 1);
  of_plane[place] = std::make_unique<Wire>();
  Wire& w = *of_plane[place];
  const ub::SubPlane& plane = machine_.plane(name.plane);
  const ub::Network& network = plane.network();
  w.up = name.kind == LinkName::Kind::from_endpoint;
  w.down = name.kind == LinkName::Kind::to_endpoint;
  w.cause = w.up ? Cause::uplink : w.down ? Cause::downlink : Cause::trunk;
  const auto endpoint = static_cast<ub::Endpoint>(name.endpoint);
  unsigned chip = ub::Network::kNoLink;
  if (w.up) {
    w.timing = &plane.timings().of_port(endpoint);
    chip = network.chip_of(endpoint);
  } else {
    const auto number = static_cast<unsigned>(name.number);
    w.timing = &plane.timings().of_link(number);
    if (!w.down) chip = network.link(network.link(number).peer).chip;
  }
  if (chip != ub::Network::kNoLink) {
    w.pipeline = w.pipeline_down = plane.timings().of_chip(chip).pipeline;
    if (!w.up && network.layout().chips[chip].of_die) w.pipeline_down = Time{};
  }
}

void MessageTimes::sent(const supernode::LinkPacket& packet) {
  const ub::PacketIndex index = packet.hop.packet();
  const ub::Packet& p = machine_.packets()[index];
  Flight& f = flight(index);
  const auto plane = static_cast<std::size_t>(packet.link.plane);
  Wire& w = *wires_[plane][place_of(packet.link)];
  const bool response = ub::is_response(p.kind);
  // When its head could have left, had the link been its own.
  Time head;
  if (w.up && !response) {
    f = Flight{};
    f.port = f.reached = head = p.sent;
  } else if (w.up) {
    f.parts[Cause::target] += (packet.start - f.reached).ps;
    f.reached = head = packet.start;
  } else {
    const Wire& before = *f.last;
    const Time pipeline = w.down ? before.pipeline_down : before.pipeline;
    const bool store = machine_.parameters().ub.switch_chip.forwarding == "packet-store";
    head = (store ? f.tail : f.start) + before.latency() + pipeline;
    // A faster link is not to run out of flits that come by a slower one.
    const Time fed{(f.tail + before.latency() + pipeline).ps -
                   static_cast<std::int64_t>(packet.hop.flits() * w.flit_ps())};
    head = std::clamp(std::max(head, fed), f.reached, std::max(f.reached, packet.start));
    f.parts[before.cause] += (head - f.reached).ps;
    f.reached = head;
  }
  // Then it waited for the wire as long as that was taken, and for credits while it was not.
  w.occupy(packet.start, packet.tail);
  const std::int64_t idle = w.idle_since(head);
  f.parts[w.cause] += (packet.start - f.reached).ps - idle;
  f.parts[Cause::credits] += idle;
  f.reached = packet.start;
  f.start = packet.start;
  f.tail = packet.tail;
  f.last = &w;
  if (!response) ++f.parts.hops;
  if (!w.down) return;
  f.parts[w.cause] += (packet.tail + w.latency() - f.reached).ps;
  f.reached = packet.tail + w.latency();
  if (!response) return;
  Answered& answered = answered_[answered_.size() == 1 ? 0 : plane][p.transaction];
  const Answered now{f.port, f.reached, packet.link.plane, f.parts};
  if (answered.comes_before(now)) answered = now;
}

MessageParts MessageTimes::extract(sim::TransactionId transaction, Time ready, Time start, Time end) {
  MessageParts parts;
  Answered last;
  for (AnsweredRequests& answered : answered_) {
    const auto at = answered.find(transaction);
    if (at == answered.end()) continue;
    if (last.comes_before(at->second)) last = at->second;
    answered.erase(at);
  }
  if (last.plane >= 0) {
    parts = last.parts;
    parts[Cause::issue] = (last.port - start).ps;
    parts[Cause::answer] = (end - last.reached).ps;
  } else {
    parts[Cause::other] = (end - start).ps;
  }
  parts[Cause::source_queue] = (start - ready).ps;
  return parts;
}

}  // namespace cm384::observe
