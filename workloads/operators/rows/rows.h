// Operators that work on rows of a matrix one by one, on a die's vector cores: sum, norm, quantisation,
// SwiGLU, softmax, sort.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "firmware/abi/rows.h"
#include "workloads/operators/operator.h"
#include "workloads/operators/reference/rows_reference.h"

namespace cm384::operators {

// Rows that a core quantises, or norms as heads, at a time, in one tile: as many as fit the UBuffer, in whole
// blocks of eight. 1: one by one, where eight do not fit, where a core has one row to quantise at most, and
// of other operations.
std::uint32_t rows_of_tile(const reference::RowCase& row_case, std::uint32_t buffers, std::size_t cores);

class Rows final : public KernelWith<cm384_rows> {
 public:
  // `buffers`: each way, 1 or 2.
  explicit Rows(const reference::RowCase& row_case, std::uint32_t buffers)
      : case_(row_case), buffers_(buffers) {}

  const char* kernel() const override;
  npu::KernelType type() const override { return npu::KernelType::aiv; }
  Work work() const override;
  std::string size() const override;
  std::string check() const override;

 private:
  void lay_out(const Site& site) override;
  std::vector<std::uint16_t> cores() const override;
  std::uint32_t parts(std::size_t cores) const;
  std::uint32_t out_width() const;
  std::uint64_t ubuffer() const;
  void write_inputs();

  reference::RowCase case_;
  std::uint32_t buffers_;
  std::uint32_t tile_ = 1;  // rows_of_tile
  std::optional<reference::RowInputs> inputs_;
};

}  // namespace cm384::operators
