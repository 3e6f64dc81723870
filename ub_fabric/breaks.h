// Parts of a sub-plane that go out of order while it runs. All of it is known beforehand, and nothing of it
// is there where nothing breaks.
//
// At its time a chip or link loses what it holds and what arrives later; what has left a chip, or has reached
// the other end of a link, goes on. From then on all go by a table without it: packets that wait for a dead
// output take another, those without a way are lost, and give their cells back. A lost packet comes back to
// its initiator, which sends the request again resend_timeout after it was last sent, by a port that leads
// there and back; a target that has performed it answers it again. A request that is only late is not sent
// again.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/text/units.h"
#include "ub_fabric/topology/network.h"

namespace cm384::ub {

// From a time on: a table with all that is out of order then.
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

// What a sub-plane keeps of it.
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
