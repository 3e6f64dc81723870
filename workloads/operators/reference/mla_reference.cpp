#include "workloads/operators/reference/mla_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "traces/random.h"
#include "workloads/operators/reference/layouts.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

// Sign, magnitudes from 2^-3 to 2.
std::uint16_t element(traces::Random& random) {
  const auto bits = static_cast<std::uint32_t>(random.next());
  return static_cast<std::uint16_t>((bits & 1) << 15 | (124 + (bits >> 1 & 3)) << 7 | (bits >> 3 & 0x7f));
}

// Element `channel` of a token of a sequence.
double cached(const MlaCase& mla, const MlaInputs& in, std::uint32_t batch, std::uint32_t token,
              std::uint32_t channel) {
  const std::uint64_t page = in.page_table[batch * mla.table_width() + token / MlaLayout::kPageTokens];
  return of_bf16(in.pages[page * MlaLayout::kPageElements +
                          MlaLayout::in_page(token % MlaLayout::kPageTokens, channel)]);
}

}  // namespace

std::string compare_latent_head(const MlaCase& mla, std::span<const std::uint16_t> q,
                                std::span<const double> cache, std::uint32_t tokens,
                                std::span<const std::uint16_t> out) {
  std::vector<double> weights(tokens);
  for (std::uint32_t t = 0; t < tokens; ++t) {
    double score = 0;
    for (std::uint32_t c = 0; c < MlaLayout::kWidth; ++c)
      score += of_bf16(q[c]) * cache[t * MlaLayout::kWidth + c];
    weights[t] = score * double{mla.scale};
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  for (double& w : weights) w = std::exp(w - largest);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::uint32_t c = 0; c < MlaLayout::kLatent; ++c) {
    double sum = 0, magnitude = 0;
    for (std::uint32_t t = 0; t < tokens; ++t) {
      sum += weights[t] * cache[t * MlaLayout::kWidth + c];
      magnitude += weights[t] * std::fabs(cache[t * MlaLayout::kWidth + c]);
    }
    const double wanted = sum / total, got = of_bf16(out[c]);
    const double bound = (std::fabs(wanted) + magnitude / total) * 0x1p-8;
    if (!(std::fabs(got - wanted) <= bound))
      return fmt::format("element {}: {} instead of {}, allowed {}", c, got, wanted, bound);
  }
  return {};
}

std::uint32_t MlaCase::table_width() const {
  const std::uint32_t longest = *std::max_element(kv_lens.begin(), kv_lens.end()) + queries - 1;
  return (longest + MlaLayout::kPageTokens - 1) / MlaLayout::kPageTokens;
}

std::vector<std::uint32_t> make_page_table(const MlaCase& mla) {
  const std::size_t all = std::size_t{mla.batch()} * mla.table_width();
  std::vector<std::uint32_t> table(mla.one_prompt ? mla.table_width() : all);
  std::iota(table.begin(), table.end(), 0u);
  traces::Random random(mla.seed, 7);
  for (std::size_t i = table.size(); i > 1; --i) std::swap(table[i - 1], table[random.below(i)]);
  while (table.size() < all) table.push_back(table[table.size() - mla.table_width()]);
  return table;
}

std::size_t pages_of(const std::vector<std::uint32_t>& page_table) {
  return page_table.empty() ? 0 : std::size_t{*std::ranges::max_element(page_table)} + 1;
}

MlaInputs make_mla_inputs(const MlaCase& mla) {
  MlaInputs in;
  in.page_table = make_page_table(mla);
  traces::Random queries(mla.seed, 8), cache(mla.seed, 9);
  in.q.resize(std::size_t{mla.batch()} * mla.queries * mla.heads * MlaLayout::kWidth);
  for (auto& x : in.q) x = element(queries);
  in.pages.resize(pages_of(in.page_table) * MlaLayout::kPageElements);
  for (auto& x : in.pages) x = element(cache);
  return in;
}

std::string compare_mla(const MlaCase& mla, const MlaInputs& in, std::span<const std::uint16_t> out) {
  for (std::uint32_t b = 0; b < mla.batch(); ++b) {
    const std::uint32_t longest = mla.kv_lens[b] + mla.queries - 1;
    std::vector<double> cache(std::size_t{longest} * MlaLayout::kWidth);
    for (std::uint32_t t = 0; t < longest; ++t) {
      for (std::uint32_t c = 0; c < MlaLayout::kWidth; ++c)
        cache[std::size_t{t} * MlaLayout::kWidth + c] = cached(mla, in, b, t, c);
    }
    for (std::uint32_t query = 0; query < mla.queries; ++query) {
      for (std::uint32_t head = 0; head < mla.heads; ++head) {
        const std::size_t row = (std::size_t{b} * mla.queries + query) * mla.heads + head;
        const std::string difference = compare_latent_head(
            mla, std::span(in.q).subspan(row * MlaLayout::kWidth, MlaLayout::kWidth), cache,
            mla.kv_lens[b] + query, out.subspan(row * MlaLayout::kLatent, MlaLayout::kLatent));
        if (!difference.empty())
          return fmt::format("sequence {} query {} head {} {}", b, query, head, difference);
      }
    }
  }
  return {};
}

}  // namespace cm384::reference
