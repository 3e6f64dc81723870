// Rates and latencies of a sub-plane's links: those of the machine, or a link's own.
#pragma once

#include "hw/units.h"
#include "ub_fabric/parameters.h"
#include "ub_fabric/topology/network.h"

namespace cm384::ub {

struct LinkTiming {
  Clock flit;
  Time latency;
};

// Of the sending end number `link` of a chip.
LinkTiming timing_of_link(const Parameters& parameters, const Network& network, unsigned link, int plane);
// Of an endpoint's sending end.
LinkTiming timing_of_port(const Parameters& parameters, const Network& network, Endpoint endpoint, int plane);
// Of a chip, for packets that go on to another one or come from an endpoint.
Time pipeline_of(const Parameters& parameters, const Network& network, unsigned chip);

// Flits of a link of which a share of its physical lanes works.
Clock narrowed(const Clock& flit, double width);
// Whether flits of one clock take longer than those of another.
inline bool slower(const Clock& one, const Clock& other) {
  return one.start(1024) > other.start(1024);
}

// The least that a packet takes from an endpoint to its chip, or back, and from an endpoint to the end of its
// chip's pipeline: the widths of windows depend on them.
Time shortest_endpoint_latency(const Parameters& parameters, const Network& network);
Time shortest_way_in(const Parameters& parameters, const Network& network);

}  // namespace cm384::ub
