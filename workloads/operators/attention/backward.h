// Gradients of a prefill's causal attention on one die: heads of 128, of their own or shared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "firmware/abi/flash_backward.h"
#include "workloads/operators/operator.h"
#include "workloads/operators/reference/backward_reference.h"

namespace cm384::operators {

class AttentionBackward final : public KernelWith<cm384_flash_backward> {
 public:
  // `scale` of the case is not looked at. Throws InputError for lengths that are no multiple of 16, and for
  // heads, windows and cached tokens that the kernel is not for.
  explicit AttentionBackward(const reference::AttentionCase& attention);

  const char* kernel() const override { return "flash_backward"; }
  Work work() const override;
  std::string size() const override;
  std::string check() const override;

 private:
  void lay_out(const Site& site) override;
  std::vector<std::uint16_t> cores() const override;
  std::uint64_t rows() const { return case_.tokens() * case_.heads; }
  std::uint64_t kv_rows() const { return case_.tokens() * case_.kv_heads; }

  reference::AttentionCase case_;
  std::optional<reference::BackwardInputs> inputs_;
};

}  // namespace cm384::operators
