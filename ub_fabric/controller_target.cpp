// The target's half of a controller: from a packet's arrival to the response at the port.
#include <cassert>
#include <utility>

#include "firmware/abi/memory_map.h"
#include "ub_fabric/controller.h"
#include "ub_fabric/wire_format.h"

namespace cm384::ub {

void UbController::arrive(Hop hop, Time now) {
  const PacketIndex index = hop.packet();
  Packet& p = packets_[index];
  p.lane = static_cast<std::uint8_t>(hop.lane());  // it may have changed on the way
  if (is_response(p.kind)) {
    complete(index, now);
    return;
  }
  const Direction d = direction(p.kind);
  Target& side = serving_[d];
  if (by_class_ != nullptr && by_class_->classes.arbitrates()) [[unlikely]] {
    by_class_->serving[d].push(packets_, by_class_->classes.of_lane(p.lane), index);
    if (!side.armed) serve_waiting(d, now);
    return;
  }
  if (side.waiting.empty() && side.next <= now) {
    serve(d, index, now);
    return;
  }
  side.waiting.push(packets_, index);
  if (!side.armed) queue_.push(side.next, unit_, kServe, d);
  side.armed = true;
}

void UbController::serve_waiting(Direction d, Time now) {
  Target& side = serving_[d];
  const auto waits = [&] {
    return !side.waiting.empty() || (by_class_ != nullptr && !by_class_->serving[d].empty());
  };
  while (waits() && side.next <= now) serve(d, next_served(d), now);
  if (!waits()) return;
  queue_.push(side.next, unit_, kServe, d);
  side.armed = true;
}

// The request leaves the receive buffer when its service starts, which then takes its inbound latency.
void UbController::serve(Direction d, PacketIndex index, Time now) {
  const Packet& p = packets_[index];
  serving_[d].next = now + serving_[d].interval;
  if (holds_requests_) planes_[p.plane]->free_cells(self_, p.lane, Hop(index, p).cells(), now);
  const Time inbound = serving_[d].inbound;
  if (inbound > Time{}) {
    queue_.push(now + inbound, unit_, kAccess, index);
  } else {
    access(index, now);
  }
}

// Performs a request on the own memory and makes its packet the response, to leave when it may.
void UbController::access(PacketIndex index, Time now) {
  Packet& p = packets_[index];
  if (p.performed) [[unlikely]] {
    ++counters_.repeated;
    make_response(p);
    queue_.push(now, unit_, kRespond, index);
    return;
  }
  sim::Request request;
  request.address = cm384_gm_offset(p.address);
  request.at = now;
  request.transaction = p.transaction;
  request.bytes = p.bytes;
  request.tag = p.tag;
  request.operation = p.operation;
  request.lane = p.lane;
  request.core = p.core;
  request.payload = p.payload;
  sim::Outcome outcome = sim::Outcome::done;
  served_ = index;
  deferred_ = false;
  const Time ready = target_->access(request, outcome);
  ++counters_.served;
  if (deferred_) return;
  assert(ready >= now);
  performed(index, request.payload, outcome);
  queue_.push(ready, unit_, kRespond, index);
}

std::uint32_t UbController::defer() {
  deferred_ = true;
  return served_;
}

void UbController::answer(std::uint32_t request, const sim::Payload& payload, sim::Outcome outcome, Time at) {
  performed(request, payload, outcome);
  queue_.push(at, unit_, kRespond, request);
}

void UbController::performed(PacketIndex index, const sim::Payload& payload, sim::Outcome outcome) {
  Packet& p = packets_[index];
  p.outcome = outcome;
  p.payload = payload;
  if (outcome != sim::Outcome::done) {
    payloads_.release(p.payload);
    p.payload = sim::Payload{};
  }
  make_response(p);
}

void UbController::make_response(Packet& p) const {
  std::swap(p.source, p.destination);
  int payload = 0;
  switch (p.kind) {
    case PacketKind::read_request:
      p.kind = PacketKind::read_response;
      if (p.outcome == sim::Outcome::done) payload = p.bytes;
      break;
    case PacketKind::atomic_request:
      p.kind = PacketKind::atomic_response;
      // A target that hands out no old value gives a bare acknowledgement (AtomicStore).
      if (p.payload.chunk != sim::kNoChunk || p.payload.tags != 0) payload = p.bytes;
      break;
    default:
      p.kind = PacketKind::write_ack;
      break;
  }
  p.flits = static_cast<std::uint8_t>(packet_flits(p.kind, payload));
  const unsigned pairs = p.plane < planes_.size() ? planes_[p.plane]->lane_pairs() : lane_pairs_;
  p.lane = static_cast<std::uint8_t>(p.lane % (2 * pairs) + 1);
}

void UbController::respond(PacketIndex index, Time now) {
  const std::uint8_t plane = packets_[index].plane;
  if (plane == kPackagePlane) {
    over_package(index, now);
  } else if (usable(plane, packets_[index].destination)) [[likely]] {
    enqueue(plane, index, now);
  } else {
    enqueue_elsewhere(index, now);
  }
}

// A response with data carries as many bytes as its request asked for; acknowledgements and read requests
// carry none.
void UbController::over_package(PacketIndex index, Time now) {
  const Packet& p = packets_[index];
  const bool data =
      p.kind == PacketKind::write_request || p.kind == PacketKind::atomic_request ||
      (p.kind == PacketKind::read_response && p.outcome == sim::Outcome::done) ||
      (p.kind == PacketKind::atomic_response && (p.payload.chunk != sim::kNoChunk || p.payload.tags != 0));
  const Time at = package_.send(data ? p.bytes : 0, now);
  sibling_->queue_.push_from(queue_, at, sibling_->unit_, kPackage, index);
}

}  // namespace cm384::ub
