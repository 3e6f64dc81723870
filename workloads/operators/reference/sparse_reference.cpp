#include "workloads/operators/reference/sparse_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "traces/random.h"
#include "workloads/operators/reference/layouts.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

using Layout = IndexLayout;

struct Place {
  std::uint64_t page, within;
};
Place place_of(const IndexCase& index, std::span<const std::uint32_t> table, std::uint32_t row,
               std::uint32_t token) {
  const std::uint32_t width = index.cached().table_width();
  return {table[row / index.queries * width + token / MlaLayout::kPageTokens],
          token % MlaLayout::kPageTokens};
}
std::uint32_t number_of(const Place& place) {
  return static_cast<std::uint32_t>(place.page * MlaLayout::kPageTokens + place.within);
}

float scale_of(const IndexInputs& in, const Place& place) {
  float scale;
  std::memcpy(&scale, &in.pages[place.page * Layout::kPageBytes + Layout::scale(place.within)], sizeof scale);
  return scale;
}

}  // namespace

IndexInputs make_index_inputs(const IndexCase& index) {
  IndexInputs in;
  traces::Random queries(index.seed, 60), weights(index.seed, 61), keys(index.seed, 62);
  const auto integer = [](traces::Random& random) {
    return static_cast<std::int8_t>(static_cast<int>(random.below(255)) - 127);
  };
  in.q.resize(std::size_t{index.rows()} * index.heads * Layout::kWidth);
  for (auto& x : in.q) x = integer(queries);
  // Of both signs, from 2^-8 to 2^-4.
  in.weights.resize(std::size_t{index.rows()} * index.heads);
  for (auto& x : in.weights) {
    const auto bits = static_cast<std::uint32_t>(weights.next());
    x = static_cast<std::uint16_t>((bits & 1) << 15 | (7 + (bits >> 1 & 3)) << 10 | (bits >> 3 & 0x3ff));
  }
  const std::size_t pages = pages_of(make_page_table(index.cached()));
  in.pages.resize(pages * Layout::kPageBytes);
  for (std::size_t page = 0; page < pages; ++page) {
    std::byte* const at = &in.pages[page * Layout::kPageBytes];
    for (std::size_t n = 0; n < Layout::scale(0); ++n) at[n] = static_cast<std::byte>(integer(keys));
    for (std::size_t token = 0; token < MlaLayout::kPageTokens; ++token) {
      const float scale = static_cast<float>(1 + keys.below(64)) * 0x1p-12f;
      std::memcpy(at + Layout::scale(token), &scale, sizeof scale);
    }
  }
  return in;
}

std::string compare_scores(const IndexCase& index, const IndexInputs& in, std::uint32_t row,
                           std::span<const float> scores) {
  const auto table = make_page_table(index.cached());
  for (std::uint32_t token = 0; token < index.tokens(row); ++token) {
    const Place place = place_of(index, table, row, token);
    double sum = 0, magnitude = 0;
    for (std::uint32_t head = 0; head < index.heads; ++head) {
      const std::size_t at = std::size_t{row} * index.heads + head;
      int product = 0;
      for (std::uint32_t n = 0; n < Layout::kWidth; ++n)
        product += in.q[at * Layout::kWidth + n] *
                   static_cast<std::int8_t>(
                       in.pages[place.page * Layout::kPageBytes + Layout::key(place.within, n)]);
      const double term = of_fp16(in.weights[at]) * std::max(0, product) / 32;
      sum += term;
      magnitude += std::fabs(term);
    }
    const double bound = magnitude * (0x1p-11 + index.heads * 0x1p-24);
    if (!(std::fabs(double{scores[token]} - sum) <= bound))
      return fmt::format("row {} token {}: {} instead of {}, allowed {}", row, token, scores[token], sum,
                         bound);
  }
  return {};
}

std::vector<std::uint32_t> chosen_places(const IndexCase& index, const IndexInputs& in, std::uint32_t row,
                                         std::span<const float> scores) {
  const auto table = make_page_table(index.cached());
  std::vector<std::uint32_t> tokens(index.tokens(row));
  std::iota(tokens.begin(), tokens.end(), 0U);
  if (tokens.size() > index.chosen) {
    std::vector<float> scaled;
    for (const std::uint32_t token : tokens)
      scaled.push_back(scores[token] * scale_of(in, place_of(index, table, row, token)));
    std::ranges::stable_sort(tokens, std::greater(), [&](std::uint32_t token) { return scaled[token]; });
    tokens.resize(index.chosen);
  }
  for (std::uint32_t& token : tokens) token = number_of(place_of(index, table, row, token));
  return tokens;
}

std::vector<std::uint32_t> draw_places(const IndexCase& index) {
  const auto table = make_page_table(index.cached());
  traces::Random random(index.seed, 63);
  std::vector<std::uint32_t> places(std::size_t{index.rows()} * index.chosen);
  std::vector<bool> taken;
  for (std::uint32_t row = 0; row < index.rows(); ++row) {
    const std::uint32_t tokens = index.tokens(row), count = std::min(index.chosen, tokens);
    // Those that are chosen, or those that are not: the fewer of both.
    const bool most = count > tokens / 2;
    taken.assign(tokens, most);
    std::vector<std::uint32_t> order;
    while (order.size() < (most ? tokens - count : count)) {
      const auto token = static_cast<std::uint32_t>(random.below(tokens));
      if (taken[token] != most) continue;
      taken[token] = !most;
      order.push_back(token);
    }
    if (most) {
      order.clear();
      for (std::uint32_t token = 0; token < tokens; ++token) {
        if (taken[token]) order.push_back(token);
      }
    }
    for (std::uint32_t n = 0; n < count; ++n)
      places[std::size_t{row} * index.chosen + n] = number_of(place_of(index, table, row, order[n]));
  }
  return places;
}

std::string compare_sparse_mla(const IndexCase& index, const MlaCase& mla, const MlaInputs& in,
                               std::span<const std::uint32_t> places, std::span<const std::uint16_t> out) {
  for (std::uint32_t row = 0; row < index.rows(); ++row) {
    const std::uint32_t count = std::min(index.chosen, index.tokens(row));
    std::vector<double> cache;
    for (std::uint32_t n = 0; n < count; ++n) {
      const std::size_t at = std::size_t{places[std::size_t{row} * index.chosen + n]} * MlaLayout::kWidth;
      for (std::uint32_t element = 0; element < MlaLayout::kWidth; ++element)
        cache.push_back(of_bf16(in.pages[at + SparseRow::element(element)]));
    }
    for (std::uint32_t head = 0; head < mla.heads; ++head) {
      const std::size_t of = std::size_t{row} * mla.heads + head;
      const std::string difference =
          compare_latent_head(mla, std::span(in.q).subspan(of * MlaLayout::kWidth, MlaLayout::kWidth), cache,
                              count, out.subspan(of * MlaLayout::kLatent, MlaLayout::kLatent));
      if (!difference.empty()) return fmt::format("row {} head {} {}", row, head, difference);
    }
  }
  return {};
}

}  // namespace cm384::reference
