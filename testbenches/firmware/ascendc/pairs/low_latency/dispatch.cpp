// Sends each token to the experts that it has chosen, as int8 with a scale a row, into slots of its own, then
// tells every expert how many have come; takes what has come to this rank's experts out of its window,
// packed.
#include "window.h"

using namespace AscendC;
using namespace low_latency;

namespace {

class Dispatch {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR topkIdx, GM_ADDR rows, GM_ADDR scales, GM_ADDR sources,
                              GM_ADDR ranges, GM_ADDR workspace, TPipe* pipe, const TilingData* tiling) {
    t_ = tiling;
    window_.Init();
    block_ = GetBlockIdx();
    blocks_ = GetBlockNum();
    x_.SetGlobalBuffer((__gm__ bfloat16_t*)x);
    topk_.SetGlobalBuffer((__gm__ int32_t*)topkIdx);
    rows_.SetGlobalBuffer((__gm__ int8_t*)rows);
    scales_.SetGlobalBuffer((__gm__ float*)scales);
    sources_.SetGlobalBuffer((__gm__ int32_t*)sources);
    ranges_.SetGlobalBuffer((__gm__ int64_t*)ranges);
    pipe->InitBuffer(inQueue_, 2, t_->hidden * sizeof(bfloat16_t));
    pipe->InitBuffer(outQueue_, 2, t_->hidden + 32);
    pipe->InitBuffer(castBuf_, t_->hidden * sizeof(float));
    pipe->InitBuffer(absBuf_, t_->hidden * sizeof(float));
    pipe->InitBuffer(halfBuf_, t_->hidden * sizeof(half));
    pipe->InitBuffer(maxBuf_, 64);
    pipe->InitBuffer(idxBuf_, (t_->tokens * t_->topk * sizeof(int32_t) + 31) / 32 * 32);
    pipe->InitBuffer(flagBuf_, window_.ranks * 32 + 64);
    pipe->InitBuffer(sumBuf_, 64);
    pipe->InitBuffer(moveQueue_, 2, t_->hidden + 32);
    pipe->InitBuffer(smallBuf_, 64);
  }

  __aicore__ inline void Process() {
    const Shape shape(*t_, window_.ranks);
    Send(shape);
    Receive(shape);
  }

 private:
  // Experts are dealt out to the cores; a core that has none goes on.
  __aicore__ inline void Send(const Shape& shape) {
    LocalTensor<int32_t> idx = idxBuf_.Get<int32_t>();
    const uint32_t choices = t_->tokens * t_->topk;
    DataCopyExtParams copy{1U, static_cast<uint32_t>(choices * sizeof(int32_t)), 0U, 0U, 0U};
    DataCopyPadExtParams<int32_t> pad{false, 0U, 0U, 0};
    DataCopyPad(idx, topk_, copy, pad);
    SyncFunc<HardEvent::MTE2_S>();
    for (uint32_t expert = block_; expert < t_->experts; expert += blocks_) {
      const uint32_t target = expert / shape.localExperts, local = expert % shape.localExperts;
      GM_ADDR base = window_.Of(target) + (t_->round & 1) * shape.half;
      uint32_t sent = 0;
      for (uint32_t i = 0; i < choices; ++i) {
        if (idx.GetValue(i) != static_cast<int32_t>(expert)) continue;
        SendRow(base + shape.Slot(*t_, local, window_.rank, sent), i);
        ++sent;
      }
      PipeBarrier<PIPE_ALL>();
      // 1.0 says that the count behind it is there.
      LocalTensor<float> flag = smallBuf_.Get<float>();
      LocalTensor<int32_t> count = flag.ReinterpretCast<int32_t>();
      Duplicate<float>(flag, 0.0f, 8);
      SyncFunc<HardEvent::V_S>();
      flag.SetValue(0, static_cast<float>(t_->round / 2 + 1));
      count.SetValue(1, sent);
      SyncFunc<HardEvent::S_MTE3>();
      GlobalTensor<float> at;
      at.SetGlobalBuffer((__gm__ float*)(base + shape.Count(*t_, local, window_.rank)));
      DataCopy(at, flag, 8);
      PipeBarrier<PIPE_ALL>();
    }
  }
  __aicore__ inline void SendRow(GM_ADDR slot, uint32_t choice) {
    LocalTensor<bfloat16_t> in = inQueue_.AllocTensor<bfloat16_t>();
    DataCopy(in, x_[static_cast<uint64_t>(choice / t_->topk) * t_->hidden], t_->hidden);
    inQueue_.EnQue(in);
    in = inQueue_.DeQue<bfloat16_t>();
    LocalTensor<float> value = castBuf_.Get<float>(), abs = absBuf_.Get<float>(), most = maxBuf_.Get<float>();
    LocalTensor<half> rounded = halfBuf_.Get<half>();
    LocalTensor<int8_t> out = outQueue_.AllocTensor<int8_t>();
    Cast(value, in, RoundMode::CAST_NONE, t_->hidden);
    PipeBarrier<PIPE_V>();
    Abs(abs, value, t_->hidden);
    PipeBarrier<PIPE_V>();
    ReduceMax(most, abs, abs, t_->hidden, false);
    SyncFunc<HardEvent::V_S>();
    const float amax = most.GetValue(0);
    const float scale = 127.0f / amax;
    SyncFunc<HardEvent::S_V>();
    Muls(value, value, scale, t_->hidden);
    PipeBarrier<PIPE_V>();
    Cast(rounded, value, RoundMode::CAST_RINT, t_->hidden);
    PipeBarrier<PIPE_V>();
    Cast(out, rounded, RoundMode::CAST_RINT, t_->hidden);
    LocalTensor<float> tail = out[t_->hidden].ReinterpretCast<float>();
    SyncFunc<HardEvent::V_S>();
    tail.SetValue(0, amax / 127.0f);
    tail.ReinterpretCast<int32_t>().SetValue(1, static_cast<int32_t>(choice));
    SyncFunc<HardEvent::S_MTE3>();
    outQueue_.EnQue(out);
    out = outQueue_.DeQue<int8_t>();
    GlobalTensor<int8_t> to;
    to.SetGlobalBuffer((__gm__ int8_t*)slot);
    DataCopyExtParams copy(1, t_->hidden + 8, 0, 0, 0);
    DataCopyPad(to, out, copy);
    outQueue_.FreeTensor(out);
    inQueue_.FreeTensor(in);
  }

