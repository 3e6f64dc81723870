// Matrix multiplication in BF16 with k cut into parts, for products that have too few tiles for all cores.
#pragma once

#include <optional>

#include "workloads/operators/gemm/memory.h"
#include "workloads/operators/operator.h"

namespace cm384::operators {

class SplitGemm final : public KernelWith<cm384_split_gemm> {
 public:
  // B is NZ. `parts`: of k, 2 or more.
  SplitGemm(std::uint32_t rows, std::uint32_t n, std::uint32_t k, std::uint32_t parts, std::uint64_t seed)
      : case_{seed, {rows}, n, k, CM384_GEMM_BF16}, parts_(parts) {}

  const char* kernel() const override { return "split_gemm"; }
  Work work() const override;
  std::string size() const override;
  std::string check() const override;

 private:
  void lay_out(const Site& site) override;
  void write_inputs();

  reference::GemmCase case_;
  std::uint32_t parts_;
  std::optional<reference::GemmInputs> inputs_;
};

}  // namespace cm384::operators
