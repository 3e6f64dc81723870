// Kernels `gqa` and `gqa_sinks`.
#pragma once

#include "gqa_cube.h"
#include "split_combine.h"

template <class Form>
[[gnu::noinline]] static void RunVector(const typename Form::Arguments& a, uint32_t block, uint32_t blocks) {
  OnlineSoftmax<Form>(a, block / 2, blocks, static_cast<uint32_t>(AscendC::GetSubBlockIdx())).Run();
  if (a.splits == 1) return;
  AscendC::SyncAll();
  SplitCombine<Form>(a).Run(block, 2 * blocks);
}

template <template <uint32_t> class Form>
CM384_INLINE void GqaMain(GM_ADDR address) {
  const auto& a = *reinterpret_cast<const typename Form<64>::Arguments*>(address);
  const auto block = static_cast<uint32_t>(AscendC::GetBlockIdx());
  const auto blocks = static_cast<uint32_t>(AscendC::GetBlockNum());
  if (ASCEND_IS_AIC) {
    GqaCube(a, block, blocks).Run();
  } else if (a.width == 64) {
    RunVector<Form<64>>(a, block, blocks);
  } else {
    RunVector<Form<128>>(a, block, blocks);
  }
}
