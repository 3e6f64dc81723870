// The heap of this process. No part of what is simulated.
#pragma once

#include <cstdint>

namespace cm384::sim {

// From now on what is allocated stands in one range of huge pages, as far as the host has them: a machine's
// state is many small pieces, each window touches some of every page, and the host's table of small pages
// does not stay in its caches. Before other threads start. Returns the bytes of the range, of which only what
// is touched takes memory; 0 where the heap stays as it was.
std::uint64_t use_huge_pages();

}  // namespace cm384::sim
