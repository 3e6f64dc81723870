// Grouped matrix multiplication on the cube cores of a die, as an operator.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/operators/gemm/memory.h"
#include "workloads/operators/operator.h"
#include "workloads/operators/reference/product_accuracy.h"

namespace cm384::operators {

struct GemmSetting {
  std::vector<std::uint32_t> group_rows;
  std::uint32_t n = 4096, k = 4096;
  cm384_gemm_type type = CM384_GEMM_INT8;
  bool b_nz = true;
  std::uint32_t tile_m = 0, tile_n = 0;  // 0: choose_tiling()
  bool basic_tile = false;               // where they are 0: basic_tiling()
  std::optional<reference::Draw>
      drawn{};  // in payload mode full: what is rounded to A; none: evenly drawn bits
};

class Gemm final : public KernelOperator {
 public:
  // On groups for INT8, on AICs for BF16. `seed`: of the inputs in payload mode full.
  Gemm(const GemmSetting& setting, std::uint64_t seed)
      : setting_(setting), case_{seed, setting.group_rows, setting.n, setting.k, setting.type} {}

  const char* kernel() const override { return "gemm"; }
  npu::KernelType type() const override {
    return setting_.type == CM384_GEMM_INT8 ? npu::KernelType::mix : npu::KernelType::aic;
  }
  Work work() const override;
  std::string size() const override;
  std::string check() const override;
  std::vector<reference::StageAccuracy> accuracy() const override;
  const cm384_gemm_tiling& tiling() const { return arguments_.tiling; }

 private:
  void lay_out(const Site& site) override;
  std::uint64_t write_arguments(host::DeviceMemory& memory) const override;

  GemmSetting setting_;
  reference::GemmCase case_;
  cm384_gemm arguments_{};
  std::optional<reference::DrawnOperands> drawn_;
  std::optional<reference::GemmInputs> inputs_;
};

}  // namespace cm384::operators
