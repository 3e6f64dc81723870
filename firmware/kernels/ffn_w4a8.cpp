// Feed-forward network of a die's experts, of weights of 4 bits and activations of INT8. Arguments:
// firmware/abi/ffn.h.
#include "dequantise_pairs.h"
#include "firmware/abi/ffn.h"
#include "kernel_operator.h"
#include "split_rows.h"
#include "steps.h"
#include "swiglu.h"

using namespace AscendC;

namespace {

uint32_t RowsOf(const cm384_gemm& a) {
  const auto* group_rows = reinterpret_cast<const uint32_t*>(a.group_rows);
  uint32_t all = 0;
  for (uint32_t group = 0; group < a.groups; ++group) all += group_rows[group * a.group_row_words];
  return all;
}

[[gnu::noinline]] void Dequantise(const cm384_gemm& a, uint64_t sums, uint32_t group, uint32_t groups) {
  PairDequantiser(a, sums, group, static_cast<uint32_t>(GetSubBlockIdx())).Run(TilesOf<2>(a, group, groups));
}

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_ffn_w4a8& a = *reinterpret_cast<const cm384_ffn_w4a8*>(address);
  const cm384_gemm &first = a.network.gate_up, &second = a.network.down;
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  if (ASCEND_IS_AIC) {
    WaitForVectors();
    RunCubeGemm<int4b_t>(first, block, blocks);
    WaitForVectors();
    RunCubeGemm<int4b_t>(second, block, blocks);
    return;
  }
  const Range own = Share(RowsOf(first), 2 * blocks, block);
  SplitRows(a.x, first.a, first.k).Run(own);
  VectorsDone();
  Dequantise(first, a.gate_up_sums, block / 2, blocks);
  SyncAll();
  cm384_ffn rows = a.network;
  rows.down.a = a.hidden_rows;
  SwiGlu(rows).Run(block, 2 * blocks);
  PipeBarrier<PIPE_ALL>();
  SplitRows(a.hidden_rows, second.a, second.k).Run(own);
  VectorsDone();
  Dequantise(second, a.down_sums, block / 2, blocks);
}
