#include "npu_core/replay/recording.h"

#include <algorithm>

#include "npu_core/pipes/pipe_instruction.h"

namespace cm384::npu {

Recording Recording::of(std::size_t blocks, std::vector<Step> steps, std::vector<Wait> waits) {
  Recording made;
  made.blocks = blocks;
  made.steps = std::move(steps);
  made.begin_of.resize(blocks);
  std::vector<std::vector<std::uint32_t>> lanes(blocks * kEngines);
  Time first = Time::never(), last;
  for (std::uint32_t n = 0; n < made.steps.size(); ++n) {
    const Step& step = made.steps[n];
    if (step.kind == Step::Kind::begin) made.begin_of[step.block] = n;
    if (step.kind == Step::Kind::begin) first = std::min(first, step.recorded);
    if (step.kind == Step::Kind::end) last = std::max(last, step.recorded);
    if (step.kind == Step::Kind::transfer) lanes[step.block * kEngines + step.engine].push_back(n);
  }
  if (first < last) made.alone = last - first;
  made.waits.resize(made.steps.size());
  std::vector<bool> follows_begin(made.steps.size());
  for (const Wait& w : waits) {
    ++made.waits[w.of];
    if (w.on == made.begin_of[made.steps[w.of].block]) follows_begin[w.of] = true;
  }
  // Nothing of a block begins before it.
  for (std::uint32_t n = 0; n < made.steps.size(); ++n) {
    const Step& step = made.steps[n];
    if (step.kind == Step::Kind::begin || step.kind == Step::Kind::join) continue;
    const bool later =
        step.kind == Step::Kind::transfer && lanes[step.block * kEngines + step.engine].front() != n;
    if (follows_begin[n] || (later && made.waits[n] != 0)) continue;
    const std::uint32_t on = made.begin_of[step.block];
    const Time delay = made.waits[n] != 0 ? Time{} : step.recorded - made.steps[on].recorded;
    waits.push_back({n, on, DependencyKind::completion, delay});
    ++made.waits[n];
  }
  if (!std::ranges::is_sorted(waits, {}, &Wait::on)) std::ranges::stable_sort(waits, {}, &Wait::on);
  made.edges.reserve(waits.size());
  auto next = waits.begin();
  for (std::uint32_t n = 0; n < made.steps.size(); ++n) {
    made.first_edge.push_back(static_cast<std::uint32_t>(made.edges.size()));
    for (; next != waits.end() && next->on == n; ++next)
      made.edges.push_back({next->of, next->kind, next->delay});
  }
  made.first_edge.push_back(static_cast<std::uint32_t>(made.edges.size()));
  for (const auto& lane : lanes) {
    made.first_of_lane.push_back(static_cast<std::uint32_t>(made.lane_steps.size()));
    made.lane_steps.insert(made.lane_steps.end(), lane.begin(), lane.end());
  }
  made.first_of_lane.push_back(static_cast<std::uint32_t>(made.lane_steps.size()));
  return made;
}

Recording Recording::idle(std::size_t blocks, Time length) {
  std::vector<Step> steps;
  std::vector<Wait> waits;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    Step step;
    step.block = static_cast<std::uint16_t>(block);
    step.kind = Step::Kind::begin;
    steps.push_back(step);
    step.kind = Step::Kind::end;
    steps.push_back(step);
    waits.push_back({2 * block + 1, 2 * block, DependencyKind::completion, length});
  }
  return of(blocks, std::move(steps), std::move(waits));
}

}  // namespace cm384::npu
