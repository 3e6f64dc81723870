// Loops that wait for a flag by looking at it again and again, without a mark. Rank 1 sets the flag after a
// while; rank 0 waits in the way that `way` says.
#include "kernel_operator.h"

using namespace AscendC;

struct PollsTiling {
  uint32_t rank, way, delay_us, rounds;
};

// Each way leaves in `seen` what it has come to.
class Waits {
 public:
  __aicore__ inline void Init(GM_ADDR flags, GM_ADDR out) {
    flags_.SetGlobalBuffer((__gm__ float*)flags);
    out_.SetGlobalBuffer((__gm__ int32_t*)out);
    pipe_.InitBuffer(seenBuf_, 32 * 8);
    pipe_.InitBuffer(sumBuf_, 32);
    pipe_.InitBuffer(workBuf_, 256);
    pipe_.InitBuffer(countBuf_, 32);
    pipe_.InitBuffer(changedBuf_, 32);
    count_ = countBuf_.Get<int32_t>();
    changed_ = changedBuf_.Get<int32_t>();
    Duplicate<int32_t>(count_, 0, 8);
    Duplicate<int32_t>(changed_, 0, 8);
    PipeBarrier<PIPE_ALL>();
  }
  // Copies 8 flags of 32 B, adds their first words up.
  __aicore__ inline float Look() {
    LocalTensor<float> seen = seenBuf_.Get<float>(), sum = sumBuf_.Get<float>();
    Both<HardEvent::S_MTE2>();
    DataCopy(seen, flags_, DataCopyParams{8, 1, 0, 0});
    Both<HardEvent::MTE2_V>();
    ReduceSum(sum, seen, workBuf_.Get<float>(), 1, 8, 1);
    Both<HardEvent::V_S>();
    return sum.GetValue(0);
  }
  template <HardEvent event>
  __aicore__ inline void Both() {
    SetFlag<event>(EVENT_ID0);
    WaitFlag<event>(EVENT_ID0);
  }
  __aicore__ inline void Write(int32_t at) {
    Both<HardEvent::S_MTE3>();
    DataCopy(out_[at * 8], count_, 8);
    Both<HardEvent::MTE3_S>();
  }

  __aicore__ inline void Process(uint32_t way, float wanted) {
    const int64_t begin = GetSystemCycle();
    volatile int32_t turns = 0;
    int32_t counted = 0;
    float last = 0;
    for (;;) {
      const float now = Look();
      if (way == 1) ++counted;                                    // in a register
      if (way == 2) turns = turns + 1;                            // in memory
      if (way == 3) Adds(count_, count_, 1, 8);                   // in the UBuffer
      if (way == 4) Write(1);                                     // to memory that others see
      if (way == 5 && GetSystemCycle() - begin > 50 * 15) break;  // gives up after 15 us
      if (way == 6) counted = counted * 5 + static_cast<int32_t>(GetSystemCycle() & 1);
      if (way == 7) *(__gm__ volatile int32_t*)out_[16].GetPhyAddr() = ++counted;
      // When has it changed last? As kernels do that look for ranks that are late.
      const auto duration = static_cast<int32_t>((GetSystemCycle() - begin) / 50);
      if (now != last) {
        changed_.SetValue(0, changed_.GetValue(0) + duration);
        last = now;
      }
      if (now == wanted) break;
    }
    PipeBarrier<PIPE_ALL>();
    if (way != 3) count_.SetValue(0, way == 2 ? turns : counted);
    count_.SetValue(1, changed_.GetValue(0));
    count_.SetValue(2, static_cast<int32_t>(last));
    Write(0);
  }

 private:
  TPipe pipe_;
  TBuf<> seenBuf_, sumBuf_, workBuf_, countBuf_, changedBuf_;
  LocalTensor<int32_t> count_, changed_;
  GlobalTensor<float> flags_;
  GlobalTensor<int32_t> out_;
};

extern "C" __global__ __aicore__ void polls(GM_ADDR flags, GM_ADDR out, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(PollsTiling, data, tiling);
  if (data.rank == 0) {
    Waits waits;
    waits.Init(flags, out);
    waits.Process(data.way, static_cast<float>(data.rounds));
    return;
  }
  TPipe pipe;
  TBuf<> buffer;
  pipe.InitBuffer(buffer, 32);
  LocalTensor<float> flag = buffer.Get<float>();
  Duplicate<float>(flag, 1.0f, 8);
  PipeBarrier<PIPE_ALL>();
  for (uint32_t round = 0; round < data.rounds; ++round) {
    const int64_t begin = GetSystemCycle();
    while (GetSystemCycle() - begin < 50 * data.delay_us) {
    }
    GlobalTensor<float> to;
    to.SetGlobalBuffer((__gm__ float*)flags + round * 8);
    DataCopy(to, flag, 8);
    PipeBarrier<PIPE_ALL>();
  }
}
