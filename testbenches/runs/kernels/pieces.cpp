// What Ascend C kernels do below its objects: pointers into the UBuffer that count from 0, copies that add at
// the target, casts of all roundings, sums, a tiling struct with a key.
#include <cstdint>
#include <type_traits>

#include "kernel_operator.h"

using namespace AscendC;

struct PiecesTiling {
  Mc2InitTiling opaque;
  uint8_t small;
  uint64_t large;
  float factor;
  bfloat16_t narrow;
};

extern "C" __global__ __aicore__ void pieces(GM_ADDR sums, GM_ADDR rounded, GM_ADDR seen, GM_ADDR a4,
                                             GM_ADDR a5, GM_ADDR a6, GM_ADDR a7, GM_ADDR a8, GM_ADDR nine,
                                             GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(PiecesTiling);
  GET_TILING_DATA(data, tiling);
  TPipe pipe;
  TBuf<> head, floats, work, results;
  pipe.InitBuffer(head, 32);
  pipe.InitBuffer(floats, 256);
  pipe.InitBuffer(work, 256);
  pipe.InitBuffer(results, 256);

  // Block b adds b + 1 to each of 8 integers, by a pointer that is an offset: 0, of all.
  auto* first = reinterpret_cast<__ubuf__ int32_t*>(get_imm(0));
  for (int i = 0; i < 8; ++i) first[i] = static_cast<int32_t>(GetBlockIdx()) + 1;
  const int32_t id = GetTPipePtr()->FetchEventID(HardEvent::S_MTE3);
  SetFlag<HardEvent::S_MTE3>(id);
  WaitFlag<HardEvent::S_MTE3>(id);
  GlobalTensor<int32_t> to;
  to.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(sums));
  SetAtomicAdd<int32_t>();
  DataCopyPad(to, head.Get<int32_t>(), DataCopyExtParams{1U, 32U, 0U, 0U, 0U});
  SetAtomicNone();
  PipeBarrier<PIPE_ALL>();
  if (GetBlockIdx() != 0 || !TILING_KEY_IS(77)) return;

  // 2.5 and -2.5 in every rounding, each pair to 8 integers of its own.
  LocalTensor<float> x = floats.Get<float>();
  Duplicate<float>(x, data.factor, 4);
  LocalTensor<float> negative = floats.GetWithOffset<float>(8, 32);
  Muls(negative, x, -1.0f, 4);
  PipeBarrier<PIPE_V>();
  LocalTensor<int32_t> y = results.Get<int32_t>();
  GlobalTensor<int32_t> out;
  out.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(rounded));
  const RoundMode modes[] = {RoundMode::CAST_RINT,  RoundMode::CAST_FLOOR, RoundMode::CAST_CEIL,
                             RoundMode::CAST_ROUND, RoundMode::CAST_TRUNC, RoundMode::CAST_ODD};
  for (uint32_t m = 0; m < 6; ++m) {
    Cast(y, x, modes[m], 16);
    PipeBarrier<PIPE_ALL>();
    DataCopyPad(out[m * 16], y, DataCopyExtParams{1U, 64U, 0U, 0U, 0U});
    PipeBarrier<PIPE_ALL>();
  }

  // Sums: of 3 rows of 8, row by row; of the first element of each row, by mask and repeat.
  Duplicate<float>(x, 1.0f, 24);
  PipeBarrier<PIPE_V>();
  LocalTensor<float> s = work.Get<float>();
  Sum(s, x, SumParams{3, 8, 8});
  ReduceSum(s[16], x, s[32], 1, 3, 1);
  PipeBarrier<PIPE_ALL>();
  GlobalTensor<float> facts;
  facts.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(seen));
  float values[8] = {s(0),
                     s(2),
                     s(16),
                     static_cast<float>(data.small),
                     static_cast<float>(data.large),
                     static_cast<float>(data.narrow),
                     static_cast<float>(reinterpret_cast<uint64_t>(nine)),
                     static_cast<float>(half(0.1f))};
  for (int i = 0; i < 8; ++i) facts(i) = values[i];
  DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(facts);
}
