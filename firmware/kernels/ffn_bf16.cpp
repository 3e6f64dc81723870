// Feed-forward network of a die's experts, of weights in BF16. Arguments: firmware/abi/ffn.h.
#include "cube_gemm.h"
#include "firmware/abi/ffn.h"
#include "kernel_operator.h"
#include "share.h"
#include "steps.h"
#include "swiglu.h"
#include "widen_rows.h"

using namespace AscendC;

namespace {

uint32_t RowsOf(const cm384_gemm& a) {
  const auto* group_rows = reinterpret_cast<const uint32_t*>(a.group_rows);
  uint32_t all = 0;
  for (uint32_t group = 0; group < a.groups; ++group) all += group_rows[group * a.group_row_words];
  return all;
}

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_ffn_bf16& a = *reinterpret_cast<const cm384_ffn_bf16*>(address);
  const cm384_gemm& first = a.network.gate_up;
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  const bool widens = a.x != 0;
  if (ASCEND_IS_AIC) {
    if (widens) WaitForVectors();
    RunCubeGemm<bfloat16_t>(first, block, blocks);
    MeetCubes();
    RunCubeGemm<bfloat16_t>(a.network.down, block, blocks);
    return;
  }
  if (widens) {
    WidenRows(a.x, a.scales, first.a, first.k).Run(Share(RowsOf(first), 2 * blocks, block));
    VectorsDone();
  }
  WaitForCubes();
  SwiGluTo<false>(a.network).Run(block, 2 * blocks);
  VectorsDone();
}
