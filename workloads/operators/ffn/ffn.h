// The feed-forward network of a die's experts, as an operator: gate and up, silu and quantisation, down.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "firmware/abi/ffn.h"
#include "workloads/operators/gemm/memory.h"
#include "workloads/operators/operator.h"
#include "workloads/operators/reference/product_accuracy.h"

namespace cm384::operators {

struct FfnSetting {
  std::vector<std::uint32_t> expert_rows;
  std::uint32_t hidden = 7168, width = 2048;
  bool bf16 = false;       // weights and products; else INT8
  bool int8_rows = false;  // of BF16: rows come as dispatch sends them, INT8 with a scale each
  std::optional<reference::Draw> drawn{};  // in payload mode full: what rows are made of; none: even bits
  bool int4 = false;                       // weights, beside activations of INT8
};

class Ffn final : public KernelOperator {
 public:
  Ffn(const FfnSetting& setting, std::uint64_t seed);

  const char* kernel() const override {
    return setting_.int4 ? "ffn_w4a8" : setting_.bf16 ? "ffn_bf16" : "ffn";
  }
  Work work() const override;
  std::string size() const override;
  std::string check() const override;
  std::vector<reference::StageAccuracy> accuracy() const override;

 private:
  void lay_out(const Site& site) override;
  void write_int8_rows();
  std::uint64_t write_arguments(host::DeviceMemory& memory) const override;
  cm384_gemm place_product(const Site& site, const reference::GemmCase& gemm) const;
  void place_four_bits(const Site& site);
  void lay_out_four_bits();

  FfnSetting setting_;
  reference::GemmCase gate_up_, down_;
  cm384_ffn arguments_{};
  std::uint64_t x_ = 0, scales_ = 0;  // of INT8 rows
  cm384_ffn_w4a8 four_bits_{};        // all but the network
  std::optional<reference::DrawnOperands> gate_up_drawn_, down_drawn_;
  std::optional<reference::GemmInputs> gate_up_inputs_, down_inputs_;
};

}  // namespace cm384::operators
