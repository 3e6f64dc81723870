// Some steps of a service's run, drawn evenly from all of them while they pass.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/random.h"
#include "workloads/service/decode_instance.h"

namespace cm384::service {

struct StepSample {
  std::int64_t number = 0;  // among all steps, from 0
  Time at{};                // its begin, from the first arrival
  int instance = 0;
  DecodeInstance::Load load;                       // that its time was asked for
  std::vector<std::vector<std::int32_t>> lengths;  // by die: tokens of each of its requests
};

class StepSamples {
 public:
  StepSamples(int wanted, std::uint64_t seed) : wanted_(wanted), random_(seed, 77) {}
  void see(Time at, int instance, const DecodeInstance& decode, const DecodeInstance::Load& load);
  // By number.
  std::vector<StepSample> take();

 private:
  int wanted_;
  traces::Random random_;
  std::int64_t seen_ = 0;
  std::vector<StepSample> kept_;
};

}  // namespace cm384::service
