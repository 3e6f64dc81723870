#include "testbenches/ub_fabric/planes/rdma/rdma_bench.h"

#include <algorithm>
#include <cstring>

namespace cm384::rdma {
namespace {

constexpr std::uint32_t kPlaneSource = 5000;

}  // namespace

StandIn::StandIn(RdmaPlane& plane, unsigned die, sim::PayloadPool& payloads)
    : queue(die), port(plane.attach({die, queue, kPort, *this, this})), die_(die), payloads_(payloads) {}

void StandIn::completed(const sim::Completion& completion, Time at) {
  Done d{completion.tag, at, completion.outcome, {}};
  sim::Payload payload = completion.payload;
  if (payload.chunk != sim::kNoChunk) d.first = payloads_.bytes(payload.chunk)[0];
  payloads_.release(payload);
  done.push_back(d);
  if (completion.outcome == sim::Outcome::done) bytes_done += completion.bytes;
  last_done = at;
  pump();
}

Time StandIn::access(sim::Request& request, sim::Outcome& outcome) {
  accesses.push_back(request.at);
  if (request.address + request.bytes > memory_bytes) {
    outcome = sim::Outcome::address_fault;
    return request.at;
  }
  if (request.operation == sim::Operation::read) {
    request.payload.chunk = payloads_.allocate();
    payloads_.bytes(request.payload.chunk)[0] = held[request.address];
    return request.at + read_latency;
  }
  held[request.address] = payloads_.bytes(request.payload.chunk)[0];
  bytes_from[static_cast<unsigned>(request.transaction)] += request.bytes;
  payloads_.release(request.payload);
  return request.at + write_latency;
}

void StandIn::request(Time at, sim::Operation operation, std::uint64_t address, std::uint32_t bytes,
                      std::uint32_t tag, sim::TransactionId transaction) {
  sim::Request r;
  r.address = address;
  r.at = at;
  r.bytes = bytes;
  r.tag = tag;
  r.operation = operation;
  r.transaction = transaction;
  planned_.push_back(r);
  queue.push(at, kBench, 0, planned_.size() - 1);
}

void StandIn::stream(sim::Operation operation, std::uint64_t address, std::uint64_t count,
                     std::uint64_t depth) {
  pattern_.operation = operation;
  pattern_.address = address;
  pattern_.bytes = sim::kRequestBytes;
  pattern_.transaction = die_;
  left_ = count;
  for (std::uint64_t i = 0; i < depth; ++i) queue.push(Time{}, kBench, 1);
}

void StandIn::submit(sim::Request request) {
  request.at = queue.now();
  if (request.operation != sim::Operation::read) {
    request.payload.chunk = payloads_.allocate();
    request.payload.tags = write_tags;
    std::memset(payloads_.bytes(request.payload.chunk), static_cast<int>(request.tag & 0xff),
                sim::kRequestBytes);
  }
  port.submit(request);
}

void StandIn::pump() {
  if (left_ == 0) return;
  --left_;
  submit(pattern_);
  pattern_.address += pattern_.bytes;
  ++pattern_.tag;
}

void StandIn::run_until(Time end) {
  queue.run_until(end, [this](const sim::Event& e) {
    if (e.unit == kPort) {
      port.handle(e);
    } else if (e.what == 0) {
      submit(planned_[e.argument]);
    } else {
      pump();
    }
  });
}

RdmaBench::RdmaBench(const std::vector<unsigned>& dies, const std::vector<std::string>& overrides)
    : machine(hw::load_machine("cloudmatrix384", overrides)),
      plane(machine.rdma, static_cast<unsigned>(machine.topology.dies()),
            static_cast<unsigned>(machine.topology.supernodes), payloads, kPlaneSource, 1) {
  for (const unsigned die : dies) dies_.emplace(die, std::make_unique<StandIn>(plane, die, payloads));
}

void RdmaBench::run(Time end) {
  sim::FabricModule& switches = *plane.modules().front();
  const sim::Fabric::Lookahead ahead = plane.lookahead();
  const Time window = std::min(ahead.to_module, ahead.from_module);
  for (;;) {
    Time next = switches.queue().next_time();
    for (auto& [die, unit] : dies_) next = std::min(next, unit->queue.next_time());
    if (next == Time::never() || next >= end) return;
    const Time to = std::min(end, next + window);
    if (!reversed) switches.run_until(to);
    if (reversed) {
      for (auto unit = dies_.rbegin(); unit != dies_.rend(); ++unit) unit->second->run_until(to);
    } else {
      for (auto& [die, unit] : dies_) unit->run_until(to);
    }
    if (reversed) switches.run_until(to);
  }
}

}  // namespace cm384::rdma
