// How long a batch of prompts takes on one instance.
#pragma once

#include <optional>
#include <vector>

#include "workloads/service/deployment.h"
#include "workloads/service/library.h"

namespace cm384::service {

// What a batch computes: new tokens, pairs of causal attention (the sum over them of tokens before each), and
// tokens that need keys and values, which are cached ones too.
struct PrefillWork {
  double tokens = 0, pairs = 0, context = 0;
  // `fresh` tokens of a prompt behind `cached` ones.
  void add(double fresh, double cached) {
    tokens += fresh;
    pairs += fresh * (cached + fresh / 2);
    context += fresh + cached;
  }
};

// Measured batches of one instance: what attention takes is a curve over pairs, keys and values one over the
// context, all else one over new tokens. None falls, so that a batch of more of any never takes less. Reading
// what is cached is no part of it.
class PrefillCurves {
 public:
  struct Batch {
    PrefillWork work;
    double latency_ms = 0, attention_ms = 0, context_ms = 0;  // parts of it: attention, keys and values
    double scaled_error = -1;  // of a scaled one (library.h); -1: it was measured
  };
  // Nothing unless there are two numbers of tokens and two of pairs: fewer say nothing of other batches.
  static std::optional<PrefillCurves> through(std::vector<Batch> batches);

  // What is less than the least measured takes as long as that.
  StepTime of(const PrefillWork& work) const;

 private:
  PrefillCurves(std::vector<Batch> batches, MonotoneCurve rest, MonotoneCurve attention,
                MonotoneCurve context);
  double leave_one_out() const;

  std::vector<Batch> batches_;
  MonotoneCurve rest_, attention_, context_;  // ms, by tokens, pairs, and tokens of the context
  double error_ = 0, scaled_error_ = -1;
};

// Measured batches of the library where it has enough of the instance's dies; otherwise the deployment's
// batch_time, of which the share of attention goes with pairs and the rest with tokens, above the least time.
class PrefillTimes {
 public:
  // Throws InputError for a library that measured such an instance in several ways.
  PrefillTimes(const Deployment& deployment, const Library& library);
  bool measured() const { return one_.has_value(); }
  // Two prompts and more are dealt out over two microbatches where the deployment has them, the library has
  // measured them, and that is faster.
  StepTime of(const PrefillWork& work, int prompts = 1) const;
  // Whether they are dealt out so.
  bool takes_two(const PrefillWork& work, int prompts) const;

 private:
  PrefillSpec spec_;
  std::optional<PrefillCurves> one_, two_;  // by microbatches
};

}  // namespace cm384::service
