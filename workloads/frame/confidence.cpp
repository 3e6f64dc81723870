#include "workloads/frame/confidence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace cm384::studies {
namespace {

// 0.975 quantiles of Student's t for 1 to 30 degrees of freedom. A table and an expansion rather than a
// library call, because rows must be the same on every machine.
constexpr std::array kT = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                           2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                           2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};

double nearest_rank(const std::vector<double>& sorted, std::size_t percent) {
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace

double student_t95(std::int64_t degrees_of_freedom) {
  if (degrees_of_freedom < 1) return std::numeric_limits<double>::quiet_NaN();
  if (degrees_of_freedom <= static_cast<std::int64_t>(kT.size())) {
    return kT[static_cast<std::size_t>(degrees_of_freedom - 1)];
  }
  // Cornish-Fisher expansion around the normal quantile; off by less than 1e-4 beyond 30.
  const double z = 1.959963985, n = static_cast<double>(degrees_of_freedom);
  const double z3 = z * z * z, z5 = z3 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n);
}

Summary summarise(std::vector<double> samples) {
  Summary summary;
  if (samples.empty()) return summary;
  std::ranges::sort(samples);
  const double count = static_cast<double>(samples.size());
  summary.count = static_cast<std::int64_t>(samples.size());
  double sum = 0;
  for (const double x : samples) sum += x;
  summary.mean = sum / count;
  double squares = 0;
  for (const double x : samples) squares += (x - summary.mean) * (x - summary.mean);
  summary.p50 = nearest_rank(samples, 50);
  summary.p99 = nearest_rank(samples, 99);
  summary.min = samples.front();
  summary.max = samples.back();
  summary.ci95 = samples.size() < 2
                     ? std::numeric_limits<double>::quiet_NaN()
                     : student_t95(summary.count - 1) * std::sqrt(squares / (count - 1) / count);
  return summary;
}

Row to_row(const Summary& summary) {
  return {{"mean", summary.mean},
          {"p50", summary.p50},
          {"p99", summary.p99},
          {"max", summary.max},
          {"ci95", std::isnan(summary.ci95) ? Value() : Value(summary.ci95)}};
}

}  // namespace cm384::studies
