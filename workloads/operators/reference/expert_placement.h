// Which rank holds which expert.
//
// Shared expert: with `shared_copies` > 0 every token also goes to one shared expert, whose copies stand on
// ranks 0 .. shared_copies - 1, one each, and nothing else does. Routed experts stand on the other ranks:
//   - no more ranks than experts: contiguous blocks of experts; where they do not divide, the first ranks
//   have one more;
//   - more ranks than experts: one expert per rank, expert i mod experts on the i-th rank, so the first
//   experts have one
//     copy more. No rank is idle.
// A source rank sends to copy (rank mod copies). EP320 of CloudMatrix384 is (320, 256, 32): 32 shared copies,
// 256 routed experts, 32 redundant copies.
#pragma once

#include <cstddef>
#include <vector>

#include "firmware/abi/dispatch.h"

namespace cm384::reference {

// A rank's, token's or expert's number as the index of a container.
inline std::size_t index(int number) {
  return static_cast<std::size_t>(number);
}

struct ExpertPlacement {
  int ranks = 0;
  int experts = 0;                          // routed, logical
  int shared = 0;                           // shared experts per token: 0 or 1
  int local_experts = 0;                    // most slots on a rank
  std::vector<int> own_experts;             // slots on each rank
  std::vector<cm384_expert_copies> copies;  // [experts + shared]
  std::vector<cm384_expert_slot> slots;     // copies of an expert stand together

  // The slot that a source rank uses for a logical expert.
  const cm384_expert_slot& slot_of(int expert, int source) const {
    const cm384_expert_copies& c = copies[static_cast<std::size_t>(expert)];
    return slots[c.first + static_cast<unsigned>(source) % c.copies];
  }
};

// Throws InputError where there is no such placement, or a rank would need more status entries than its
// window has.
ExpertPlacement place_experts(int ranks, int experts, int shared_copies = 0);

// The same on the ranks behind `others`, which hold no experts. Throws InputError as above.
ExpertPlacement place_after(int others, ExpertPlacement placement);

// For those that place: checks the numbers; notes the most slots of a rank. Both throw as above.
ExpertPlacement empty_placement(int ranks, int experts, int shared_copies);
void count_slots(ExpertPlacement& placement);

}  // namespace cm384::reference
