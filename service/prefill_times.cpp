#include "service/prefill_times.h"

#include <algorithm>

namespace cm384::service {

PrefillTimes::PrefillTimes(const Deployment& deployment, const Library& library) : pool_(deployment.prefill) {
  std::vector<std::pair<double, double>> points;
  for (const PrefillPoint& point : library.prefill()) {
    if (point.ranks != 2 * pool_.npus || (!points.empty() && point.prompt != measured_prompt_)) continue;
    measured_prompt_ = point.prompt;
    points.emplace_back(static_cast<double>(point.tokens) * pool_.npus, point.latency_ms);
  }
  std::ranges::sort(points);
  const auto equal = [](const auto& one, const auto& other) { return one.first == other.first; };
  points.erase(std::unique(points.begin(), points.end(), equal), points.end());
  if (points.size() < 2) return;  // one says nothing of other batches
  error_ = leave_one_out_error(points);
  measured_.emplace(points);
}

StepTime PrefillTimes::of(const PrefillWork& work) const {
  const double share = pool_.attention_share;
  if (measured_) {
    // Of prompts of another length, attention's share of the time goes with the pairs.
    const double ms = (*measured_)(work.tokens), pairs = work.tokens * measured_prompt_ / 2;
    const Evidence evidence = !measured_->has(work.tokens) ? Evidence::extrapolated
                              : measured_->is_point(work.tokens) && work.pairs == pairs
                                  ? Evidence::measured
                                  : Evidence::interpolated;
    return {ms * (1 + share * (work.pairs / pairs - 1)), evidence, error_};
  }
  const double least = pool_.least_time.us() * 1e-3, rest = pool_.batch_time.us() * 1e-3 - least;
  const double full = pool_.timed_tokens, pairs = full * pool_.timed_prompt / 2;
  return {least + rest * ((1 - share) * work.tokens / full + share * work.pairs / pairs), Evidence::parameter,
          0};
}

}  // namespace cm384::service
