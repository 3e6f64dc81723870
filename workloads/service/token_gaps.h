// Waits between two deliveries of tokens: how often each one was, over all answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/text/units.h"

namespace cm384::service {

// A wait between two deliveries of tokens, of so many answers: a step brings each of its requests what it has
// found, the first one after what prefill, transfer and a place took.
struct TokenGap {
  double ms = 0;
  std::int64_t requests = 0;
};

// Steps of a long run take few different times: equal waits are merged whenever there are twice as many
// entries as the last time, so that memory grows with the number of different waits, not of steps.
class TokenGaps {
 public:
  void add(Time wait, std::int64_t requests);
  std::size_t entries() const { return gaps_.size(); }
  // In no order.
  std::vector<TokenGap> release() { return std::move(gaps_); }

 private:
  static constexpr std::size_t kFirst = 65'536;
  void merge();

  std::vector<TokenGap> gaps_;
  std::size_t most_ = kFirst;
};

}  // namespace cm384::service
