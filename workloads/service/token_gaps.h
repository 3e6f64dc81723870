// Waits between two deliveries of tokens: how often each one was, over all answers, and the longest one of an
// answer.
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
  // The gaps, in no order.
  std::vector<TokenGap> release() { return std::move(gaps_); }

 private:
  static constexpr std::size_t kFirst = 65'536;
  void merge();

  std::vector<TokenGap> gaps_;
  std::size_t most_ = kFirst;
};

// Waits that the steps of an instance of decode bring those that took part in the step before as well, in
// order, and the longest of those since any of them.
class StepGaps {
 public:
  void add(Time wait);
  std::uint32_t count() const { return count_; }
  // Of all that were added when `count` had been; 0: none was.
  Time longest_since(std::uint32_t count) const;

 private:
  struct Gap {
    std::uint32_t number;
    Time wait;
  };
  std::vector<Gap> falling_;  // those that no later one has reached, by number
  std::uint32_t count_ = 0;
};

}  // namespace cm384::service
