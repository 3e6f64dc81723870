// Sends the experts' results back to where their tokens came from and adds each token's up with its weights.
#include "window.h"

using namespace AscendC;
using namespace low_latency;

extern "C" __global__ __aicore__ void low_latency_combine(GM_ADDR y, GM_ADDR sources, GM_ADDR ranges,
                                                          GM_ADDR topkIdx, GM_ADDR weights, GM_ADDR out,
                                                          GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
  REGISTER_TILING_DEFAULT(TilingData);
  GET_TILING_DATA(t, tiling);
  TPipe pipe;
  Window window;
  window.Init();
  const Shape shape(t, window.ranks);
  const uint32_t block = GetBlockIdx(), blocks = GetBlockNum();
  const uint64_t half_of = (t.round & 1) * shape.half;
  GlobalTensor<bfloat16_t> results, outputs;
  GlobalTensor<int32_t> source_of, chosen;
  GlobalTensor<int64_t> range_of;
  GlobalTensor<float> weight_of;
  results.SetGlobalBuffer((__gm__ bfloat16_t*)y);
  outputs.SetGlobalBuffer((__gm__ bfloat16_t*)out);
  source_of.SetGlobalBuffer((__gm__ int32_t*)sources);
  chosen.SetGlobalBuffer((__gm__ int32_t*)topkIdx);
  range_of.SetGlobalBuffer((__gm__ int64_t*)ranges);
  weight_of.SetGlobalBuffer((__gm__ float*)weights);

  TQueBind<TPosition::VECIN, TPosition::VECOUT, 2> move;
  TQue<TPosition::VECOUT, 1> done;
  TBuf<TPosition::VECCALC> sumBuf, rowBuf, inBuf, flagBuf;
  pipe.InitBuffer(move, 2, t.hidden * sizeof(bfloat16_t));
  pipe.InitBuffer(done, 1, t.hidden * sizeof(bfloat16_t));
  pipe.InitBuffer(sumBuf, t.hidden * sizeof(float));
  pipe.InitBuffer(rowBuf, t.hidden * sizeof(float));
  pipe.InitBuffer(inBuf, t.hidden * sizeof(bfloat16_t));
  pipe.InitBuffer(flagBuf, 32 * (t.experts + 2));

  // An answer a pair of expert and source rank: its rows, then a flag.
  const float turn = static_cast<float>(t.round / 2 + 1);
  for (uint32_t pair = block; pair < shape.localExperts * window.ranks; pair += blocks) {
    const uint32_t local = pair / window.ranks, source = pair % window.ranks;
    const int64_t range = range_of.GetValue(pair);
    const uint64_t first = static_cast<uint64_t>(local) * window.ranks * t.maxTokens + (range >> 32);
    const uint32_t count = static_cast<uint32_t>(range & 0xffffffff);
    GM_ADDR base = window.Of(source) + half_of;
    for (uint32_t n = 0; n < count; ++n) {
      const int32_t choice = source_of.GetValue(first + n);
      LocalTensor<bfloat16_t> row = move.AllocTensor<bfloat16_t>();
      DataCopy(row, results[(first + n) * t.hidden], t.hidden);
      move.EnQue(row);
      row = move.DeQue<bfloat16_t>();
      GlobalTensor<bfloat16_t> to;
      to.SetGlobalBuffer((__gm__ bfloat16_t*)(base + shape.Rows(t)) +
                         static_cast<uint64_t>(choice) * t.hidden);
      DataCopy(to, row, t.hidden);
      move.FreeTensor(row);
    }
    PipeBarrier<PIPE_ALL>();
    LocalTensor<float> flag = flagBuf.Get<float>();
    Duplicate(flag, turn, 8);
    SyncFunc<HardEvent::V_MTE3>();
    GlobalTensor<float> answer;
    answer.SetGlobalBuffer((__gm__ float*)(base + shape.Answer(t, window.rank * shape.localExperts + local)));
    DataCopy(answer, flag, 8);
    PipeBarrier<PIPE_ALL>();
  }

  // All experts have answered, those that had nothing to do, too. Every value of a flag is its turn.
  LocalTensor<float> flags = flagBuf.GetWithOffset<float>(t.experts * 8, 64), sum = flagBuf.Get<float>();
  GlobalTensor<float> answers;
  answers.SetGlobalBuffer((__gm__ float*)(window.Of(window.rank) + half_of + shape.Answer(t, 0)));
  float least = 0;
  do {
    DataCopy(flags, answers, t.experts * 8);
    SyncFunc<HardEvent::MTE2_V>();
    ReduceMin(sum, flags, sum, static_cast<int32_t>(t.experts * 8));
    SyncFunc<HardEvent::V_S>();
    least = sum.GetValue(0);
    SyncFunc<HardEvent::S_MTE2>();
  } while (least < turn);

  GM_ADDR own = window.Of(window.rank) + half_of + shape.Rows(t);
  LocalTensor<float> total = sumBuf.Get<float>(), row = rowBuf.Get<float>();
  LocalTensor<bfloat16_t> in = inBuf.Get<bfloat16_t>();
  GlobalTensor<bfloat16_t> back;
  back.SetGlobalBuffer((__gm__ bfloat16_t*)own);
  for (uint32_t token = block; token < t.tokens; token += blocks) {
    Duplicate(total, 0.0f, t.hidden);
    for (uint32_t k = 0; k < t.topk; ++k) {
      const uint64_t choice = static_cast<uint64_t>(token) * t.topk + k;
      if (chosen.GetValue(choice) < 0) continue;
      SyncFunc<HardEvent::V_MTE2>();
      DataCopy(in, back[choice * t.hidden], t.hidden);
      SyncFunc<HardEvent::MTE2_V>();
      Cast(row, in, RoundMode::CAST_NONE, t.hidden);
      PipeBarrier<PIPE_V>();
      Axpy(total, row, weight_of.GetValue(choice), t.hidden);
      PipeBarrier<PIPE_V>();
    }
    LocalTensor<bfloat16_t> result = done.AllocTensor<bfloat16_t>();
    Cast(result, total, RoundMode::CAST_RINT, t.hidden);
    done.EnQue(result);
    result = done.DeQue<bfloat16_t>();
    DataCopy(outputs[static_cast<uint64_t>(token) * t.hidden], result, t.hidden);
    done.FreeTensor(result);
  }
}
