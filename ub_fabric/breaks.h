// Parts of a sub-plane that fail while it runs. All failures are known beforehand; without any none of this
// is allocated.
//
// When a chip or link fails it loses the packets that it holds and those that arrive later; packets that have
// left the chip, or reached the other end of the link, continue. From then on routing uses a table without
// it: packets waiting for a dead output take another one, packets without a route are lost and return their
// credits. A lost packet is reported to its initiator, which sends the request again resend_timeout after it
// was last sent, through a port that leads there and back; a target that has performed it answers it again. A
// request that is only late is not sent again.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/text/units.h"
#include "ub_fabric/topology/network.h"

namespace cm384::ub {

// A routing table that holds from a time on: everything that is out of order then is missing in it.
struct NetworkChange {
  Time at;
  std::shared_ptr<const Network> network;
};

// From a time on a link has a share of the bandwidth it had, as part of its physical lanes fails.
struct Narrowing {
  Time at;
  unsigned link = 0;
  double width = 1;
};

// The failures of one sub-plane.
struct Breaks {
  std::shared_ptr<const Network> before;  // controllers may still look at it
  std::vector<NetworkChange> changes;
  std::vector<Narrowing> narrowings;
  // When they go out of order; never() also for what is out of order from the start.
  std::vector<Time> link_down;  // by input or output
  std::vector<Time> chip_down;
  // By chip and destination, from the first change on: ways of packets that enter pass the chip. Others, on
  // their way when something broke, are lost there: they could close a circle of waiting packets.
  std::vector<bool> passed;
  std::uint64_t lost = 0;
  std::uint64_t rerouted = 0;
};

}  // namespace cm384::ub
