#include "workloads/operators/reference/backward_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "workloads/operators/reference/combine_reference.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

// Rows of heads as numbers, tokens x heads x elements.
class Rows {
 public:
  Rows(std::span<const std::uint16_t> bits, std::uint32_t heads, std::uint32_t width)
      : heads_(heads), width_(width) {
    for (const std::uint16_t value : bits) values_.push_back(of_bf16(value));
  }
  std::span<const double> row(std::uint64_t token, std::uint32_t head) const {
    return std::span(values_).subspan((token * heads_ + head) * width_, width_);
  }

 private:
  std::uint32_t heads_, width_;
  std::vector<double> values_;
};

// F32 sums of products are off by this share of their magnitudes at most; in units of a bound's 2^-8.
constexpr double kSums = 0x1p-12;

double magnitude(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t e = 0; e < a.size(); ++e) sum += std::fabs(a[e] * b[e]);
  return sum;
}
double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t e = 0; e < a.size(); ++e) sum += a[e] * b[e];
  return sum;
}

// A gradient with the sum of its terms' magnitudes.
struct Sums {
  std::vector<double> value, magnitude;
  explicit Sums(std::uint64_t elements) : value(elements), magnitude(elements) {}
  // `size`: of the weight and of what it is the difference of.
  void add(std::uint64_t row, std::span<const double> of, double weight, double size) {
    for (std::size_t e = 0; e < of.size(); ++e) {
      value[row * of.size() + e] += weight * of[e];
      magnitude[row * of.size() + e] += std::fabs(size * of[e]);
    }
  }
};

// Scaled scores of a token over those up to it, and the log of the sum of their exponentials.
struct Scores {
  std::vector<double> scaled;
  double sum = 0;
};
Scores scores_of(const AttentionCase& c, const Rows& q, const Rows& k, std::uint64_t first,
                 std::uint32_t token, std::uint32_t head) {
  Scores made;
  double largest = -1e300, sum = 0;
  for (std::uint32_t key = 0; key <= token; ++key) {
    const double score =
        double{c.scale} * dot(q.row(first + token, head), k.row(first + key, head / (c.heads / c.kv_heads)));
    made.scaled.push_back(score);
    largest = std::max(largest, score);
  }
  for (const double score : made.scaled) sum += std::exp(score - largest);
  made.sum = largest + std::log(sum);
  return made;
}

}  // namespace

BackwardInputs make_backward_inputs(const AttentionCase& c) {
  BackwardInputs made;
  made.forward = make_attention_inputs(c);
  made.gradient = draw_bf16(c.seed, 4, c.tokens() * c.heads * c.value());
  made.out.resize(made.gradient.size());
  made.sums.resize(c.tokens() * c.heads);
  const Rows q(made.forward.q, c.heads, c.width), k(made.forward.k, c.kv_heads, c.width),
      v(made.forward.v, c.kv_heads, c.width);
  for (std::uint32_t sequence = 0; sequence < c.sequences; ++sequence) {
    const std::uint64_t first = std::uint64_t{sequence} * c.length;
    for (std::uint32_t head = 0; head < c.heads; ++head) {
      for (std::uint32_t token = 0; token < c.length; ++token) {
        const Scores scores = scores_of(c, q, k, first, token, head);
        made.sums[(std::uint64_t{sequence} * c.heads + head) * c.length + token] =
            static_cast<float>(scores.sum);
        std::vector<double> row(c.width);
        for (std::uint32_t key = 0; key <= token; ++key) {
          const double weight = std::exp(scores.scaled[key] - scores.sum);
          const auto values = v.row(first + key, head / (c.heads / c.kv_heads));
          for (std::uint32_t e = 0; e < c.width; ++e) row[e] += weight * values[e];
        }
        for (std::uint32_t e = 0; e < c.width; ++e)
          made.out[((first + token) * c.heads + head) * c.width + e] = to_bf16(static_cast<float>(row[e]));
      }
    }
  }
  return made;
}

std::string compare_backward(const AttentionCase& c, const BackwardInputs& in,
                             std::span<const std::uint16_t> gradients) {
  const Rows q(in.forward.q, c.heads, c.width), k(in.forward.k, c.kv_heads, c.width),
      v(in.forward.v, c.kv_heads, c.width), out(in.out, c.heads, c.width),
      gradient(in.gradient, c.heads, c.width);
  const std::uint64_t rows = c.tokens() * c.heads * c.width, kv_rows = c.tokens() * c.kv_heads * c.width;
  Sums dq(rows), dk(kv_rows), dv(kv_rows);
  for (std::uint32_t sequence = 0; sequence < c.sequences; ++sequence) {
    const std::uint64_t first = std::uint64_t{sequence} * c.length;
    for (std::uint32_t head = 0; head < c.heads; ++head) {
      const std::uint32_t shared = head / (c.heads / c.kv_heads);
      for (std::uint32_t token = 0; token < c.length; ++token) {
        const Scores scores = scores_of(c, q, k, first, token, head);
        const auto behind = gradient.row(first + token, head);
        const double own = dot(out.row(first + token, head), behind),
                     own_size = magnitude(out.row(first + token, head), behind);
        for (std::uint32_t key = 0; key <= token; ++key) {
          const double weight = std::exp(scores.scaled[key] - scores.sum);
          const double of_score = double{c.scale} * weight * (dot(behind, v.row(first + key, shared)) - own);
          const double size =
              std::fabs(of_score) +
              double{c.scale} * weight * kSums * (magnitude(behind, v.row(first + key, shared)) + own_size);
          const std::uint64_t kv_row = (first + key) * c.kv_heads + shared;
          dv.add(kv_row, behind, weight, weight);
          dk.add(kv_row, q.row(first + token, head), of_score, size);
          dq.add((first + token) * c.heads + head, k.row(first + key, shared), of_score, size);
        }
      }
    }
  }
  std::uint64_t at = 0;
  const std::array<std::pair<const char*, const Sums*>, 3> all{
      {{"queries", &dq}, {"keys", &dk}, {"values", &dv}}};
  for (const auto& [name, sums] : all) {
    for (std::uint64_t e = 0; e < sums->value.size(); ++e, ++at) {
      const double got = of_bf16(gradients[at]), wanted = sums->value[e];
      const double bound = (std::fabs(wanted) + sums->magnitude[e]) * 0x1p-8;
      if (!(std::fabs(got - wanted) <= bound))
        return fmt::format("gradient of {}: row {} element {}: {} instead of {}, allowed {}", name,
                           e / c.width, e % c.width, got, wanted, bound);
    }
  }
  return {};
}

}  // namespace cm384::reference
