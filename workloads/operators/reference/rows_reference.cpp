#include "workloads/operators/reference/rows_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "workloads/operators/reference/quantise.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {
namespace {

std::string differs(std::uint64_t row, std::uint64_t column, double got, double wanted) {
  return fmt::format("row {} column {}: {} instead of {}", row, column, got, wanted);
}
bool near(double got, double wanted, double bound) {
  return std::fabs(got - wanted) <= bound;
}

// BF16 values against exact ones of a row.
std::string compare_bf16(std::uint64_t row, std::span<const std::uint16_t> got,
                         std::span<const double> wanted) {
  for (std::size_t j = 0; j < wanted.size(); ++j) {
    if (!near(of_bf16(got[j]), wanted[j], std::fabs(wanted[j]) * 0x1p-8 + 1e-30))
      return differs(row, j, of_bf16(got[j]), wanted[j]);
  }
  return {};
}

class Rows {
 public:
  Rows(const RowCase& of, const RowInputs& in, const RowOutputs& out) : case_(of), in_(in), out_(out) {}

  std::string row(std::uint64_t r) const {
    switch (case_.operation) {
      case RowOperation::add:
        return compare_bf16(r, part(out_.values, r), sum(r));
      case RowOperation::rms_norm:
        return rms_norm(r);
      case RowOperation::quantise:
      case RowOperation::static_quantise:
        return quantise(r);
      case RowOperation::swiglu:
        return swiglu(r);
      case RowOperation::softmax:
        return softmax(r);
      case RowOperation::sort:
        return sort(r);
      case RowOperation::head_norm:
        return normed(r, exactly(r));
    }
    return {};
  }

 private:
  template <class T>
  std::span<const T> part(const std::vector<T>& all, std::uint64_t r, std::uint64_t width) const {
    return std::span(all).subspan(r * width, width);
  }
  template <class T>
  std::span<const T> part(const std::vector<T>& all, std::uint64_t r) const {
    return part(all, r, case_.width);
  }

  std::vector<double> sum(std::uint64_t r) const {
    std::vector<double> sums(case_.width);
    const auto x = part(in_.x, r), y = part(in_.y, r);
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] = of_bf16(x[j]) + of_bf16(y[j]);
    return sums;
  }

  std::string rms_norm(std::uint64_t r) const {
    std::vector<double> row = sum(r);
    if (auto text = compare_bf16(r, part(out_.sums, r), row); !text.empty()) return "sum, " + text;
    return normed(r, std::move(row));
  }

  std::vector<double> exactly(std::uint64_t r) const {
    std::vector<double> row;
    for (const std::uint16_t bits : part(in_.x, r)) row.push_back(of_bf16(bits));
    return row;
  }
  std::string normed(std::uint64_t r, std::vector<double> row) const {
    double squares = 0;
    for (const double v : row) squares += v * v;
    const double factor = 1 / std::sqrt(squares / case_.width + case_.epsilon);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] *= factor * of_bf16(in_.gamma[j]);
    return compare_bf16(r, part(out_.values, r), row);
  }

  std::string quantise(std::uint64_t r) const {
    const auto x = part(in_.x, r);
    const auto got = part(out_.integers, r);
    if (case_.operation == RowOperation::static_quantise) {
      for (std::size_t j = 0; j < x.size(); ++j) {
        const double wanted = std::clamp(of_bf16(x[j]) * in_.factors[j], -128.0, 127.0);
        if (!near(got[j], wanted, 0.5 + 127 * 0x1p-22)) return differs(r, j, got[j], wanted);
      }
      return {};
    }
    std::vector<std::int8_t> wanted(x.size());
    const float scale = quantise_row(x, wanted);
    for (std::size_t j = 0; j < x.size(); ++j) {
      if (got[j] != wanted[j]) return differs(r, j, got[j], wanted[j]);
    }
    return out_.scales[r] == scale ? "" : "scale, " + differs(r, 0, out_.scales[r], scale);
  }

  std::string swiglu(std::uint64_t r) const {
    const auto x = part(in_.x, r);
    std::vector<double> wanted(case_.width / 2);
    for (std::size_t j = 0; j < wanted.size(); ++j) {
      const double gate = of_bf16(x[j]);
      wanted[j] = gate / (1 + std::exp(-gate)) * of_bf16(x[wanted.size() + j]);
    }
    return compare_bf16(r, part(out_.values, r, wanted.size()), wanted);
  }

  std::string softmax(std::uint64_t r) const {
    const auto logits = part(in_.logits, r), got = part(out_.shares, r);
    const double maximum = *std::ranges::max_element(logits);
    double all = 0;
    for (const float v : logits) all += std::exp(v - maximum);
    for (std::size_t j = 0; j < logits.size(); ++j) {
      const double wanted = std::exp(logits[j] - maximum) / all;
      if (!near(got[j], wanted, wanted * 0x1p-16)) return differs(r, j, got[j], wanted);
    }
    return {};
  }

  std::string sort(std::uint64_t r) const {
    const auto logits = part(in_.logits, r), got = part(out_.sorted, r);
    const auto columns = part(out_.columns, r);
    std::vector<std::uint32_t> wanted(case_.width);
    std::iota(wanted.begin(), wanted.end(), 0U);
    std::ranges::stable_sort(wanted, [&](auto a, auto b) { return logits[a] > logits[b]; });
    for (std::size_t j = 0; j < wanted.size(); ++j) {
      if (columns[j] != wanted[j]) return "columns, " + differs(r, j, columns[j], wanted[j]);
      if (got[j] != logits[wanted[j]]) return differs(r, j, got[j], logits[wanted[j]]);
    }
    return {};
  }

  const RowCase& case_;
  const RowInputs& in_;
  const RowOutputs& out_;
};

}  // namespace

RowInputs make_row_inputs(const RowCase& c) {
  RowInputs in;
  if (c.operation == RowOperation::softmax) {
    in.logits = draw_floats(c.seed, 1, c.elements(), -12, 12);
    return in;
  }
  if (c.operation == RowOperation::sort) {
    in.logits = draw_floats(c.seed, 1, c.elements(), -12, 12);
    // Some that are equal.
    for (std::size_t j = 0; j < in.logits.size(); j += 4) in.logits[j] = std::round(in.logits[j]);
    return in;
  }
  in.x = draw_bf16(c.seed, 1, c.elements());
  if (c.operation == RowOperation::add || c.operation == RowOperation::rms_norm)
    in.y = draw_bf16(c.seed, 2, c.elements());
  if (c.operation == RowOperation::rms_norm || c.operation == RowOperation::head_norm)
    in.gamma = draw_bf16(c.seed, 3, c.width);
  if (c.operation == RowOperation::static_quantise) in.factors = draw_floats(c.seed, 4, c.width, 20, 90);
  return in;
}

std::string compare_rows(const RowCase& row_case, const RowInputs& inputs, const RowOutputs& outputs) {
  const Rows rows(row_case, inputs, outputs);
  for (std::uint64_t r = 0; r < row_case.rows; ++r) {
    if (std::string text = rows.row(r); !text.empty()) return text;
  }
  return {};
}

}  // namespace cm384::reference
