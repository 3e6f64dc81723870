#include "workloads/training/pipeline.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

namespace cm384::training {
namespace {

using Kind = Pass::Kind;

class Pipeline {
 public:
  Pipeline(const PipelineCase& of, bool keep_passes)
      : of_(of),
        keep_passes_(keep_passes),
        ways_(of.schedule == Schedule::dualpipe ? 2 : 1),
        parts_(of.stages * of.chunks),
        forward_(static_cast<std::size_t>(ways_ * parts_) * static_cast<std::size_t>(of.micro_batches)),
        backward_(forward_.size()) {
    for (int rank = 0; rank < of.stages; ++rank) ranks_.emplace_back().passes = passes_of(of, rank);
  }

  PipelineRun run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (Rank& rank : ranks_) {
        while (rank.next < rank.passes.size() && step(rank)) moved = true;
      }
    }
    PipelineRun made;
    for (const Rank& rank : ranks_) {
      if (rank.next < rank.passes.size())
        throw std::logic_error("the passes of a pipeline wait for each other in a cycle");
      made.total = std::max(made.total, rank.time);
      made.busy.push_back(rank.busy);
      made.most_kept.push_back(rank.most_kept);
      made.ends.push_back(rank.time);
      made.last.push_back(rank.last);
      for (std::size_t n = 0; n < rank.spans.size(); ++n)
        made.passes.push_back({static_cast<int>(made.ends.size()) - 1, rank.passes[n], rank.spans[n].first,
                               rank.spans[n].second});
    }
    return made;
  }

 private:
  struct Rank {
    std::vector<Pass> passes;
    std::size_t next = 0;
    double time = 0, busy = 0, last = 0;
    double kept = 0, most_kept = 0;
    std::vector<std::pair<double, double>> spans;  // of `passes`, if they are kept
  };
  using End = std::optional<double>;

  std::size_t at(int part, int batch) const {
    return static_cast<std::size_t>(part) * static_cast<std::size_t>(of_.micro_batches) +
           static_cast<std::size_t>(batch);
  }
  // Of the parts in order; the second direction has the same.
  std::size_t own(int part) const { return static_cast<std::size_t>(part % parts_); }
  double message(int from) const { return of_.messages.empty() ? 0 : of_.messages[own(from)]; }
  double kept(int part) const { return of_.kept.empty() ? 0 : of_.kept[own(part)]; }

  // When what a pass needs is there; empty: not known yet.
  End ready(const Pass& pass) const {
    const bool first = pass.part % parts_ == 0, last = (pass.part + 1) % parts_ == 0;
    End needs;
    switch (pass.kind) {
      case Kind::forward:
        if (first) return 0.0;
        needs = forward_[at(pass.part - 1, pass.micro_batch)];
        if (needs) *needs += message(pass.part - 1);
        return needs;
      case Kind::backward:
      case Kind::inputs:
        if (last) return forward_[at(pass.part, pass.micro_batch)];
        needs = backward_[at(pass.part + 1, pass.micro_batch)];
        if (needs) *needs += message(pass.part);
        return needs;
      case Kind::weights:
        return backward_[at(pass.part, pass.micro_batch)];
    }
    return {};
  }

  double duration(const Pass& pass) const {
    const PartTimes& times = of_.parts[own(pass.part)];
    switch (pass.kind) {
      case Kind::forward:
        return times.forward;
      case Kind::backward:
        return times.inputs + times.weights;
      case Kind::inputs:
        return times.inputs;
      case Kind::weights:
        return times.weights;
    }
    return 0;
  }

  // Of a forward pass with the backward pass behind it: of the parts of both, half of each one's pair.
  double pair_duration(const Pass& forward, const Pass& backward) const {
    const double one = of_.parts[own(forward.part)].pair, other = of_.parts[own(backward.part)].pair;
    if (one == 0 || other == 0) return duration(forward) + duration(backward);
    return (one + other) / 2;
  }

  void end(Rank& rank, const Pass& pass, double time) {
    if (pass.kind == Kind::forward) {
      forward_[at(pass.part, pass.micro_batch)] = time;
      rank.kept += kept(pass.part);
      rank.most_kept = std::max(rank.most_kept, rank.kept);
      return;
    }
    if (pass.kind != Kind::weights) backward_[at(pass.part, pass.micro_batch)] = time;
    if (pass.kind != Kind::inputs) rank.kept -= kept(pass.part);
    rank.last = duration(pass);
  }

  bool step(Rank& rank) {
    const Pass& pass = rank.passes[rank.next];
    const std::size_t count = pass.pair ? 2 : 1;
    End from = ready(pass);
    double taken = duration(pass);
    if (pass.pair) {
      const Pass& other = rank.passes[rank.next + 1];
      const End of_other = ready(other);
      taken = pair_duration(pass, other);
      from = from && of_other ? End(std::max(*from, *of_other)) : End();
    }
    if (!from) return false;
    const double begin = std::max(rank.time, *from);
    rank.time = begin + taken;
    rank.busy += taken;
    if (keep_passes_) rank.spans.insert(rank.spans.end(), count, {begin, rank.time});
    for (std::size_t n = 0; n < count; ++n) end(rank, rank.passes[rank.next + n], rank.time);
    rank.next += count;
    return true;
  }

  const PipelineCase& of_;
  const bool keep_passes_;
  int ways_, parts_;
  std::vector<End> forward_, backward_;  // of each part and micro-batch
  std::vector<Rank> ranks_;
};

}  // namespace

PipelineRun run_pipeline(const PipelineCase& pipeline, bool keep_passes) {
  return Pipeline(pipeline, keep_passes).run();
}

}  // namespace cm384::training
