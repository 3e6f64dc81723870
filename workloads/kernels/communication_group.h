// The resources of a communication group at each of its ranks, in memory of their dies: what GetHcclContext()
// returns, and what stands in for the server of collectives (firmware/abi/communication.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "system/host/runtime.h"

namespace cm384::studies {

struct GroupMember {
  int die = 0;
  std::uint32_t world_rank = 0;
  // Addresses of its windows and their bytes; 0: none.
  std::uint64_t window_in = 0, window_out = 0, window_exp = 0;
  std::uint64_t window_bytes = 0, window_exp_bytes = 0;
};

// Of member 0, 1, ..: rank 0, 1, .. of the group. Returns where each member's resources stand.
std::vector<std::uint64_t> lay_out_group(host::Runtime& runtime, std::span<const GroupMember> members);

// For collectives among the members, whose resources stand at `places`. Groups with queues of their own have
// different numbers.
void lay_out_group_server(host::Runtime& runtime, std::span<const GroupMember> members,
                          std::span<const std::uint64_t> places, std::uint16_t number);

}  // namespace cm384::studies
