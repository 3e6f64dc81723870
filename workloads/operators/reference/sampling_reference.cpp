#include "workloads/operators/reference/sampling_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "traces/random.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

std::string compare_row(const SampleCase& sample, std::span<const float> shares, double draw,
                        std::int32_t word, double chosen) {
  const std::size_t most = std::min(sample.top_k, sample.width);
  std::vector<std::uint32_t> order(sample.width);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(most), [&](auto a, auto b) {
    return shares[a] != shares[b] ? shares[a] > shares[b] : a < b;
  });
  std::vector<double> below(most + 1);
  for (std::size_t n = 0; n < most; ++n) below[n + 1] = below[n] + double{shares[order[n]]};
  const double slack = sample.top_k * 0x1p-23;
  std::size_t wanted = most;
  for (std::size_t kept = 1; kept <= most; ++kept) {
    if (kept > 1 && below[kept - 1] >= sample.top_p + slack) break;
    if (kept < most && below[kept] < sample.top_p - slack) continue;
    const double at = draw * below[kept];
    for (std::size_t n = 0; n < kept; ++n) {
      if (below[n + 1] + slack <= at && n + 1 < kept) continue;
      wanted = std::min(wanted, n);
      if (n > 0 && below[n] - slack > at) break;
      if (static_cast<std::int32_t>(order[n]) != word) continue;
      const double share = double{shares[order[n]]} / below[kept];
      if (std::fabs(chosen - share) <= share * slack) return {};
      return fmt::format("share {} instead of {}", chosen, share);
    }
  }
  return fmt::format("word {} instead of {}", word, order[std::min(wanted, most - 1)]);
}

}  // namespace

SampleInputs make_sample_inputs(const SampleCase& sample) {
  SampleInputs in{{}, draw_floats(sample.seed, 1, sample.rows, 0, 1)};
  traces::Random random(sample.seed, 2);
  std::vector<double> row(sample.width);
  for (std::uint32_t r = 0; r < sample.rows; ++r) {
    const double exponent = 1 + 2 * random.real();
    double sum = 0;
    for (std::size_t n = 0; n < row.size(); ++n) {
      row[n] = std::pow(1 - random.real(), -exponent);
      // Some that are equal.
      if (n % 4 == 0) row[n] = std::exp2(std::round(std::log2(row[n])));
      sum += row[n];
    }
    for (const double share : row) in.shares.push_back(static_cast<float>(share / sum));
  }
  return in;
}

std::string compare_sample(const SampleCase& sample, const SampleInputs& inputs,
                           std::span<const std::int32_t> words, std::span<const float> chosen) {
  for (std::size_t r = 0; r < sample.rows; ++r) {
    const std::string text =
        compare_row(sample, std::span(inputs.shares).subspan(r * sample.width, sample.width), inputs.draws[r],
                    words[r], chosen[r]);
    if (!text.empty()) return fmt::format("row {}: {}", r, text);
  }
  return {};
}

}  // namespace cm384::reference
