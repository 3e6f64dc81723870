// Attention of a prefill on one die: causal, with keys and values of each head or of groups of heads; of
// groups without a mask, too.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "firmware/abi/flash_grouped.h"
#include "workloads/operators/operator.h"
#include "workloads/operators/reference/attention_reference.h"

namespace cm384::operators {

// Of each head once for every query of a tile, as kernels read them.
std::vector<float> sinks_of_tiles(const std::vector<float>& of_heads);
// Puts queries, keys, values and, where `sinks` is an address, scores without values where `arguments` have
// them.
template <class Arguments>
void copy_attention_inputs(host::Runtime& runtime, const Arguments& arguments, std::uint64_t sinks,
                           const reference::AttentionInputs& inputs) {
  runtime.put(arguments.q, std::span<const std::uint16_t>(inputs.q));
  runtime.put(arguments.k, std::span<const std::uint16_t>(inputs.k));
  runtime.put(arguments.v, std::span<const std::uint16_t>(inputs.v));
  if (sinks == 0) return;
  const std::vector<float> rows = sinks_of_tiles(inputs.sinks);
  runtime.put(sinks, std::span<const float>(rows));
}

class FlashAttention final : public KernelOperator {
 public:
  // `scale` of the case is not looked at: scores stay within a few units. Throws InputError for lengths that
  // are no multiple of 16, and for heads that the kernels are not for. `keys` of a work item: 128, 256 or
  // 512.
  explicit FlashAttention(const reference::AttentionCase& attention,
                          std::uint32_t keys = CM384_FLASH_MOST_KEYS);

  const char* kernel() const override {
    if (!case_.causal) return "flash_full";
    if (case_.sinks) return "flash_sinks";
    return grouped() ? "flash_grouped" : "flash_attention";
  }
  Work work() const override;
  std::string size() const override;
  std::string check() const override;

 private:
  void lay_out(const Site& site) override;
  std::uint64_t write_arguments(host::DeviceMemory& memory) const override;
  bool grouped() const { return case_.kv_heads > 0; }
  std::vector<std::uint16_t> cores() const override;
  std::uint64_t rows() const { return case_.tokens() * case_.heads; }
  std::uint64_t tasks() const;

  reference::AttentionCase case_;
  std::uint32_t keys_;
  cm384_flash_attention arguments_{};
  std::uint64_t sinks_ = 0;
  std::optional<reference::AttentionInputs> inputs_;
};

}  // namespace cm384::operators
