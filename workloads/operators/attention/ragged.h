// Attention of a prefill on one die over prompts of any lengths, causal: what a batch of a service has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "firmware/abi/flash_ragged.h"
#include "workloads/operators/operator.h"
#include "workloads/operators/reference/attention_reference.h"

namespace cm384::operators {

struct RaggedPrompt {
  std::uint32_t length = 16;  // tokens, a multiple of 16
  std::uint32_t cached = 0;   // of these, the first ones: without output; a multiple of CM384_FLASH_TILE
};
struct RaggedSetting {
  std::uint64_t seed = 1;
  std::vector<RaggedPrompt> prompts{};
  std::uint32_t heads = 1;
  std::uint32_t kv_heads = 0;  // that heads share, as wide as they; 0: each head has its own, of MLA
  std::uint32_t width = 128;   // of a head, where they share: 64 or 128
  bool sinks = false;          // where they share: a score of each head that its softmax counts besides
};

class RaggedAttention final : public KernelOperator {
 public:
  // Throws InputError for no prompts, other lengths and heads that the kernel is not for.
  explicit RaggedAttention(const RaggedSetting& setting);

  const char* kernel() const override { return setting_.sinks ? "flash_ragged_sinks" : "flash_ragged"; }
  Work work() const override;
  std::string size() const override;
  std::string check() const override;

 private:
  void lay_out(const Site& site) override;
  std::uint64_t write_arguments(host::DeviceMemory& memory) const override;
  std::vector<std::uint16_t> cores() const override;
  // A prompt's own part as a case of the reference.
  reference::AttentionCase case_of(const RaggedPrompt& prompt) const;
  std::uint64_t tokens() const;

  RaggedSetting setting_;
  cm384_flash_ragged arguments_{};
  std::uint64_t sinks_ = 0;
  std::vector<cm384_flash_tile> tiles_;  // those with the most keys first
  std::optional<reference::AttentionInputs> inputs_;
};

}  // namespace cm384::operators
