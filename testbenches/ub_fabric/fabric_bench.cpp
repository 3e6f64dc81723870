#include "testbenches/ub_fabric/fabric_bench.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "hw/machine.h"

namespace cm384::ub {

Parameters machine(const std::vector<std::string>& overrides) {
  const hw::Machine m = hw::load_machine("cloudmatrix384", overrides);
  return Parameters{m.topology, m.ub, m.cpu, m.package_link};
}

StandIn::StandIn(const Parameters& parameters, Endpoint self, std::uint32_t source, PacketPool& packets,
                 sim::PayloadPool& payloads)
    : queue(source),
      controller(parameters, self, queue, kController, packets, payloads),
      payloads_(payloads) {
  controller.set_client(*this);
  controller.set_target(*this);
}

void StandIn::completed(const sim::Completion& completion, Time at) {
  Done d{completion.tag, at, completion.outcome, {}};
  sim::Payload payload = completion.payload;
  if (payload.chunk != sim::kNoChunk) d.first = payloads_.bytes(payload.chunk)[0];
  payloads_.release(payload);
  if (logs) done.push_back(d);
  ++completions;
  bytes_done += completion.bytes;
  if (at < first_done) first_done = at;
  last_done = at;
  pump();
}

Time StandIn::access(sim::Request& request, sim::Outcome& outcome) {
  Access a{request, {}};
  if (request.address + request.bytes > memory_bytes) {
    outcome = sim::Outcome::address_fault;
    return request.at;
  }
  if (request.operation == sim::Operation::read) {
    if (logs) {
      request.payload.chunk = payloads_.allocate();
      std::memset(payloads_.bytes(request.payload.chunk), static_cast<int>(request.address >> 9 & 0xff),
                  sim::kRequestBytes);
    }
  } else if (request.payload.chunk != sim::kNoChunk) {
    a.first = payloads_.bytes(request.payload.chunk)[0];
    payloads_.release(request.payload);
  }
  if (logs) accesses.push_back(a);
  return request.at + (request.operation == sim::Operation::read ? read_latency : write_latency);
}

void StandIn::request(Time at, sim::Operation operation, std::uint64_t address, std::uint32_t bytes,
                      std::uint32_t tag, unsigned lane, unsigned core) {
  sim::Request r;
  r.address = address;
  r.at = at;
  r.bytes = bytes;
  r.tag = tag;
  r.operation = operation;
  r.lane = static_cast<std::uint8_t>(lane);
  r.core = static_cast<std::uint16_t>(core);
  planned_.push_back(r);
  queue.push(at, kBench, 0, planned_.size() - 1);
}

void StandIn::stream(sim::Operation operation, std::uint32_t bytes, std::uint64_t count, std::uint64_t depth,
                     std::function<std::uint64_t(std::uint64_t)> next, unsigned lane) {
  next_ = std::move(next);
  pattern_.operation = operation;
  pattern_.bytes = bytes;
  pattern_.lane = static_cast<std::uint8_t>(lane);
  left_ = count;
  for (std::uint64_t i = 0; i < depth; ++i) queue.push(Time{}, kBench, 1);
}

void StandIn::submit(const sim::Request& planned) {
  sim::Request r = planned;
  r.at = queue.now();
  if (logs && r.operation != sim::Operation::read) {
    r.payload.chunk = payloads_.allocate();
    std::memset(payloads_.bytes(r.payload.chunk), static_cast<int>(r.tag & 0xff), sim::kRequestBytes);
  }
  controller.submit(r);
}

void StandIn::pump() {
  if (left_ == 0) return;
  --left_;
  sim::Request r = pattern_;
  r.address = next_(sent_);
  r.tag = static_cast<std::uint32_t>(sent_++);
  submit(r);
}

void StandIn::run_until(Time end) {
  queue.run_until(end, [this](const sim::Event& e) {
    if (e.unit == kController) {
      controller.handle(e);
    } else if (e.what == 0) {
      submit(planned_[e.argument]);
    } else {
      pump();
    }
  });
}

FabricBench::FabricBench(const Parameters& parameters, const std::vector<unsigned>& endpoints,
                         std::uint64_t seed)
    : index_(static_cast<std::size_t>(parameters.topology.endpoints()), ~std::size_t{0}) {
  for (unsigned p = 0; p < static_cast<unsigned>(parameters.topology.sub_planes); ++p) {
    planes_.push_back(std::make_unique<SubPlane>(p, parameters, packets, p + 1, seed));
  }
  window_ = std::min(parameters.package_link.latency, planes_.front()->timings().shortest_endpoint_latency());
  for (const unsigned e : endpoints) {
    index_[e] = units_.size();
    units_.push_back(
        std::make_unique<StandIn>(parameters, static_cast<Endpoint>(e), 100 + e, packets, payloads));
    for (auto& plane : planes_) units_.back()->controller.attach(*plane);
    const auto dies = static_cast<unsigned>(parameters.topology.dies());
    if (e < dies && e % 2 == 1 && parameters.topology.dies_per_package == 2 &&
        index_[e - 1] < units_.size()) {
      units_.back()->controller.join(at(e - 1).controller);
    }
  }
}

void FabricBench::run(Time end) {
  const std::size_t modules = planes_.size() + units_.size();
  for (;;) {
    Time next = Time::never();
    for (auto& plane : planes_) next = std::min(next, plane->queue().next_time());
    for (auto& unit : units_) next = std::min(next, unit->queue.next_time());
    if (next == Time::never() || next >= end) return;
    const Time to = std::min(end, next + window_);
    for (std::size_t k = 0; k < modules; ++k) {
      const std::size_t m = reversed ? modules - 1 - k : k;
      if (m < planes_.size()) {
        planes_[m]->run_until(to);
      } else {
        units_[m - planes_.size()]->run_until(to);
      }
    }
  }
}

std::uint64_t FabricBench::packet_hops() const {
  std::uint64_t hops = 0;
  for (const auto& plane : planes_) hops += plane->packet_hops();
  for (const auto& unit : units_) hops += unit->controller.packet_hops();
  return hops;
}

std::uint64_t FabricBench::events() const {
  std::uint64_t n = 0;
  for (const auto& plane : planes_) n += plane->queue().handled();
  for (const auto& unit : units_) n += unit->queue.handled();
  return n;
}

}  // namespace cm384::ub
