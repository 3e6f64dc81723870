// Messages of an MoE layer from a recorded routing: every token to the dies of its experts, and back.
#pragma once

#include <string>
#include <vector>

#include "traces/routing/routing.h"
#include "traces/traffic.h"

namespace cm384::traces {

struct RoutingTraffic {
  int ranks = 8;    // on dies 0, 1, ...
  int batch = 128;  // tokens of a rank and step
  int steps = 1;
  std::uint64_t dispatch_bytes = 7680, combine_bytes = 14336;  // of a token
  Time expert_time{};                                          // from a rank's last token to its first answer
  int cores = 48;                                              // of a die that send, in turn
  // Ranks that have each expert, of which tokens take turns; empty: in contiguous blocks, as even as can be.
  std::vector<std::vector<int>> ranks_of_expert;
};

struct RoutingTrafficResult {
  std::uint64_t records = 0, messages = 0,
                local = 0;  // local: to an expert of the token's own rank, not written
};

// Step s takes the next ranks * batch rows, wrapping round; a rank's step begins when all of its answers are
// there. A token goes once to a rank, however many of its experts are there. Throws InputError where ranks
// and experts do not fit.
RoutingTrafficResult write_routing_traffic(const Routing& routing, const RoutingTraffic& how,
                                           TrafficSink& sink);

// Lines "expert,rank" after a header of these names, every expert once; or JSON: the expert map of vLLM
// Ascend
// ({"layer_list": [{"device_list": [{"device_id", "device_expert"}]}]}), or the list of the experts of all
// slots of all ranks that EPLB makes, of a layer or of each, alone or as SGLang's physical_to_logical_map.
// `layer`: which of several; -1: there is one. Throws InputError.
std::vector<std::vector<int>> expert_ranks_from_file(const std::string& path, int experts, int ranks,
                                                     int layer = -1);

}  // namespace cm384::traces
