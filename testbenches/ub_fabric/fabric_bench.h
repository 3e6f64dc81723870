// A fabric with stand-ins for dies and sockets: fixed memory latencies, logs of what arrived and came back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/engine/event_queue.h"
#include "base/engine/payload.h"
#include "base/engine/transaction.h"
#include "ub_fabric/controller.h"
#include "ub_fabric/packet.h"
#include "ub_fabric/parameters.h"
#include "ub_fabric/sub_plane.h"

namespace cm384::ub {

// The default machine, with overrides as the command line gives them.
Parameters machine(const std::vector<std::string>& overrides = {});

// In a Clos: the sending end of an L1 chip towards an L2 chip.
inline unsigned link_up(const SubPlane& plane, unsigned node, unsigned l2) {
  const Network& network = plane.network();
  return network.link_between(network.chip("l1chip", node), network.chip("l2chip", l2));
}

// Initiator and target at one endpoint.
class StandIn final : public sim::RemoteClient, public sim::RemoteTarget {
 public:
  struct Access {
    sim::Request request;  // address is the offset
    std::byte first{};     // first byte written
  };
  struct Done {
    std::uint32_t tag = 0;
    Time at;
    sim::Outcome outcome = sim::Outcome::done;
    std::byte first{};  // first byte read
  };

  StandIn(const Parameters& parameters, Endpoint self, std::uint32_t source, PacketPool& packets,
          sim::PayloadPool& payloads);

  void completed(const sim::Completion& completion, Time at) override;
  Time access(sim::Request& request, sim::Outcome& outcome) override;

  // Plans a request. Writes carry `tag`'s low byte in every byte.
  void request(Time at, sim::Operation operation, std::uint64_t address, std::uint32_t bytes,
               std::uint32_t tag, unsigned lane = 0, unsigned core = 0);
  // Keeps `depth` requests in the controller from time 0 on, `count` in all; addresses from `next`.
  void stream(sim::Operation operation, std::uint32_t bytes, std::uint64_t count, std::uint64_t depth,
              std::function<std::uint64_t(std::uint64_t)> next, unsigned lane = 0);

  void run_until(Time end);

  sim::EventQueue queue;
  UbController controller;
  Time read_latency{};
  Time write_latency{};
  std::uint64_t memory_bytes = std::uint64_t{1} << 36;
  bool logs = true;
  std::vector<Access> accesses;
  std::vector<Done> done;
  std::uint64_t completions = 0;
  std::uint64_t bytes_done = 0;
  Time first_done = Time::never();
  Time last_done{};

 private:
  enum : std::uint32_t { kBench = 0, kController = 1 };
  void submit(const sim::Request& request);
  void pump();

  sim::PayloadPool& payloads_;
  std::vector<sim::Request> planned_;
  std::function<std::uint64_t(std::uint64_t)> next_;
  sim::Request pattern_;
  std::uint64_t left_ = 0;
  std::uint64_t sent_ = 0;
};

// Sub-planes and one stand-in for each endpoint listed; runs them in windows of the lookahead.
class FabricBench {
 public:
  FabricBench(const Parameters& parameters, const std::vector<unsigned>& endpoints, std::uint64_t seed = 1);

  StandIn& at(unsigned endpoint) { return *units_[index_[endpoint]]; }
  std::vector<std::unique_ptr<StandIn>>& units() { return units_; }
  SubPlane& plane(unsigned index) { return *planes_[index]; }
  unsigned planes() const { return static_cast<unsigned>(planes_.size()); }
  // Until `end`, or until nothing is left to do.
  void run(Time end = Time::never());
  std::uint64_t packet_hops() const;
  std::uint64_t events() const;

  bool reversed = false;  // runs the modules of a window in the opposite order
  PacketPool packets;
  sim::PayloadPool payloads;

 private:
  Time window_;
  std::vector<std::unique_ptr<SubPlane>> planes_;
  std::vector<std::size_t> index_;
  std::vector<std::unique_ptr<StandIn>> units_;
  Time now_{};
};

}  // namespace cm384::ub
