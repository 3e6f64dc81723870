#include "ub_fabric/virtual_output_queues.h"

#include <cassert>

namespace cm384::ub {

VirtualOutputQueues::VirtualOutputQueues(const std::vector<unsigned>& inputs, unsigned lanes)
    : lanes_(lanes), state_(inputs.size()), arbiters_(inputs.size() * lanes) {
  std::size_t places = 0;
  for (std::size_t output = 0; output < inputs.size(); ++output) {
    assert(inputs[output] <= 4096);
    state_[output].wide = inputs[output] > 64;
    for (unsigned lane = 0; lane < lanes; ++lane) {
      Arbiter& arbiter = arbiters_[output * lanes + lane];
      arbiter.first = static_cast<std::uint32_t>(places);
      places += inputs[output];
      if (!state_[output].wide) continue;
      arbiter.requests = words_.size();
      words_.resize(words_.size() + 1 + (inputs[output] + 63) / 64);
    }
  }
  last_.assign(places, kNone);
}

void VirtualOutputQueues::set_wide(const Arbiter& arbiter, unsigned input) {
  std::uint64_t* const words = &words_[arbiter.requests];
  words[0] |= std::uint64_t{1} << input / 64;
  words[1 + input / 64] |= std::uint64_t{1} << input % 64;
}

bool VirtualOutputQueues::clear_wide(const Arbiter& arbiter, unsigned input) {
  std::uint64_t* const words = &words_[arbiter.requests];
  words[1 + input / 64] &= ~(std::uint64_t{1} << input % 64);
  if (words[1 + input / 64] == 0) words[0] &= ~(std::uint64_t{1} << input / 64);
  return words[0] == 0;
}

unsigned VirtualOutputQueues::next_wide(const Arbiter& arbiter) const {
  const std::uint64_t* const words = &words_[arbiter.requests];
  const unsigned word = arbiter.next / 64;
  if (word < 64 && words[0] >> word & 1) {
    const std::uint64_t after = words[1 + word] >> arbiter.next % 64 << arbiter.next % 64;
    if (after != 0) return word * 64 + static_cast<unsigned>(std::countr_zero(after));
  }
  const std::uint64_t later = word < 63 ? words[0] >> (word + 1) << (word + 1) : 0;
  const auto first = static_cast<unsigned>(std::countr_zero(later != 0 ? later : words[0]));
  return first * 64 + static_cast<unsigned>(std::countr_zero(words[1 + first]));
}

}  // namespace cm384::ub
