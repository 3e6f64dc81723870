// Room for a block by moving others that run.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "workloads/cluster/npu_pool.h"

namespace cm384::cluster {

struct MovableBlock {
  std::size_t owner = 0;  // of whoever asks
  Place place;
};
struct Room {
  Place place;  // of the new block
  struct Move {
    std::size_t block = 0;  // index of it in what was given
    Place to;
  };
  std::vector<Move> moves;
};

// Where no block of `npus` finds a place: a supernode (or, for a block that lies in one node, a node) from
// which the fewest NPUs have to move, each block to where room is now. The pool has the blocks at their new
// places then. Empty: nowhere, or not found in some thousand steps; the pool is as it was.
std::optional<Room> make_room(NpuPool& pool, int npus, const std::vector<MovableBlock>& blocks);

}  // namespace cm384::cluster
