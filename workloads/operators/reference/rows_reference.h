// Operators that work on rows of a matrix one by one: inputs from a seed, and what must come out, in double
// precision. The operations are those of firmware/abi/rows.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cm384::reference {

enum class RowOperation : std::uint8_t {
  add,
  rms_norm,
  quantise,
  static_quantise,
  swiglu,
  softmax,
  sort,
  head_norm
};

struct RowCase {
  RowOperation operation = RowOperation::add;
  std::uint32_t rows = 1, width = 64;  // of the input; swiglu gives half the width
  double epsilon = 1e-6;
  std::uint64_t seed = 1;

  std::uint64_t elements() const { return std::uint64_t{rows} * width; }
};

// Empty where the operation takes none.
struct RowInputs {
  std::vector<std::uint16_t> x, y, gamma;  // BF16
  std::vector<float> factors;              // of columns
  std::vector<float> logits;
};
RowInputs make_row_inputs(const RowCase& row_case);

// What an operator has left: only what it writes.
struct RowOutputs {
  std::vector<std::uint16_t> values, sums;  // BF16: out0, out1
  std::vector<std::int8_t> integers;
  std::vector<float> scales, shares, sorted;
  std::vector<std::uint32_t> columns;  // of `sorted`
};
// The first difference; empty: none. BF16 values are within 2^-8 of the exact ones, shares within 2^-16.
// What a scale per row quantises is that of quantise.h to the bit; by one per column, integers are within
// half a step and what the rounding of the product can add. What is sorted is as std::stable_sort has it.
std::string compare_rows(const RowCase& row_case, const RowInputs& inputs, const RowOutputs& outputs);

}  // namespace cm384::reference
