// Choice of eight experts by groups of 32, and their weights. Arguments: firmware/abi/tokens.h.
#include "gate.h"

using namespace AscendC;

namespace {

// As DeepSeek-V3 chooses: sigmoids, groups of 32 experts, 8 of a token.
struct ChoiceOfEight {
  static constexpr bool kFixed = true;
  explicit ChoiceOfEight(const cm384_gate&) {}
  static constexpr uint32_t chosen() { return CM384_GATE_TOP_K; }
  static constexpr uint32_t group() { return CM384_GATE_GROUP; }
  static constexpr bool softmax() { return false; }
  static constexpr bool normalised() { return true; }
  static constexpr void keep_sum(float) {}
  static constexpr float sum() { return 1; }
  static constexpr uint32_t groups(uint32_t experts) { return experts / CM384_GATE_GROUP; }
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_gate& a = *reinterpret_cast<const cm384_gate*>(address);
  const Range tokens =
      Share(a.tokens, static_cast<uint32_t>(GetBlockNum()), static_cast<uint32_t>(GetBlockIdx()));
  if (tokens.size() == 0) return;
  Gate<ChoiceOfEight> gate(a);
  gate.Open();
  RunRows(gate, tokens, 2);
}
