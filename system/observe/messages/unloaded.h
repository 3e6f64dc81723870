// What a message takes on a machine that does nothing else, in closed form: the least, by each of the places
// that its requests share.
//
//     T = max over places of T1 + n / w * max(T1, w * i) + n % w * i
//
// n: requests that pass the place before the last one; w: outstanding there at most; i: between two of them,
// for an engine no less than what those of the others that stand between take at a shared place. Places are
// the engine with the most requests, the controllers at both ends, the target's ports into its memory, and
// the link between the two dies of a package or, in each sub-plane, the busiest link of the ways there and
// back. A sub-plane gets its part of the requests (ub.controller.spreading), a chip's parallel ways share
// evenly what passes it; a routing policy that keeps flows or destinations to one way may do worse, which is
// slowdown.
//
// T1, the latency of one request: wires, chips, its flits on the slowest link, the target's inbound latency
// and its memory, and the same way back for the response. L2 has what is read, and translations hit: what
// these take beyond that is slowdown.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hw/machine.h"
#include "system/machine/supernode.h"
#include "traces/traffic.h"

namespace cm384::observe {

class UnloadedTime {
 public:
  // The machine outlives it, and has its faults.
  explicit UnloadedTime(const supernode::Supernode& machine);

  // Of a transfer to another unit; `share`: bytes that one engine takes of it. Nothing for what it has no
  // form of: accelerators without cores, copies of SDMA engines, fixpipes, writes that merge, the RDMA plane,
  // and units that do not reach each other.
  std::optional<Time> of(const traces::TrafficRecord& record, std::uint64_t share);
  // Links of a request's shortest way; 0 within a package.
  int hops(const traces::TrafficRecord& record);

 private:
  // Key of the memo: everything that the time depends on.
  struct Asked {
    std::uint64_t ends = 0, bytes = 0, share = 0;  // both units and how; of a burst
    std::int64_t stride = 0;
    std::uint32_t bursts = 0, in_request = 0;  // where in 512 B it begins
    bool operator==(const Asked&) const = default;
  };
  struct HashOfAsked {
    std::size_t operator()(const Asked& asked) const;
  };
  static constexpr std::size_t kMostKnown = 1u << 16;
  Asked asked_of(const traces::TrafficRecord& record, std::uint64_t share) const;
  std::optional<Time> work_out(const traces::TrafficRecord& record, std::uint64_t share);
  struct Way {              // of one sub-plane, from an endpoint to another
    double latency_ps = 0;  // of wires and chips, the least
    double flit_ps = 0;     // on the slowest link of the fastest way
    double stored_ps = 0;   // packet-store: of a flit on all links but the last
    double busiest_ps = 0;  // that a flit sent into it takes of the busiest link
    double buffers = 0;     // of chips, on all ways up to there
    double passed = 0;      // the same up to the end
    double port_ps = 0;     // of a flit on the sending endpoint's own link
    int links = 0;          // 0: there is none
  };
  using Ways = std::vector<Way>;  // by sub-plane
  struct Requests {
    std::uint64_t count = 0;
    double bytes = 0;        // of all
    std::uint32_t last = 0;  // bytes of the last one
    bool partial = false;    // one covers part of a 32 B block
    double mean() const { return bytes / static_cast<double>(count); }
  };
  // One place, as above.
  struct Place {
    static constexpr double kAny = 1e18;
    double interval_ps = 0;
    double window = kAny;
    std::uint64_t at_once = 1;  // requests that pass it side by side: so many of the first wait for nobody
  };
  static void keep_busiest(Way& way, double flit_ps, double buffers);
  static void add(Requests& requests, std::uint64_t begin, std::uint64_t end);
  static double train(double one, Place place, std::uint64_t count);
  bool by_package(const traces::TrafficRecord& record) const;
  int supernode_of(traces::Unit unit) const;
  ub::Endpoint endpoint(traces::Unit unit) const;
  const Ways& ways(const traces::TrafficRecord& record, bool back);
  Way way(const ub::SubPlane& plane, ub::Endpoint from, ub::Endpoint to) const;
  void pass_chips(Way& way, const ub::SubPlane& plane, unsigned from, unsigned to) const;
  double over(const Way& way, int flits) const {
    return way.latency_ps + flits * (way.flit_ps + way.stored_ps);
  }
  double memory_ps(const traces::TrafficRecord& record, double bytes) const;
  Place ports_of(const traces::TrafficRecord& record, const Requests& all) const;
  static double longest(double one, Place engine, const Requests& all, const Requests& most,
                        std::initializer_list<Place> shared);
  double package_ps(const traces::TrafficRecord& record, const Requests& all, const Requests& most,
                    Place engine) const;
  double planes_ps(const traces::TrafficRecord& record, const Requests& all, const Requests& most,
                   Place engine, const Ways& there, const Ways& back) const;

  const supernode::Supernode& supernode_;
  const hw::Machine& machine_;
  bool store_;
  std::string spreading_;
  std::unordered_map<std::uint64_t, Ways> ways_;                       // by both units; looked up only
  std::unordered_map<Asked, std::optional<Time>, HashOfAsked> known_;  // looked up only
};

}  // namespace cm384::observe
