// A link as paths meet it: what of the machine it is, its wire and the buffer behind it.
#pragma once

#include <array>
#include <cstdint>

#include "npu_core/causality/trace_log.h"
#include "system/machine/supernode.h"
#include "system/observe/explain/credits.h"
#include "system/observe/explain/server.h"

namespace cm384::observe {

// What a link is, as an entry of the trace log before its first packet.
struct ExplainedLink {
  enum Flag : std::uint16_t {
    kToEndpoint = 1,
    kFromEndpoint = 2,
    kInsideDie = 4,  // from a chip that is part of the die it leads to
    kOwnRate = 8,    // its bandwidth is no parameter
  };
  // Number in the log: of its sub-plane.
  static std::uint64_t number_of(const supernode::LinkName& link);
  // Appends the entries of all links of a machine.
  static void append_all(npu::TraceLog& log, const supernode::Supernode& machine);
};

struct LinkPath {
  static constexpr std::size_t kLanes = 16;

  bool to_endpoint = false, from_endpoint = false, inside_die = false;
  Served served;
  double latency = 0, pipeline = 0;  // of the link, of the chip that it leaves; ps
  Server wire;
  std::array<Credits, kLanes> lanes;

  static LinkPath of(const npu::TraceEntry& entry, const std::uint64_t* words);
};

}  // namespace cm384::observe
