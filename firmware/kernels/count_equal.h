// How often a value occurs in a list, by vector instructions (ascend-facts B2.3: the position of a pair in
// its expert's slot).
#pragma once

#include "kernel_operator.h"

// Of the first `count` of `values`: how many are `value`. `work0` and `work1` have room for as many; `sum` is
// a block that the scalar unit reads. Uses V_S(0).
CM384_INLINE uint32_t CountEqual(const AscendC::LocalTensor<int32_t>& values,
                                 const AscendC::LocalTensor<int32_t>& work0,
                                 const AscendC::LocalTensor<int32_t>& work1,
                                 const AscendC::LocalTensor<int32_t>& sum, uint32_t value, uint32_t count) {
  using namespace AscendC;
  if (count == 0) return 0;
  const auto n = static_cast<int32_t>(count);
  Duplicate(work0, static_cast<int32_t>(value), n);
  PipeBarrier<PIPE_V>();
  Sub(work1, values, work0, n);
  PipeBarrier<PIPE_V>();
  Abs(work0, work1, n);
  PipeBarrier<PIPE_V>();
  Mins(work1, work0, 1, n);
  PipeBarrier<PIPE_V>();
  TreeSum(sum, work1, work0, n);  // how many differ
  SetFlag<HardEvent::V_S>(EVENT_ID0);
  WaitFlag<HardEvent::V_S>(EVENT_ID0);
  return count - static_cast<uint32_t>(sum.GetValue(0));
}
