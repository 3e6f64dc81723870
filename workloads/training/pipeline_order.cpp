// The order of passes on a rank, schedule by schedule: GPipe (Huang 2019), 1F1B and its interleaved form
// (Narayanan 2021), ZB-H1 (Qi 2023), DualPipe (DeepSeek-V3, figure 5).
#include <algorithm>
#include <array>
#include <deque>

#include "workloads/training/pipeline.h"

namespace cm384::training {
namespace {

using Kind = Pass::Kind;

std::vector<Pass> in_two_halves(const PipelineCase& of, int rank) {
  std::vector<Pass> made;
  for (const Kind kind : {Kind::forward, Kind::backward}) {
    for (int batch = 0; batch < of.micro_batches; ++batch) made.push_back({kind, batch, rank});
  }
  return made;
}

// As many forward passes first as stages follow; then a backward pass behind each forward pass.
std::vector<Pass> alternating(const PipelineCase& of, int rank) {
  std::vector<Pass> made;
  const int first = std::min(of.micro_batches, of.stages - rank - 1);
  for (int n = 0; n < of.micro_batches + first; ++n) {
    if (n < of.micro_batches) made.push_back({Kind::forward, n, rank});
    if (n >= first) made.push_back({Kind::backward, n - first, rank});
  }
  return made;
}

// The same with gradients of weights `rank` micro-batches behind those of inputs, so that these are early at
// the stage before.
std::vector<Pass> split_backward(const PipelineCase& of, int rank) {
  std::vector<Pass> made;
  int weights = 0;
  for (const Pass& pass : alternating(of, rank)) {
    if (pass.kind == Kind::forward) {
      made.push_back(pass);
      continue;
    }
    made.push_back({Kind::inputs, pass.micro_batch, rank});
    if (pass.micro_batch >= rank) made.push_back({Kind::weights, weights++, rank});
  }
  while (weights < of.micro_batches) made.push_back({Kind::weights, weights++, rank});
  return made;
}

// Micro-batches in groups of as many as there are stages: a group passes a rank's first part, then its next.
std::vector<Pass> in_chunks(const PipelineCase& of, int rank) {
  const int group = of.stages * of.chunks, all = of.micro_batches * of.chunks;
  const auto pass = [&](Kind kind, int n) -> Pass {
    const int chunk = n % group / of.stages;
    return {kind, n / group * of.stages + n % of.stages,
            (kind == Kind::forward ? chunk : of.chunks - 1 - chunk) * of.stages + rank};
  };
  std::vector<Pass> made;
  const int first = std::min(all, 2 * (of.stages - rank - 1) + (of.chunks - 1) * of.stages);
  for (int n = 0; n < all + first; ++n) {
    if (n < all) made.push_back(pass(Kind::forward, n));
    if (n >= first) made.push_back(pass(Kind::backward, n - first));
  }
  return made;
}

// Half of the micro-batches come in at each end. `near` are those whose end is nearer to this rank.
class TwoWays {
 public:
  TwoWays(const PipelineCase& of, int rank) : of_(of), rank_(rank) {}

  std::vector<Pass> passes() {
    const int half = of_.stages / 2, depth = std::min(rank_, of_.stages - 1 - rank_);
    const int before = half - 1 - depth;  // ranks between this one and the middle
    for (int n = 0; n < 2 * before; ++n) forward(kNear);
    for (int n = 0; n <= depth; ++n) {
      forward(kNear);
      forward(kFar);
    }
    for (int n = 0; n < before; ++n) {
      inputs(kFar);
      weights();
      forward(kFar);
    }
    for (int n = 0; n < of_.micro_batches / 2 - of_.stages + depth + 1; ++n) {
      // In the middle the backward pass of the first pair waits for its forward pass.
      pair(kNear, kFar, n > 0 || before > 0);
      pair(kFar, kNear, true);
    }
    for (int n = 0; n < before; ++n) {
      backward(kFar);
      pair(kFar, kNear, true);
    }
    // Of 2 (depth + 1) backward passes the second half leaves gradients of weights for later.
    for (int n = 0; n < 2 * (depth + 1); ++n) {
      const Way way = n % 2 == 0 ? kFar : kNear;
      n > depth ? inputs(way) : backward(way);
    }
    for (int n = 0; n < before; ++n) {
      weights();
      inputs(kNear);
    }
    while (!later_.empty()) weights();
    return std::move(made_);
  }

 private:
  enum Way : std::uint8_t { kNear, kFar };

  int part(Way way) const {
    const bool second = (way == kNear) == (2 * rank_ >= of_.stages);
    return second ? of_.stages + of_.stages - 1 - rank_ : rank_;
  }
  void forward(Way way) { made_.push_back({Kind::forward, forward_[way]++, part(way)}); }
  void backward(Way way) { made_.push_back({Kind::backward, backward_[way]++, part(way)}); }
  void pair(Way forward_way, Way backward_way, bool together) {
    forward(forward_way);
    made_.back().pair = together;
    backward(backward_way);
  }
  void inputs(Way way) {
    made_.push_back({Kind::inputs, backward_[way]++, part(way)});
    later_.push_back({Kind::weights, made_.back().micro_batch, made_.back().part});
  }
  void weights() {
    made_.push_back(later_.front());
    later_.pop_front();
  }

  const PipelineCase& of_;
  int rank_;
  std::array<int, 2> forward_{}, backward_{};
  std::deque<Pass> later_;
  std::vector<Pass> made_;
};

}  // namespace

std::vector<Pass> passes_of(const PipelineCase& pipeline, int rank) {
  switch (pipeline.schedule) {
    case Schedule::gpipe:
      return in_two_halves(pipeline, rank);
    case Schedule::one_forward_one_backward:
      return alternating(pipeline, rank);
    case Schedule::interleaved:
      return in_chunks(pipeline, rank);
    case Schedule::zero_bubble:
      return split_backward(pipeline, rank);
    case Schedule::dualpipe:
      return TwoWays(pipeline, rank).passes();
  }
  return {};
}

}  // namespace cm384::training
