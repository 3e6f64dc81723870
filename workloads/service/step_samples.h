// Some steps of decode and some batches of prompts of a service's run, drawn evenly from all of them while
// they pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "traces/random.h"
#include "workloads/service/decode_instance.h"

namespace cm384::service {

// Reservoir sampling: after n of them each is kept with chance wanted / n. A sample has a `number` among all.
template <class Sample>
class DrawnSamples {
 public:
  DrawnSamples(int wanted, std::uint64_t seed, std::uint64_t stream)
      : wanted_(wanted), random_(seed, stream) {}

  // Where to keep what passes now; null: it is not kept.
  Sample* draw() {
    if (wanted_ == 0) return nullptr;
    const std::int64_t number = seen_++;
    auto place = static_cast<std::size_t>(number);
    if (number >= wanted_) place = random_.below(static_cast<std::uint64_t>(number) + 1);
    if (place >= static_cast<std::size_t>(wanted_)) return nullptr;
    if (place == kept_.size()) kept_.emplace_back();
    kept_[place].number = number;
    return &kept_[place];
  }
  // The samples, ordered by number.
  std::vector<Sample> release() {
    std::ranges::sort(kept_, {}, &Sample::number);
    return std::move(kept_);
  }
  const std::vector<Sample>& kept() const { return kept_; }

 private:
  int wanted_;
  traces::Random random_;
  std::int64_t seen_ = 0;
  std::vector<Sample> kept_;
};

struct StepSample {
  std::int64_t number = 0;  // among all steps, from 0
  Time at{};                // its begin, from the first arrival
  int instance = 0;
  DecodeInstance::Load load;                       // that its time was asked for
  std::vector<std::vector<std::int32_t>> lengths;  // by die: tokens of each of its requests
};

class StepSamples {
 public:
  StepSamples(int wanted, std::uint64_t seed) : drawn_(wanted, seed, 77) {}
  void see(Time at, int instance, const DecodeInstance& decode, const DecodeInstance::Load& load);
  // The samples, ordered by number.
  std::vector<StepSample> release() { return drawn_.release(); }

 private:
  DrawnSamples<StepSample> drawn_;
};

struct BatchSample {
  struct Prompt {
    std::int32_t fresh = 0;   // tokens that the batch computes
    std::int32_t before = 0;  // that are cached, or were computed by batches before
  };
  std::int64_t number = 0;  // among all batches, from 0
  Time at{};                // its begin, from the first arrival
  int instance = 0;
  std::vector<Prompt> prompts;
};
using BatchSamples = DrawnSamples<BatchSample>;

}  // namespace cm384::service
