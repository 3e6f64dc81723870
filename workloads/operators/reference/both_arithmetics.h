// Values in double precision and in BF16 arithmetic side by side: what accuracy is measured against.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "workloads/operators/reference/accuracy.h"
#include "workloads/operators/reference/combine_reference.h"
#include "workloads/operators/reference/values.h"

namespace cm384::reference {

inline double rounded_to_bf16(double value) {
  return of_bf16(to_bf16(static_cast<float>(value)));
}

// A vector; what it is made of is rounded to BF16 in the one.
struct Both {
  explicit Both(std::size_t size = 0) : exact(size), bf16(size) {}
  explicit Both(std::span<const float> row) : Both(row.size()) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      exact[i] = row[i];
      bf16[i] = rounded_to_bf16(row[i]);
    }
  }

  std::vector<double> exact, bf16;
};

// A matrix of `rows` rows that vectors are multiplied by.
class BothWeights {
 public:
  BothWeights(std::span<const float> values, std::size_t rows) : rows_(rows), values_(values) {}

  Both multiply(const Both& x) const {
    Both made(rows_);
    const std::size_t k = x.exact.size();
    for (std::size_t j = 0; j < rows_; ++j) {
      double exact = 0, bf16 = 0;
      for (std::size_t i = 0; i < k; ++i) {
        exact += x.exact[i] * values_.exact[j * k + i];
        bf16 += x.bf16[i] * values_.bf16[j * k + i];
      }
      made.exact[j] = exact;
      made.bf16[j] = rounded_to_bf16(bf16);
    }
    return made;
  }

 private:
  std::size_t rows_;
  Both values_;
};

// silu(gate) x up, of gates followed by as many ups.
inline Both activate(const Both& products) {
  const auto silu = [](double gate) { return gate / (1 + std::exp(-gate)); };
  const std::size_t width = products.exact.size() / 2;
  Both made(width);
  for (std::size_t i = 0; i < width; ++i) {
    made.exact[i] = silu(products.exact[i]) * products.exact[width + i];
    made.bf16[i] = rounded_to_bf16(rounded_to_bf16(silu(products.bf16[i])) * products.bf16[width + i]);
  }
  return made;
}

inline void compare_both(StageAccuracy& stage, const Both& wanted, std::size_t i, double got) {
  stage.exact.add(got, wanted.exact[i]);
  stage.bf16.add(got, wanted.bf16[i]);
  stage.of_bf16.add(wanted.bf16[i], wanted.exact[i]);
}

}  // namespace cm384::reference
