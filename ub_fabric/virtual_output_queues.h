// The packets that wait in a sub-plane's switch chips: one queue an (output, lane, input), with request masks
// and round-robin pointers for the arbiters of the outputs.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "ub_fabric/packet.h"

namespace cm384::ub {

// `outputs` outputs of any number of chips; each sees `inputs` (at most 64) inputs.
class VirtualOutputQueues {
 public:
  VirtualOutputQueues(unsigned outputs, unsigned lanes, unsigned inputs);

  // Bit l: somebody waits on lane l of the output.
  unsigned lanes_waiting(unsigned output) const { return state_[output].lanes; }
  int queued_cells(unsigned output) const { return state_[output].cells; }

  // Asks the cache for what push() touches.
  void prefetch(unsigned output, unsigned lane, unsigned input) const {
    __builtin_prefetch(&state_[output], 1);
    __builtin_prefetch(&arbiters_[output * lanes_ + lane], 1);
    __builtin_prefetch(&last_[(output * lanes_ + lane) * inputs_ + input], 1);
  }

  void push(unsigned output, unsigned input, Hop hop) {
    const unsigned lane = hop.lane();
    Arbiter& arbiter = arbiters_[output * lanes_ + lane];
    std::uint32_t& last = last_[(output * lanes_ + lane) * inputs_ + input];
    const std::uint32_t node = allocate(hop);
    const std::uint64_t bit = std::uint64_t{1} << input;
    if (arbiter.requests & bit) {
      nodes_[node].next = nodes_[last].next;
      nodes_[last].next = node;
    } else {
      nodes_[node].next = node;
      arbiter.requests |= bit;
      state_[output].lanes |= static_cast<std::uint8_t>(1u << lane);
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
    const std::uint64_t after = arbiter.requests >> arbiter.next << arbiter.next;
    return static_cast<unsigned>(std::countr_zero(after != 0 ? after : arbiter.requests));
  }
  Hop front(unsigned output, unsigned lane, unsigned input) const {
    return nodes_[nodes_[last_[(output * lanes_ + lane) * inputs_ + input]].next].hop;
  }
  // Removes the front packet and moves the turns on.
  void pop(unsigned output, unsigned lane, unsigned input) {
    Arbiter& arbiter = arbiters_[output * lanes_ + lane];
    const std::uint32_t last = last_[(output * lanes_ + lane) * inputs_ + input];
    const std::uint32_t node = nodes_[last].next;
    State& state = state_[output];
    state.cells -= nodes_[node].hop.cells();
    if (node == last) {
      arbiter.requests &= ~(std::uint64_t{1} << input);
      if (arbiter.requests == 0) state.lanes &= static_cast<std::uint8_t>(~(1u << lane));
    } else {
      nodes_[last].next = nodes_[node].next;
    }
    nodes_[node].next = free_;
    free_ = node;
    arbiter.next = static_cast<std::uint32_t>(input + 1 == inputs_ ? 0 : input + 1);
    state.next_lane = static_cast<std::uint8_t>(lane + 1 == lanes_ ? 0 : lane + 1);
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Arbiter {
    std::uint64_t requests = 0;  // bit i: input i waits
    std::uint32_t next = 0;      // input whose turn it is
  };
  struct State {
    std::int32_t cells = 0;
    std::uint8_t lanes = 0;
    std::uint8_t next_lane = 0;
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

  unsigned lanes_;
  unsigned inputs_;
  std::vector<State> state_;         // an output
  std::vector<Arbiter> arbiters_;    // an output and lane
  std::vector<std::uint32_t> last_;  // an output, lane and input: last node of a ring
  std::vector<Node> nodes_;
  std::uint32_t free_ = kNone;
};

}  // namespace cm384::ub
