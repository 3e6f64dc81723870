// What a message takes on a machine that does nothing else, in closed form: the latency of its last request
// and what the requests before it take at the narrowest place.
//
//     T = T1 + n / w * max(T1, w * i) + n % w * i        n: requests before the last one, w: outstanding at
//     most
//
// T1, the latency of one request: wires, chips, its flits on the slowest link, the target's inbound latency
// and its memory, and the same way back for the response. i, between two requests: the longest of the
// engine's interval, the controller's at either end, and the flits of a request or response on the ports of
// all planes together. L2 has what is read, and translations hit: what these take beyond that is slowdown.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "hw/machine.h"
#include "traces/traffic.h"
#include "ub_fabric/parameters.h"
#include "ub_fabric/topology/network.h"

namespace cm384::observe {

class UnloadedTime {
 public:
  // Both outlive it.
  UnloadedTime(const hw::Machine& machine, const ub::Network& network);

  // Of a transfer to another unit; `share`: bytes that one engine takes of it. Nothing for what it has no
  // form of: copies of SDMA engines, fixpipes, writes that merge, the RDMA plane, and units that do not reach
  // each other.
  std::optional<Time> of(const traces::TrafficRecord& record, std::uint64_t share);
  // Links of a request's shortest way; 0 within a package.
  int hops(const traces::TrafficRecord& record);

 private:
  struct Way {
    double latency_ps = 0;  // of wires and chips
    double flit_ps = 0;     // on the slowest link
    double stored_ps = 0;   // packet-store: of a flit on all links but the last
    int links = 0;          // 0: there is none
  };
  struct Requests {
    std::uint64_t count = 0;
    double bytes = 0;        // of all
    std::uint32_t last = 0;  // bytes of the last one
    bool partial = false;    // one covers part of a 32 B block
  };
  static Requests requests_of(const traces::TrafficRecord& record, std::uint64_t share);
  bool by_package(const traces::TrafficRecord& record) const;
  ub::Endpoint endpoint(traces::Unit unit) const;
  const Way& way(ub::Endpoint from, ub::Endpoint to);
  double over(const Way& way, int flits) const {
    return way.latency_ps + flits * (way.flit_ps + way.stored_ps);
  }
  double memory_ps(const traces::TrafficRecord& record, double bytes) const;
  double package_ps(const traces::TrafficRecord& record, const Requests& requests, double interval) const;

  const hw::Machine& machine_;
  const ub::Network& network_;
  ub::Parameters parameters_;
  std::unordered_map<std::uint32_t, Way> ways_;  // by both ends; looked up only
};

}  // namespace cm384::observe