  __aicore__ inline void Receive(const Shape& shape) {
    GM_ADDR base = window_.Of(window_.rank) + (t_->round & 1) * shape.half;
    LocalTensor<float> flags = flagBuf_.Get<float>(), sum = sumBuf_.Get<float>();
    const float wanted = static_cast<float>(window_.ranks * (t_->round / 2 + 1));
    for (uint32_t local = block_; local < shape.localExperts; local += blocks_) {
      GlobalTensor<float> from;
      from.SetGlobalBuffer((__gm__ float*)(base + shape.Count(*t_, local, 0)));
      uint64_t mask[2] = {0x0101010101010101, 0};
      float seen = 0;
      while (seen != wanted) {
        SyncFunc<HardEvent::S_MTE2>();
        DataCopy(flags, from, window_.ranks * 8);
        SyncFunc<HardEvent::MTE2_V>();
        ReduceSum<float>(sum, flags, sum[8], mask, (window_.ranks + 7) / 8, 8);
        SyncFunc<HardEvent::V_S>();
        seen = sum.GetValue(0);
      }
      uint64_t place = static_cast<uint64_t>(local) * window_.ranks * t_->maxTokens;
      const uint64_t first = place;
      LocalTensor<int64_t> range = smallBuf_.Get<int64_t>();
      for (uint32_t source = 0; source < window_.ranks; ++source) {
        const auto count = static_cast<uint32_t>(flags.ReinterpretCast<int32_t>().GetValue(source * 8 + 1));
        range.SetValue(0, static_cast<int64_t>((place - first) << 32 | count));
        SyncFunc<HardEvent::S_MTE3>();
        DataCopyPad(ranges_[static_cast<uint64_t>(local) * window_.ranks + source], range, {1, 8, 0, 0, 0});
        SyncFunc<HardEvent::MTE3_S>();
        for (uint32_t n = 0; n < count; ++n, ++place)
          MoveRow(base + shape.Slot(*t_, local, source, n), place);
      }
    }
  }
  __aicore__ inline void MoveRow(GM_ADDR slot, uint64_t place) {
    GlobalTensor<int8_t> from;
    from.SetGlobalBuffer((__gm__ int8_t*)slot);
    LocalTensor<int8_t> row = moveQueue_.AllocTensor<int8_t>();
    DataCopy(row, from, t_->hidden + 32);
    moveQueue_.EnQue(row);
    row = moveQueue_.DeQue<int8_t>();
    DataCopy(rows_[place * t_->hidden], row, t_->hidden);
    LocalTensor<float> tail = row[t_->hidden].ReinterpretCast<float>();
    DataCopyPad(scales_[place], tail, {1, sizeof(float), 0, 0, 0});
    // The source's choice stands one word further: a copy begins at a block.
    LocalTensor<int32_t> source = tail.ReinterpretCast<int32_t>();
    SyncFunc<HardEvent::MTE3_S>();
    source.SetValue(0, source.GetValue(1));
    SyncFunc<HardEvent::S_MTE3>();
    DataCopyPad(sources_[place], source, {1, sizeof(int32_t), 0, 0, 0});
    moveQueue_.FreeTensor(row);
  }

  const TilingData* t_;
  Window window_;
  uint32_t block_, blocks_;
  GlobalTensor<bfloat16_t> x_;
  GlobalTensor<int32_t> topk_, sources_;
  GlobalTensor<int8_t> rows_;
  GlobalTensor<float> scales_;
  GlobalTensor<int64_t> ranges_;
  TQue<QuePosition::VECIN, 2> inQueue_;
  TQue<QuePosition::VECOUT, 2> outQueue_;
  TQueBind<QuePosition::VECIN, QuePosition::VECOUT, 2> moveQueue_;
  TBuf<> castBuf_, absBuf_, halfBuf_, maxBuf_, idxBuf_, flagBuf_, sumBuf_, smallBuf_;
};

}  // namespace

extern "C" __global__ __aicore__ void low_latency_dispatch(GM_ADDR x, GM_ADDR topkIdx, GM_ADDR rows,
                                                           GM_ADDR scales, GM_ADDR sources, GM_ADDR ranges,
                                                           GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  REGISTER_TILING_DEFAULT(TilingData);
  GET_TILING_DATA_WITH_STRUCT(TilingData, tilingData, tiling);
  TPipe pipe;
  Dispatch op;
  op.Init(x, topkIdx, rows, scales, sources, ranges, workspace, &pipe, &tilingData);
  op.Process();
}
