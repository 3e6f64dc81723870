// Freedom from deadlock after Dally and Seitz: no circle in the graph whose nodes are the buffers (link and
// lane class) and whose edges say that a packet may hold the one while it waits for the other.
#pragma once

#include <vector>

namespace cm384::ub {

class Network;

struct LinkClassOfCircle {
  unsigned link = 0;
  unsigned lane_class = 0;
};

// The buffers of one circle in order; empty where there is none. Of ways without detours: the second part of
// a detour has classes of its own, above all of the first, so that a circle would have to close within a
// part.
std::vector<LinkClassOfCircle> find_circle(const Network& network);

}  // namespace cm384::ub
