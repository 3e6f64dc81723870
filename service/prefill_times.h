// How long a batch of prompts takes on one instance.
#pragma once

#include <optional>
#include <vector>

#include "service/deployment.h"
#include "service/library.h"

namespace cm384::service {

// What a batch computes: new tokens, and pairs of causal attention: the sum over them of tokens before each.
struct PrefillWork {
  double tokens = 0, pairs = 0;
  // `fresh` tokens of a prompt behind `cached` ones.
  void add(double fresh, double cached) {
    tokens += fresh;
    pairs += fresh * (cached + fresh / 2);
  }
};

// Measured batches of one instance: what attention takes is a curve over pairs, all else one over tokens.
// Neither falls, so that a batch of more tokens or more pairs never takes less.
class PrefillCurves {
 public:
  struct Batch {
    PrefillWork work;
    double latency_ms = 0, attention_ms = 0;  // attention's part of it
  };
  // Nothing unless there are two numbers of tokens and two of pairs: fewer say nothing of other batches.
  static std::optional<PrefillCurves> through(std::vector<Batch> batches);

  // What is less than the least measured takes as long as that.
  StepTime of(const PrefillWork& work) const;

 private:
  PrefillCurves(std::vector<Batch> batches, MonotoneCurve rest, MonotoneCurve attention);
  double leave_one_out() const;

  std::vector<Batch> batches_;
  MonotoneCurve rest_, attention_;  // ms, by tokens and by pairs
  double error_ = 0;
};

// Measured batches of the library where it has enough of the instance's dies; otherwise the deployment's
// batch_time, of which the share of attention goes with pairs and the rest with tokens, above the least time.
class PrefillTimes {
 public:
  PrefillTimes(const Deployment& deployment, const Library& library);
  bool measured() const { return measured_.has_value(); }
  StepTime of(const PrefillWork& work) const;

 private:
  PrefillPool pool_;
  std::optional<PrefillCurves> measured_;
};

}  // namespace cm384::service
