// The RDMA plane with stand-ins for dies: fixed memory latencies, a byte of each request, counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/engine/event_queue.h"
#include "base/engine/payload.h"
#include "base/engine/transaction.h"
#include "hw/machine.h"
#include "ub_fabric/planes/rdma/rdma_plane.h"

namespace cm384::rdma {

class StandIn final : public sim::RemoteClient, public sim::RemoteTarget {
 public:
  struct Done {
    std::uint32_t tag = 0;
    Time at;
    sim::Outcome outcome = sim::Outcome::done;
    std::byte first{};  // first byte read
  };

  StandIn(RdmaPlane& plane, unsigned die, sim::PayloadPool& payloads);

  void completed(const sim::Completion& completion, Time at) override;
  Time access(sim::Request& request, sim::Outcome& outcome) override;

  // Plans a request; writes carry the low byte of `tag`.
  void request(Time at, sim::Operation operation, std::uint64_t address, std::uint32_t bytes,
               std::uint32_t tag, sim::TransactionId transaction = 0);
  // Keeps `depth` requests of 512 B under way, `count` in all, one behind the other from `address` on.
  void stream(sim::Operation operation, std::uint64_t address, std::uint64_t count, std::uint64_t depth);
  void run_until(Time end);

  sim::EventQueue queue;
  Interface& port;
  Time read_latency{}, write_latency{};
  sim::TagMask write_tags{};  // of what it writes
  std::uint64_t memory_bytes = std::uint64_t{1} << 36;
  std::vector<Done> done;
  std::vector<Time> accesses;               // when they came to the memory
  std::map<std::uint64_t, std::byte> held;  // first byte of what was written, by offset
  std::map<unsigned, std::uint64_t> bytes_from;
  std::uint64_t bytes_done = 0;
  Time last_done{};

 private:
  enum : std::uint32_t { kBench, kPort };
  void submit(sim::Request request);
  void pump();

  unsigned die_;
  sim::PayloadPool& payloads_;
  std::vector<sim::Request> planned_;
  sim::Request pattern_;
  std::uint64_t left_ = 0;
};

// Runs plane and stand-ins in windows of the plane's lookahead.
class RdmaBench {
 public:
  explicit RdmaBench(const std::vector<unsigned>& dies, const std::vector<std::string>& overrides = {});

  StandIn& at(unsigned die) { return *dies_.at(die); }
  // Until nothing is left to do, or `end`.
  void run(Time end = Time::never());

  bool reversed = false;  // modules of a window in the opposite order
  hw::Machine machine;
  sim::PayloadPool payloads;
  RdmaPlane plane;

 private:
  std::map<unsigned, std::unique_ptr<StandIn>> dies_;
};

}  // namespace cm384::rdma
