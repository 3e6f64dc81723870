// What a sub-plane does where parts of it go out of order while it runs, and where lanes of links fail.
#include <algorithm>

#include "base/text/error.h"
#include "ub_fabric/sub_plane.h"

namespace cm384::ub {
namespace {

// By chip and destination.
std::vector<bool> passed_chips(const Network& network) {
  std::vector<bool> passed(std::size_t{network.chips()} * network.chips());
  std::vector<unsigned> open;
  for (unsigned destination = 0; destination < network.chips(); ++destination) {
    if (!network.has_endpoints(destination)) continue;
    for (unsigned chip = 0; chip < network.chips(); ++chip) {
      if (network.has_endpoints(chip)) open.push_back(chip);
    }
    while (!open.empty()) {
      const unsigned chip = open.back();
      open.pop_back();
      const std::size_t at = std::size_t{chip} * network.chips() + destination;
      if (passed[at] || chip == destination) continue;
      passed[at] = true;
      for (const std::uint16_t port : network.ways(chip, destination))
        open.push_back(network.link(network.link(network.first_link(chip) + port).peer).chip);
    }
  }
  return passed;
}

}  // namespace

Breaks& SubPlane::breaks() {
  if (std::ranges::any_of(foreign_, [](const SwitchChip* chip) { return chip != nullptr; }))
    throw InputError("parts that go out of order at a time: not where a switch chip is another model");
  if (uneven_)
    throw InputError(
        "parts that go out of order at a time: not where links or chips have rates or latencies of their "
        "own");
  if (breaks_ == nullptr) {
    breaks_ = std::make_unique<Breaks>();
    breaks_->before = network_;
    breaks_->link_down.assign(network_->links(), Time::never());
    breaks_->chip_down.assign(network_->chips(), Time::never());
  }
  return *breaks_;
}

void SubPlane::change_at(const NetworkChange& change) {
  Breaks& b = breaks();
  // What is under way when they break would count on with classes of another table.
  if (network_->layout().count_hops && std::max(network_->classes(), change.network->classes()) > 1)
    throw InputError("parts that go out of order at a time: not where lane classes count a way's links");
  allow_for(*change.network);
  const Network& known = b.changes.empty() ? *network_ : *b.changes.back().network;
  for (const unsigned chip : change.network->outage().chips) {
    if (known.in_order(chip)) b.chip_down[chip] = std::min(b.chip_down[chip], change.at);
  }
  for (unsigned link = 0; link < network_->links(); ++link) {
    if (known.link_in_order(link) && !change.network->link_in_order(link))
      b.link_down[link] = std::min(b.link_down[link], change.at);
  }
  queue_.push(change.at, 0, kChange, b.changes.size());
  b.changes.push_back(change);
}

// Sockets' ports are the last of a way: nothing comes after them.
void SubPlane::compare_rate(unsigned link) {
  const Clock& own = links_.clock(link);
  slower_[link] = static_cast<std::uint8_t>((slower(own, timings_.die_flit()) ? kThanDies : 0) |
                                            (slower(own, timings_.trunk_flit()) ? kThanTrunks : 0));
  any_slower_ = any_slower_ || slower_[link] != 0 || uneven_;
}

void SubPlane::narrow(unsigned link, double width) {
  const auto slow_down = [&](unsigned n) {
    timings_.narrow_link(n, width);
    links_.set_clock(n, timings_.of_link(n).flit, queue_.now());
    if (network_->link(n).peer != Network::kNoLink) compare_rate(n);
  };
  slow_down(link);
  if (network_->link(link).peer != Network::kNoLink) slow_down(network_->link(link).peer);
}

void SubPlane::narrow_at(const Narrowing& narrowing) {
  Breaks& b = breaks();
  queue_.push(narrowing.at, 0, kNarrow, b.narrowings.size());
  b.narrowings.push_back(narrowing);
}

// Everything that waits for what is dead now is taken out first: none of it may wait for another dead output.
void SubPlane::change(const NetworkChange& change) {
  network_ = change.network;
  breaks_->passed = passed_chips(*network_);
  struct Left {
    unsigned input;
    Hop hop;
  };
  std::vector<Left> left;
  for (unsigned output = 0; output < network_->links(); ++output) {
    const unsigned chip = chip_of_[output];
    const std::uint32_t peer = network_->link(output).peer;
    if (network_->in_order(chip) && network_->link_in_order(output) &&
        (peer == Network::kNoLink || network_->in_order(chip_of_[peer])))
      continue;
    links_.forget(output);
    while (waiting_.lanes_waiting(output) != 0) {
      const unsigned lane = waiting_.next_lane(output, waiting_.lanes_waiting(output));
      const unsigned input = waiting_.next_input(output, lane);
      const Hop hop = waiting_.front(output, lane, input);
      waiting_.pop(output, lane, input);
      if (network_->in_order(chip)) {
        left.push_back({network_->first_link(chip) + input, hop});
      } else {
        lose(hop, queue_.now());
      }
    }
  }
  for (const Left& l : left) {
    const bool enters = peer_[l.input] & kToEndpoint;
    if (with_classes_ && !enters) {  // its lane class may not fit another way
      drop(l.input, l.hop);
      continue;
    }
    const Hop hop = enters ? l.hop.on_detour(false) : l.hop;
    if (lacks_way(l.input, hop)) continue;
    ++breaks_->rerouted;
    accept(l.input, hop);
  }
}

// Whether a packet at an input never got there, as its chip, its link or the chip before broke meanwhile.
bool SubPlane::cut_off(unsigned input, Hop hop) {
  const Breaks& b = *breaks_;
  const unsigned chip = chip_of_[input];
  const Time now = queue_.now(), came = now - pipeline_[chip];
  const std::uint32_t peer = network_->link(input).peer;
  const bool cut = b.chip_down[chip] <= now || came > b.link_down[input] ||
                   (peer != Network::kNoLink && came - links_.latency(peer) > b.chip_down[chip_of_[peer]]);
  if (cut) lose(hop, now);
  return cut;
}

// Whether a packet at an input has no way on.
bool SubPlane::lacks_way(unsigned input, Hop hop) {
  const Breaks& b = *breaks_;
  const unsigned chip = chip_of_[input];
  unsigned target = network_->chip_of(hop.destination());
  if (hop.detours() && packets_[hop.packet()].next != chip) target = packets_[hop.packet()].next;
  bool leads = false;
  if (chip == target) {
    leads = b.link_down[network_->link_to(hop.destination())] > queue_.now();
  } else {
    const bool enters = peer_[input] & kToEndpoint;
    const bool passed = b.passed.empty() || b.passed[std::size_t{chip} * network_->chips() + target];
    leads = (enters && network_->detour(chip, target) != Network::kNoLink) ||
            (passed && !network_->ways(chip, target).empty());
  }
  if (!leads) drop(input, hop);
  return !leads;
}

// Whether a packet does not reach its endpoint, where its tail is to be at `tail`.
bool SubPlane::misses(unsigned output, Hop hop, Time tail) {
  const Breaks& b = *breaks_;
  if (tail <= b.link_down[output] && tail - links_.latency(output) <= b.chip_down[chip_of_[output]])
    return false;
  lose(hop, tail);
  return true;
}

void SubPlane::drop(unsigned input, Hop hop) {
  free_input(input, hop.lane(), hop.cells(), queue_.now());
  lose(hop, queue_.now());
}

// Its initiator is notified no sooner than of a response.
void SubPlane::lose(Hop hop, Time at) {
  ++breaks_->lost;
  const Packet& p = packets_[hop.packet()];
  const Attachment& a = attached_[is_response(p.kind) ? p.destination : p.source];
  const Time heard = std::max(at + endpoint_latency_ + a.response_latency, p.sent + a.resend_timeout);
  a.queue->push_from(queue_, heard, a.unit, a.lost, hop.bits());
}

}  // namespace cm384::ub
