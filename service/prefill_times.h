// How long a batch of prompts takes on one instance.
#pragma once

#include <optional>

#include "service/deployment.h"
#include "service/library.h"

namespace cm384::service {

// What a batch computes: new tokens, and for attention the sum over them of tokens before each.
struct PrefillWork {
  double tokens = 0, pairs = 0;
  // `fresh` tokens of a prompt behind `cached` ones.
  void add(double fresh, double cached) {
    tokens += fresh;
    pairs += fresh * (cached + fresh / 2);
  }
};

// Measured batches of the library where it has two of the instance's dies; otherwise the deployment's
// batch_time. Either way the share of attention goes with pairs and the rest with tokens, above the least
// time.
class PrefillTimes {
 public:
  PrefillTimes(const Deployment& deployment, const Library& library);
  StepTime of(const PrefillWork& work) const;

 private:
  PrefillPool pool_;
  std::optional<MonotoneCurve> measured_;  // ms by tokens of the instance
  double measured_prompt_ = 0, error_ = 0;
};

}  // namespace cm384::service
