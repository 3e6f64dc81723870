// The feed-forward network of a die's experts, as an operator: gate and up, silu and quantisation, down.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "firmware/abi/ffn.h"
#include "workloads/operators/gemm/memory.h"
#include "workloads/operators/operator.h"

namespace cm384::operators {

struct FfnSetting {
  std::vector<std::uint32_t> expert_rows;
  std::uint32_t hidden = 7168, width = 2048;
};

class Ffn final : public KernelOperator {
 public:
  Ffn(const FfnSetting& setting, std::uint64_t seed);

  const char* kernel() const override { return "ffn"; }
  Work work() const override;
  std::string size() const override;
  std::string check() const override;

 private:
  void lay_out(const Site& site) override;
  std::uint64_t put_arguments(host::DeviceMemory& memory) const override { return memory.put(arguments_); }

  FfnSetting setting_;
  reference::GemmCase gate_up_, down_;
  cm384_ffn arguments_{};
  std::optional<reference::GemmInputs> gate_up_inputs_, down_inputs_;
};

}  // namespace cm384::operators
