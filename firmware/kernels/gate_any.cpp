// Choice of any number of experts, by sigmoids or a softmax, with groups or without. Arguments:
// firmware/abi/tokens.h.
#include "gate.h"

using namespace AscendC;

namespace {

// What the arguments say.
class AnyChoice {
 public:
  static constexpr bool kFixed = false;
  explicit AnyChoice(const cm384_gate& a) : a_(a) {}
  uint32_t chosen() const { return a_.chosen; }
  uint32_t group() const { return a_.group; }
  bool softmax() const { return (a_.flags & CM384_GATE_SOFTMAX) != 0; }
  bool normalised() const { return (a_.flags & CM384_GATE_AS_THEY_ARE) == 0; }
  uint32_t groups(uint32_t) const { return a_.groups; }
  // Of exponentials.
  void keep_sum(float sum) { sum_ = sum; }
  float sum() const { return sum_; }

 private:
  const cm384_gate& a_;
  float sum_ = 0;
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_gate& a = *reinterpret_cast<const cm384_gate*>(address);
  const Range tokens =
      Share(a.tokens, static_cast<uint32_t>(GetBlockNum()), static_cast<uint32_t>(GetBlockIdx()));
  if (tokens.size() == 0) return;
  Gate<AnyChoice> gate(a);
  gate.Open();
  RunRows(gate, tokens, 2);
}
