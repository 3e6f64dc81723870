// The initiator's half of a controller: from submit() to the port, and the completion.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "ub_fabric/controller.h"
#include "ub_fabric/flow.h"
#include "ub_fabric/wire_format.h"

namespace cm384::ub {

bool UbController::reaches(std::uint64_t address, Endpoint& endpoint) const {
  // What names another plane has come here because the machine has none.
  if (!cm384_is_gm(address) || cm384_gm_via_rdma(address)) return false;
  const bool cpu = cm384_gm_is_cpu(address);
  // Wraps for one of a supernode before.
  const std::uint64_t unit =
      cm384_gm_unit(address) -
      static_cast<std::uint64_t>(cpu ? parameters_.first_socket : parameters_.first_die);
  const auto units =
      static_cast<std::uint64_t>(cpu ? parameters_.topology.sockets() : parameters_.topology.dies());
  if (unit >= units) {
    if (cm384_gm_unit(address) < units * static_cast<std::uint64_t>(parameters_.supernodes)) refuse(address);
    return false;
  }
  endpoint = static_cast<Endpoint>(
      cpu ? unit + static_cast<std::uint64_t>(parameters_.topology.socket_endpoint(0)) : unit);
  return endpoint != self_ && planes_.front()->attached(endpoint);
}

void UbController::refuse(std::uint64_t address) const {
  const int dies = parameters_.topology.dies();
  const bool die = self_ < dies;
  throw MachineError(
      fmt::format("unified bus: {} {} asks for {} {}, which is in another supernode; only the RDMA plane "
                  "joins them, and dies alone",
                  die ? "die" : "CPU socket",
                  die ? self_ + parameters_.first_die : self_ - dies + parameters_.first_socket,
                  cm384_gm_is_cpu(address) ? "CPU socket" : "die", cm384_gm_unit(address)));
}

bool UbController::by_package(Endpoint destination, std::uint64_t address) const {
  return sibling_ != nullptr && destination == sibling_->self_ && (address & CM384_GM_VIA_UB_BIT) == 0;
}

void UbController::submit(const sim::Request& request) {
  assert(request.at == queue_.now());
  assert(request.bytes >= 1 && request.bytes <= sim::kRequestBytes);
  const PacketIndex index = packets_.allocate();
  Packet& p = packets_[index];
  p.address = request.address;
  p.transaction = request.transaction;
  p.payload = request.payload;
  p.tag = request.tag;
  p.source = self_;
  p.core = request.core;
  p.bytes = static_cast<std::uint16_t>(request.bytes);
  p.kind = request_kind(request.operation);
  p.operation = request.operation;
  p.outcome = sim::Outcome::done;
  p.performed = false;
  const bool read = p.kind == PacketKind::read_request;
  p.flits = static_cast<std::uint8_t>(packet_flits(p.kind, read ? 0 : p.bytes));
  // Even lanes carry requests; lane + 1 carries their responses, which a controller always takes in, so that
  // requests that wait for a busy target never stand in their way.
  unsigned lane = (request.lane + request.core) % lane_pairs_ * 2u;
  if (by_class_ != nullptr) [[unlikely]] {
    lane = by_class_->classes.request_lane(by_class_->class_of(request), request.lane + request.core,
                                           lane_pairs_);
    p.sent = request.at;
  }
  p.lane = static_cast<std::uint8_t>(lane);
  ++pending_;
  if (read) {
    ++counters_.reads;
  } else {
    ++counters_.writes;
    if (p.kind == PacketKind::atomic_request) ++counters_.atomics;
  }
  Endpoint destination = 0;
  if (!reaches(request.address, destination)) {
    p.destination = self_;
    p.plane = kNowhere;
    p.outcome = sim::Outcome::address_fault;
    queue_.push(request.at + miss_latency_, unit_, kUnreachable, index);
    return;
  }
  p.destination = destination;
  const bool own_flow = (request.transaction & kOwnFlow) != 0;
  p.flow = static_cast<std::uint8_t>(
      mix(own_flow ? request.transaction
                   : std::uint64_t{self_} << 32 | std::uint64_t{destination} << 16 | request.core) >>
      56);
  if (by_package(destination, request.address)) {
    p.plane = kPackagePlane;
    ++counters_.package_requests;
    over_package(index, request.at);
    return;
  }
  const Direction d = direction(p.kind);
  if (by_class_ != nullptr) [[unlikely]] {
    by_class_->issuing[d].push(packets_, by_class_->classes.of_lane(p.lane), index);
    return issue_by_class(d, request.at);
  }
  initiator_[d].waiting.push(packets_, index);
  if (!initiator_[d].armed) issue(d, request.at);
}

// Lets requests out as bound and interval allow. Where the interval holds one back an event is set; where the
// bound does, the next completion calls.
void UbController::issue(Direction d, Time now) {
  if (by_class_ != nullptr) [[unlikely]]
    return issue_by_class(d, now);
  Initiator& side = initiator_[d];
  while (!side.waiting.empty() && side.free_slots > 0) {
    if (side.next > now) {
      if (!side.armed) queue_.push(side.next, unit_, kIssue, d);
      side.armed = true;
      return;
    }
    const PacketIndex index = side.waiting.pop(packets_);
    --side.free_slots;
    side.next = now + side.interval;
    start(index, now);
  }
}

void UbController::start(PacketIndex index, Time now) {
  if (!translate(index, now)) unwalked_.push(packets_, index);
}

// Sends a request on, or into the wait for its page; false if its page needs a walk and none is free.
bool UbController::translate(PacketIndex index, Time now) {
  const std::uint64_t key = translation_.key(packets_[index].address & ~CM384_GM_VIA_UB_BIT);
  if (translation_.lookup(key)) {
    choose_port(index, now);
    return true;
  }
  Walk* unused = nullptr;
  for (Walk& walk : walks_) {
    if (walk.busy && walk.key == key) {
      walk.waiting.push(packets_, index);
      return true;
    }
    if (!walk.busy && unused == nullptr) unused = &walk;
  }
  if (unused == nullptr) return false;
  unused->busy = true;
  unused->key = key;
  unused->waiting.push(packets_, index);
  ++counters_.translation_misses;
  queue_.push(now + miss_latency_, unit_, kTranslated, static_cast<std::uint64_t>(unused - walks_.data()));
  return true;
}

void UbController::warm_translation(std::uint64_t address) {
  const std::uint64_t key = translation_.key(address & ~CM384_GM_VIA_UB_BIT);
  if (!translation_.lookup(key)) translation_.insert(key);
}

void UbController::translated(unsigned walk, Time now) {
  translation_.insert(walks_[walk].key);
  PacketQueue waiting = walks_[walk].waiting;
  walks_[walk].waiting = PacketQueue{};
  walks_[walk].busy = false;
  while (!waiting.empty()) choose_port(waiting.pop(packets_), now);
  while (!unwalked_.empty()) {
    const PacketIndex index = unwalked_.head;
    const PacketIndex next = packets_[index].next;
    if (!translate(index, now)) return;  // leaves the packet where it is
    unwalked_.head = next;
  }
}

void UbController::choose_port(PacketIndex index, Time now) {
  const auto ports = static_cast<unsigned>(planes_.size());
  const Endpoint destination = packets_[index].destination;
  unsigned port = turn_;
  if (spreading_ == Spreading::flow) {
    port = packets_[index].flow % ports;
  } else if (spreading_ == Spreading::least_loaded) {
    port = least_loaded_port(now, destination);
  }
  port = usable_port(port, destination);
  if (spreading_ != Spreading::flow) turn_ = port + 1 == ports ? 0 : port + 1;
  packets_[index].plane = static_cast<std::uint8_t>(port);
  packets_[index].sent = now;
  enqueue(port, index, now);
}

unsigned UbController::usable_port(unsigned port, Endpoint destination) const {
  const auto ports = static_cast<unsigned>(planes_.size());
  for (unsigned tried = 0; !usable(port, destination); port = port + 1 == ports ? 0 : port + 1) {
    if (++tried > ports)
      throw MachineError(fmt::format("unified bus: endpoint {} does not reach endpoint {} in any sub-plane",
                                     self_, destination));
  }
  return port;
}

// Fewest cells in its queue; among equals the one that is free first, then in turn.
unsigned UbController::least_loaded_port(Time now, Endpoint destination) const {
  const auto ports = static_cast<unsigned>(planes_.size());
  unsigned best = turn_;
  for (unsigned k = 0; k < ports && !usable(best, destination); ++k) best = best + 1 == ports ? 0 : best + 1;
  for (unsigned k = 1; k < ports; ++k) {
    const unsigned port = (turn_ + k) % ports;
    if (!usable(port, destination)) continue;
    const int cells = waiting_.queued_cells(port);
    const int fewest = waiting_.queued_cells(best);
    const Time free = std::max(ports_.free_at(port), now);
    if (cells < fewest || (cells == fewest && free < std::max(ports_.free_at(best), now))) best = port;
  }
  return best;
}

void UbController::complete(PacketIndex index, Time now) {
  const Packet& p = packets_[index];
  sim::Completion completion;
  completion.tag = p.tag;
  completion.core = p.core;
  completion.outcome = p.outcome;
  completion.bytes = p.bytes;
  completion.payload = p.payload;
  const Direction d = p.operation == sim::Operation::read ? kRead : kWrite;
  const bool by_port = p.plane != kPackagePlane && p.plane != kNowhere;
  if (breaks_ != nullptr && by_port && now > p.sent + limits_.resend_timeout) [[unlikely]]
    ++counters_.late;
  if (p.outcome != sim::Outcome::done) {
    ++counters_.faults;
    payloads_.release(completion.payload);
    completion.payload = sim::Payload{};
  } else if (d == kRead) {
    counters_.bytes_read += p.bytes;
  } else {
    counters_.bytes_written += p.bytes;
  }
  packets_.release(index);
  ++counters_.completions;
  --pending_;
  if (by_port) ++initiator_[d].free_slots;
  client_->completed(completion, now);
  if (by_port && !initiator_[d].armed) issue(d, now);
}

}  // namespace cm384::ub
