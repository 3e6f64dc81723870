// The packets that wait in a sub-plane's switch chips: one queue per (output, lane, input), with request
// masks and round-robin pointers for the arbiters of the outputs.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "ub_fabric/packet.h"

namespace cm384::ub {

// Outputs of any number of chips.
class VirtualOutputQueues {
 public:
  // Each output sees `inputs` inputs.
  VirtualOutputQueues(unsigned outputs, unsigned lanes, unsigned inputs)
      : VirtualOutputQueues(std::vector<unsigned>(outputs, inputs), lanes) {}
  // Output n sees inputs[n] inputs, at most 4096.
  VirtualOutputQueues(const std::vector<unsigned>& inputs, unsigned lanes);

  // Bit l: somebody waits on lane l of the output.
  unsigned lanes_waiting(unsigned output) const { return state_[output].lanes; }
  int queued_cells(unsigned output) const { return state_[output].cells; }

  // Asks the cache for what push() touches.
  void prefetch(unsigned output, unsigned lane) const {
    __builtin_prefetch(&state_[output], 1);
    __builtin_prefetch(&arbiters_[output * lanes_ + lane], 1);
  }

  // A packet of `input` that is to leave by `lane`; that by which it came may be another.
  void push(unsigned output, unsigned lane, unsigned input, Hop hop) {
    Arbiter& arbiter = arbiters_[output * lanes_ + lane];
    std::uint32_t& last = last_[arbiter.first + input];
    const std::uint32_t node = allocate(hop);
    if (last != kNone) {
      nodes_[node].next = nodes_[last].next;
      nodes_[last].next = node;
    } else {
      nodes_[node].next = node;
      state_[output].lanes |= static_cast<std::uint16_t>(1u << lane);
      if (state_[output].wide) [[unlikely]] {
        set_wide(arbiter, input);
      } else {
        arbiter.requests |= std::uint64_t{1} << input;
      }
    }
    last = node;
    state_[output].cells += hop.cells();
  }

  // The lane whose turn it is among `lanes` (not 0).
  unsigned next_lane(unsigned output, unsigned lanes) const {
    const unsigned turn = state_[output].next_lane;
    const unsigned after = lanes >> turn << turn;
    return static_cast<unsigned>(std::countr_zero(after != 0 ? after : lanes));
  }
  // The input whose turn it is on a lane with requests.
  unsigned next_input(unsigned output, unsigned lane) const {
    const Arbiter& arbiter = arbiters_[output * lanes_ + lane];
    if (state_[output].wide) [[unlikely]]
      return next_wide(arbiter);
    const std::uint64_t after = arbiter.requests >> arbiter.next << arbiter.next;
    return static_cast<unsigned>(std::countr_zero(after != 0 ? after : arbiter.requests));
  }
  // Calls visit(input) for each that waits on a lane, from the one whose turn it is on.
  template <class Visit>
  void for_each_input(unsigned output, unsigned lane, Visit&& visit) const {
    const Arbiter& arbiter = arbiters_[output * lanes_ + lane];
    if (state_[output].wide) return for_each_wide(arbiter, visit);
    const std::uint64_t after = arbiter.requests >> arbiter.next << arbiter.next;
    for (std::uint64_t left = after; left != 0; left &= left - 1)
      visit(static_cast<unsigned>(std::countr_zero(left)));
    for (std::uint64_t left = arbiter.requests & ~after; left != 0; left &= left - 1)
      visit(static_cast<unsigned>(std::countr_zero(left)));
  }
  Hop front(unsigned output, unsigned lane, unsigned input) const {
    return nodes_[nodes_[last_[arbiters_[output * lanes_ + lane].first + input]].next].hop;
  }
  // Removes the front packet and moves the turns on.
  void pop(unsigned output, unsigned lane, unsigned input) {
    Arbiter& arbiter = arbiters_[output * lanes_ + lane];
    std::uint32_t& last = last_[arbiter.first + input];
    const std::uint32_t node = nodes_[last].next;
    State& state = state_[output];
    state.cells -= nodes_[node].hop.cells();
    if (node == last) {
      last = kNone;
      bool none = true;
      if (state.wide) [[unlikely]] {
        none = clear_wide(arbiter, input);
      } else {
        arbiter.requests &= ~(std::uint64_t{1} << input);
        none = arbiter.requests == 0;
      }
      if (none) state.lanes &= static_cast<std::uint16_t>(~(1u << lane));
    } else {
      nodes_[last].next = nodes_[node].next;
    }
    nodes_[node].next = free_;
    free_ = node;
    // Behind the last input nothing is left to find, so the search starts at the first.
    arbiter.next = state.wide ? input + 1 : (input + 1) & 63;
    state.next_lane = static_cast<std::uint8_t>(lane + 1 == lanes_ ? 0 : lane + 1);
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Arbiter {
    std::uint64_t requests = 0;  // bit i: input i waits; of a wide one: words_[requests + w] has 64 of them
    std::uint32_t next = 0;      // input whose turn it is
    std::uint32_t first = 0;     // its place in last_
  };
  struct State {
    std::int32_t cells = 0;
    std::uint16_t lanes = 0;
    std::uint8_t next_lane = 0;
    bool wide = false;  // more than 64 inputs
  };
  struct Node {
    Hop hop;
    std::uint32_t next = kNone;
  };

  std::uint32_t allocate(Hop hop) {
    std::uint32_t node = free_;
    if (node == kNone) {
      node = static_cast<std::uint32_t>(nodes_.size());
      nodes_.emplace_back();
    } else {
      free_ = nodes_[node].next;
    }
    nodes_[node].hop = hop;
    return node;
  }
  // Of a wide arbiter: the first word says which of the others are not 0.
  void set_wide(const Arbiter& arbiter, unsigned input);
  bool clear_wide(const Arbiter& arbiter, unsigned input);  // whether nobody waits any more
  unsigned next_wide(const Arbiter& arbiter) const;
  template <class Visit>
  void for_each_wide(const Arbiter& arbiter, Visit&& visit) const {
    const std::uint64_t* const words = &words_[arbiter.requests];
    for (const bool after : {true, false}) {
      for (std::uint64_t left = words[0]; left != 0; left &= left - 1) {
        const auto word = static_cast<unsigned>(std::countr_zero(left));
        for (std::uint64_t of = words[1 + word]; of != 0; of &= of - 1) {
          const unsigned input = word * 64 + static_cast<unsigned>(std::countr_zero(of));
          if ((input >= arbiter.next) == after) visit(input);
        }
      }
    }
  }

  unsigned lanes_;
  std::vector<State> state_;         // by output
  std::vector<Arbiter> arbiters_;    // by output and lane
  std::vector<std::uint32_t> last_;  // by output, lane and input: last node of a ring
  std::vector<std::uint64_t> words_;
  std::vector<Node> nodes_;
  std::uint32_t free_ = kNone;
};

}  // namespace cm384::ub
