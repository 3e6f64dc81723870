// Rates and latencies of everything that a packet passes in one sub-plane: those of the machine, or a link's
// or chip's own, times the sub-plane's rate, less what --fault lanes= takes away. The sub-plane builds the
// table of them; its controllers, chips of other models, benches and observers read it there.
#pragma once

#include <vector>

#include "base/text/units.h"
#include "ub_fabric/parameters.h"
#include "ub_fabric/topology/network.h"

namespace cm384::ub {

struct LinkTiming {
  Clock flit;
  Time latency;
};

struct ChipTiming {
  // Flits of the fastest link that enters or leaves the chip, all lanes working: a chip that moves a flit per
  // port and cycle keeps up with all of its links at this clock.
  Clock flit;
  Time pipeline;  // for packets that go on to another chip or come from an endpoint
};

// Timing by the machine and its topology, with all lanes working, where there is no sub-plane to ask: of the
// sending end number `link` of a chip, of an endpoint's sending end, of a chip.
LinkTiming timing_of_link(const Parameters& parameters, const Network& network, unsigned link, int plane);
LinkTiming timing_of_port(const Parameters& parameters, const Network& network, Endpoint endpoint, int plane);
Time pipeline_of(const Parameters& parameters, const Network& network, unsigned chip);

class LinkTimings {
 public:
  // `plane`: number of the sub-plane within its supernode.
  LinkTimings(const Parameters& parameters, const Network& network, int plane);

  // Timing of the sending end number `link` of a chip.
  const LinkTiming& of_link(unsigned link) const { return links_[link]; }
  // Timing of an endpoint's sending end.
  const LinkTiming& of_port(Endpoint endpoint) const { return ports_[endpoint]; }
  const ChipTiming& of_chip(unsigned chip) const { return chips_[chip]; }
  // Flits of links to dies, and between chips, that have no rate of their own and all their lanes.
  const Clock& die_flit() const { return die_flit_; }
  const Clock& trunk_flit() const { return trunk_flit_; }

  // From now on a share of the link's physical lanes works: its rate times `width`, to 10 MB/s.
  void narrow_link(unsigned link, double width);
  void narrow_port(Endpoint endpoint, double width);

  // The least that a packet takes from an endpoint to its chip, or back, and from an endpoint to the end of
  // its chip's pipeline: the widths of windows depend on them.
  Time shortest_endpoint_latency() const { return shortest_endpoint_latency_; }
  Time shortest_way_in() const { return shortest_way_in_; }

 private:
  Clock die_flit_, trunk_flit_;
  std::vector<LinkTiming> links_, ports_;
  std::vector<ChipTiming> chips_;
  Time shortest_endpoint_latency_ = Time::never(), shortest_way_in_ = Time::never();
};

// Whether flits of one clock take longer than those of another.
inline bool slower(const Clock& one, const Clock& other) {
  return one.start(1024) > other.start(1024);
}

}  // namespace cm384::ub
