#include "ub_fabric/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "ub_fabric/output_stage.h"
#include "ub_fabric/wire_format.h"

namespace cm384::ub {

UbController::UbController(const Parameters& parameters, Endpoint self, sim::EventQueue& queue,
                           std::uint32_t unit, PacketPool& packets, sim::PayloadPool& payloads)
    : parameters_(parameters),
      limits_(self < parameters.topology.dies() ? parameters.ub.controller : parameters.cpu.controller),
      miss_latency_(parameters.ub.translation.miss_latency),
      self_(self),
      queue_(queue),
      unit_(unit),
      packets_(packets),
      payloads_(payloads),
      planes_(static_cast<std::size_t>(parameters.topology.sub_planes), nullptr),
      ports_(queue, unit, kPort, static_cast<unsigned>(parameters.topology.sub_planes),
             static_cast<unsigned>(parameters.ub.link.lanes),
             RetryTimes{parameters.ub.link.retry_turnaround, parameters.ub.link.retry_timeout}),
      next_links_(planes_.size()),
      holds_requests_(holds_requests(limits_)),
      store_(parameters.ub.switch_chip.forwarding == "packet-store"),
      waiting_(static_cast<unsigned>(parameters.topology.sub_planes),
               static_cast<unsigned>(parameters.ub.link.lanes), 1),
      translation_(parameters.ub.translation),
      walks_(static_cast<std::size_t>(parameters.ub.translation.walks)),
      package_(parameters.package_link) {
  check(parameters);
  initiator_[kRead].free_slots = limits_.read_outstanding;
  initiator_[kRead].interval = limits_.read_interval;
  initiator_[kWrite].free_slots = limits_.write_outstanding;
  initiator_[kWrite].interval = write_issue_interval(limits_);
  serving_[kRead].interval = limits_.target_read_interval;
  serving_[kWrite].interval = write_service_interval(limits_);
  if (holds_requests_) {
    serving_[kRead].inbound = limits_.read_inbound_latency;
    serving_[kWrite].inbound = limits_.write_inbound_latency;
  }
  if (limits_.spreading == "round-robin") {
    spreading_ = Spreading::round_robin;
  } else if (limits_.spreading == "least-loaded") {
    spreading_ = Spreading::least_loaded;
  } else if (limits_.spreading == "flow") {
    spreading_ = Spreading::flow;
  } else {
    throw InputError(
        fmt::format("ub.controller.spreading: \"{}\" is no policy; allowed: round-robin, least-loaded, flow",
                    limits_.spreading));
  }
  if (const hw::UbQos& qos = parameters.ub.qos;
      qos.classes > 1 || qos.limits_rates() || qos.arbitration == "age")
    by_class_ = std::make_unique<ByClass>(
        qos, static_cast<unsigned>(planes_.size()),
        static_cast<unsigned>(self < parameters.topology.dies() ? qos.die_level(self + parameters.first_die)
                                                                : 0));
  // Where the turns begin: not at the same port for all dies of a node.
  turn_ = self % static_cast<unsigned>(planes_.size());
}

void UbController::attach(SubPlane& plane) {
  const unsigned port = plane.index();
  planes_[port] = &plane;
  const LinkTiming& timing = plane.timings().of_port(self_);
  ports_.connect(port, timing.flit, timing.latency, parameters_.ub.link.buffer_cells);
  next_links_[port].die = plane.timings().die_flit();
  next_links_[port].trunk = plane.timings().trunk_flit();
  compare_rate(port);
  const Time read = holds_requests_ ? Time{} : limits_.read_inbound_latency;
  const Time write = holds_requests_ ? Time{} : limits_.write_inbound_latency;
  plane.attach(self_, Attachment{&queue_, unit_, kArrival, read, write, limits_.completion_latency, &ports_,
                                 port, holds_requests_, false, kLost, limits_.resend_timeout});
  if (std::ranges::count(planes_, nullptr) == 0) networks_changed();
}

void UbController::compare_rate(unsigned port) {
  NextLinks& next = next_links_[port];
  next.die_faster = slower(ports_.clock(port), next.die);
  next.trunk_faster = slower(ports_.clock(port), next.trunk);
  next.differ = planes_[port]->network().uneven();
  any_faster_ = any_faster_ || next.die_faster || next.trunk_faster || next.differ;
}

void UbController::networks_changed() {
  lane_pairs_ = ~0u;
  whole_ = true;
  networks_.clear();
  for (const SubPlane* plane : planes_) {
    lane_pairs_ = std::min(lane_pairs_, plane->lane_pairs());
    networks_.push_back(plane->shared_network());
    whole_ = whole_ && networks_.back()->outage().empty();
  }
  reach_.assign(whole_ ? 0 : planes_.size() * planes_.front()->network().endpoints(), Reach::unknown);
}

bool UbController::reaches_by(unsigned port, Endpoint destination) const {
  const Network& network = *networks_[port];
  Reach& reach = reach_[std::size_t{port} * network.endpoints() + destination];
  if (reach == Reach::unknown)
    reach =
        network.reaches(self_, destination) && network.reaches(destination, self_) ? Reach::yes : Reach::no;
  return reach == Reach::yes;
}

void UbController::narrow(unsigned port, double width) {
  ports_.set_clock(port, planes_[port]->narrow_port(self_, width), queue_.now());
  compare_rate(port);
}

void UbController::join(UbController& sibling) {
  sibling_ = &sibling;
  sibling.sibling_ = this;
}

UbController::Expected UbController::prefetch(const sim::Event& event, int stage) const {
  PacketIndex index = 0;
  if (brings_packet(event)) {
    index = Hop{event.argument}.packet();
  } else if (event.what >= kRespond && event.what <= kUnreachable) {
    index = static_cast<PacketIndex>(event.argument);
  } else {
    return {};
  }
  const Packet& p = packets_[index];
  if (stage == 0) {
    __builtin_prefetch(&p, 1);
  } else if (is_response(p.kind)) {
    if (client_ == nullptr || event.what == kRespond || event.what == kLost) return {};
    if (stage == 1) return {p.core, p.tag};
    client_->expect_completion(p.core, p.tag);
  } else if (stage == 1 && target_ != nullptr && event.what != kLost) {
    target_->expect_access(cm384_gm_offset(p.address));
  }
  return {};
}

void UbController::handle(const sim::Event& event) {
  const auto argument = static_cast<std::uint32_t>(event.argument);
  switch (static_cast<What>(event.what)) {
    case kArrival:
      arrive(Hop{event.argument}, event.at);
      break;
    case kPort:
      if (ports_.woken(argument, event.at)) serve_port(argument, event.at);
      break;
    case kIssue:
      initiator_[argument].armed = false;
      issue(static_cast<Direction>(argument), event.at);
      break;
    case kTranslated:
      translated(argument, event.at);
      break;
    case kServe:
      serving_[argument].armed = false;
      serve_waiting(static_cast<Direction>(argument), event.at);
      break;
    case kRespond:
      respond(argument, event.at);
      break;
    case kAccess:
      access(argument, event.at);
      break;
    case kPackage:
      if (is_response(packets_[argument].kind)) {
        complete(argument, event.at);
      } else {
        access(argument, event.at);
      }
      break;
    case kUnreachable:
      complete(argument, event.at);
      break;
    case kLost:
      resend(Hop{event.argument}.packet(), event.at);
      break;
    case kChange:
      change(static_cast<unsigned>(event.argument >> 32), argument, event.at);
      break;
    case kNarrow:
      narrow(breaks_->narrowings[argument].first, breaks_->narrowings[argument].second);
      break;
  }
}

UbController::Direction UbController::direction(PacketKind kind) {
  return kind == PacketKind::read_request || kind == PacketKind::read_response ? kRead : kWrite;
}

void UbController::enqueue(unsigned port, PacketIndex index, Time now) {
  const Hop hop(index, packets_[index]);
  offer(ports_, waiting_, port, hop.lane(), 0, hop, now,
        [this, now](unsigned, unsigned to, unsigned, Hop h) { send(to, h, now); });
}

void UbController::serve_port(unsigned port, Time now) {
  const auto send_now = [this, now](unsigned, unsigned to, unsigned, Hop h) { send(to, h, now); };
  if (by_class_ != nullptr && by_class_->classes.arbitrates()) [[unlikely]]
    return serve_classes(ports_, waiting_, by_class_->ports, packets_, port, now, send_now);
  ub::serve(ports_, waiting_, port, now, send_now);
}

// A packet whose flits come slower than the chip sends them may go on only so early that they never run out.
void UbController::send(unsigned port, Hop hop, Time now) {
  const Transmission t = ports_.transmit(port, hop, now);
  const Time latency = ports_.latency(port);
  Time arrival = t.start + latency;
  if (store_) {
    arrival = t.tail + latency;
  } else if (any_faster_) {
    const Network& network = *networks_[port];
    const bool stays = network.chip_of(hop.destination()) == network.chip_of(self_);
    const NextLinks& next = next_links_[port];
    if (next.differ) {
      const Clock& flit = planes_[port]->next_flit(network.chip_of(self_), hop.destination());
      if (slower(ports_.clock(port), flit))
        arrival = std::max(arrival, t.tail + latency - flit.start(hop.flits()));
    } else if (stays ? next.die_faster : next.trunk_faster)
      arrival = std::max(arrival, t.tail + latency - (stays ? next.die : next.trunk).start(hop.flits()));
  }
  planes_[port]->inject(queue_, self_, hop, arrival);
}

}  // namespace cm384::ub
