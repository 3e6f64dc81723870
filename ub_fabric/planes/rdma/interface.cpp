#include "ub_fabric/planes/rdma/interface.h"

#include <algorithm>
#include <cassert>

#include "firmware/abi/memory_map.h"

namespace cm384::rdma {

Interface::Interface(const hw::Rdma& parameters, const sim::Fabric::Seat& seat, LeafSpine& switches,
                     Pools& pools, sim::PayloadPool& payloads)
    : parameters_(parameters),
      byte_(Bytes{1}, parameters.link_rate),
      self_(static_cast<std::uint16_t>(seat.endpoint)),
      queue_(seat.queue),
      unit_(seat.unit),
      target_(seat.target),
      client_(seat.client),
      switches_(switches),
      pools_(pools),
      payloads_(payloads) {
  switches.attach(self_, {&queue_, unit_, kArrived, kPaused});
}

void Interface::submit(const sim::Request& request) {
  assert(request.at == queue_.now());
  assert(request.bytes >= 1 && request.bytes <= sim::kRequestBytes);
  const std::uint32_t index = pools_.pieces.allocate();
  pools_.pieces[index] = {request.address,
                          request.transaction,
                          request.at + parameters_.send_latency,
                          request.payload,
                          sim::kNoRecord,
                          request.tag,
                          request.core,
                          static_cast<std::uint16_t>(request.bytes),
                          request.operation,
                          sim::Outcome::done};
  ++pending_;
  ++counters_.requests;
  const std::uint64_t unit = cm384_gm_unit(request.address);
  const bool there = cm384_is_gm(request.address) && !cm384_gm_is_cpu(request.address) && unit != self_ &&
                     unit <= UINT16_MAX && switches_.attached(static_cast<unsigned>(unit));
  if (!there) {
    pools_.pieces[index].outcome = sim::Outcome::address_fault;
    queue_.push(request.at + parameters_.send_latency, unit_, kFault, index);
    return;
  }
  if (destinations_.size() <= unit) destinations_.resize(unit + 1);
  Destination& to = destinations_[unit];
  to.waiting.push(pools_.pieces, index);
  if (to.in_turn || to.blocked) return;
  to.in_turn = true;
  queue_.push(request.at + parameters_.send_latency, unit_, kReady, unit);
}

void Interface::handle(const sim::Event& event) {
  const auto argument = static_cast<std::uint32_t>(event.argument);
  switch (static_cast<What>(event.what)) {
    case kReady:
      turns_.push_back(static_cast<std::uint16_t>(argument));
      return serve(event.at);
    case kFree:
      link_.sending = false;
      return serve(event.at);
    case kArrived:
      return arrive(argument, event.at);
    case kPaused:
      return pause(argument != 0, event.at);
    case kRespond:
      responses_.push(pools_.packets, argument);
      return serve(event.at);
    case kFault:
      return complete_piece(argument, event.at);
  }
}

void Interface::serve(Time now) {
  if (link_.sending || link_.paused) return;
  const bool response = !responses_.empty() && (response_first_ || turns_.empty());
  if (!response && send_request(now)) {
    response_first_ = true;
  } else if (!responses_.empty()) {
    response_first_ = false;
    send(responses_.pop(pools_.packets), now);
  }
}

// From the first destination in turn that has a request and room for it.
bool Interface::send_request(Time now) {
  for (std::size_t left = turns_.size(); left != 0; --left) {
    const std::uint16_t number = turns_.front();
    turns_.pop_front();
    Destination& to = destinations_[number];
    const Piece& first = pools_.pieces[to.waiting.head];
    if (to.open != 0 && to.open + first.bytes > parameters_.window.count) {
      to.in_turn = false;
      to.blocked = true;
      continue;
    }
    const std::uint32_t packet = make_packet(to, number, now);
    to.in_turn = !to.waiting.empty();
    if (to.in_turn) {
      const Time at = pools_.pieces[to.waiting.head].ready;
      if (at > now) {
        queue_.push(at, unit_, kReady, number);
      } else {
        turns_.push_back(number);
      }
    }
    if (request_sent) request_sent(now);
    send(packet, now);
    return true;
  }
  return false;
}

std::uint32_t Interface::make_packet(Destination& to, std::uint16_t number, Time now) {
  const std::uint32_t index = pools_.packets.allocate();
  Packet& packet = pools_.packets[index];
  packet = Packet{};
  packet.source = self_;
  packet.destination = number;
  const Piece first = pools_.pieces[to.waiting.head];
  const bool alone = first.operation != sim::Operation::read && first.operation != sim::Operation::write;
  std::uint64_t end = first.address;
  while (!to.waiting.empty()) {
    const Piece& piece = pools_.pieces[to.waiting.head];
    const std::int64_t payload = packet.payload + piece.bytes;
    const bool joins = piece.ready <= now && piece.transaction == first.transaction &&
                       piece.operation == first.operation && piece.address == end &&
                       payload <= parameters_.mtu.count && to.open + payload <= parameters_.window.count;
    if (packet.payload != 0 && (alone || !joins)) break;
    end = piece.address + piece.bytes;
    packet.payload += piece.bytes;
    packet.pieces.push(pools_.pieces, to.waiting.pop(pools_.pieces));
    if (to.waiting.head == sim::kNoRecord) to.waiting = {};
  }
  to.open += packet.payload;
  const std::uint32_t data = first.operation == sim::Operation::read ? 0 : packet.payload;
  packet.wire = static_cast<std::uint32_t>(parameters_.header.count) + data;
  return index;
}

void Interface::send(std::uint32_t index, Time now) {
  const std::uint32_t bytes = pools_.packets[index].wire;
  ++counters_.packets;
  counters_.bytes += bytes;
  link_.sending = true;
  const Time tail = now + byte_.start(bytes);
  queue_.push(tail, unit_, kFree);
  switches_.inject(queue_, self_, index, tail + parameters_.link_latency);
}

void Interface::arrive(std::uint32_t packet, Time now) {
  if (pools_.packets[packet].response) {
    complete(packet, now);
  } else {
    perform(packet, now);
  }
}

// The answer leaves when the memory has answered all of it.
void Interface::perform(std::uint32_t index, Time now) {
  Packet& packet = pools_.packets[index];
  Time ready = now;
  std::uint32_t data = 0;
  for (std::uint32_t n = packet.pieces.head; n != sim::kNoRecord; n = pools_.pieces[n].next) {
    Piece& piece = pools_.pieces[n];
    sim::Request request;
    request.address = cm384_gm_offset(piece.address);
    request.at = now;
    request.transaction = piece.transaction;
    request.bytes = piece.bytes;
    request.tag = piece.tag;
    request.operation = piece.operation;
    request.core = piece.core;
    request.payload = piece.payload;
    ready = std::max(ready, target_.access(request, piece.outcome));
    ++counters_.served;
    if (piece.outcome != sim::Outcome::done) payloads_.release(request.payload);
    piece.payload = piece.outcome == sim::Outcome::done ? request.payload : sim::Payload{};
    // What was written is not sent back: of tags that it had the payload still tells.
    const bool carries = piece.operation == sim::Operation::read || piece.payload.chunk != sim::kNoChunk;
    if (piece.outcome == sim::Outcome::done && carries) data += piece.bytes;
  }
  packet.response = true;
  std::swap(packet.source, packet.destination);
  packet.wire = static_cast<std::uint32_t>(parameters_.response_header.count) + data;
  queue_.push(ready, unit_, kRespond, index);
}

void Interface::complete(std::uint32_t index, Time now) {
  Packet& packet = pools_.packets[index];
  const std::uint16_t number = packet.source;
  Destination& from = destinations_[number];
  from.open -= packet.payload;
  if (from.blocked) {
    from.blocked = false;
    from.in_turn = true;
    turns_.push_back(number);
  }
  for (std::uint32_t n = packet.pieces.head; n != sim::kNoRecord;) {
    const std::uint32_t next = pools_.pieces[n].next;
    complete_piece(n, now);
    n = next;
  }
  pools_.packets.release(index);
  serve(now);
}

void Interface::complete_piece(std::uint32_t index, Time now) {
  const Piece& piece = pools_.pieces[index];
  sim::Completion completion;
  completion.tag = piece.tag;
  completion.core = piece.core;
  completion.outcome = piece.outcome;
  completion.bytes = piece.bytes;
  completion.payload = piece.payload;
  if (piece.outcome != sim::Outcome::done) {
    ++counters_.faults;
    payloads_.release(completion.payload);
    completion.payload = sim::Payload{};
  } else {
    (piece.operation == sim::Operation::read ? counters_.bytes_read : counters_.bytes_written) += piece.bytes;
  }
  pools_.pieces.release(index);
  ++counters_.completions;
  --pending_;
  client_->completed(completion, now);
}

void Interface::pause(bool on, Time now) {
  link_.paused = on;
  if (on) {
    link_.paused_at = now;
  } else {
    counters_.paused_ps += static_cast<std::uint64_t>((now - link_.paused_at).ps);
    serve(now);
  }
}

void Interface::declare_statistics(sim::Statistics& to, const sim::StatisticPath& path) const {
  const auto at = path.part("rdma");
  const InterfaceCounters& c = counters_;
  to.declare(at, "requests", "requests", "taken from the own die", c.requests);
  to.declare(at, "packets", "packets", "sent, acknowledgements and other answers included", c.packets);
  to.declare(at, "bytes", "B", "of those packets on the wire", c.bytes);
  to.declare(at, "bytes_read", "B", "brought back by completed reads", c.bytes_read);
  to.declare(at, "bytes_written", "B", "of completed writes and atomic adds", c.bytes_written);
  to.declare(at, "completions", "requests", "completed", c.completions);
  to.declare(at, "faults", "requests", "completed with an address fault", c.faults);
  to.declare(at, "served", "requests", "of others served as target", c.served);
  to.declare(at, "paused_ps", "ps", "in which its leaf switch kept it from sending", c.paused_ps);
}

}  // namespace cm384::rdma
