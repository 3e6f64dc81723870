// y = 2 x + 1 over the die's memory, by all cores of the launch, with a copy in, the vector unit and a copy
// out at work at the same time.
#include "firmware/abi/kernel.h"
#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr uint32_t kTile = 4096;    // elements: 16 KiB
constexpr uint32_t kTiles = 4;      // of each block
constexpr uint32_t kSpare = 98304;  // offset in the UBuffer behind two tiles of x and two of y

// Writes x to memory: every element of tile t of block b is b + t.
void FillInput(const GlobalTensor<float>& x, float block) {
  const LocalTensor<float> tile(TPosition::VECCALC, 0, kTile);
  for (uint32_t t = 0; t < kTiles; ++t) {
    Duplicate(tile, block + static_cast<float>(t), kTile);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);  // the copy waits for the vector unit,
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(x[t * kTile], tile, kTile);
    SetFlag<HardEvent::MTE3_V>(EVENT_ID0);  // and the next fill for the copy
    WaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
  }
  PipeBarrier<PIPE_ALL>();  // all of x is in memory
}

// Two buffers each way: while one tile is computed, the next arrives and the one before leaves.
void Compute(const GlobalTensor<float>& x, const GlobalTensor<float>& y) {
  const LocalTensor<float> in(TPosition::VECIN, 0, 2 * kTile);
  const LocalTensor<float> out(TPosition::VECOUT, 2 * kTile * sizeof(float), 2 * kTile);
  for (event_t b = 0; b < 2; ++b) {  // at first all buffers are free
    SetFlag<HardEvent::V_MTE2>(b);
    SetFlag<HardEvent::MTE3_V>(b);
  }
  for (uint32_t t = 0; t < kTiles; ++t) {
    const event_t b = t % 2;
    const LocalTensor<float> x_tile = in[b * kTile], y_tile = out[b * kTile];
    WaitFlag<HardEvent::V_MTE2>(b);
    DataCopy(x_tile, x[t * kTile], kTile);
    SetFlag<HardEvent::MTE2_V>(b);

    WaitFlag<HardEvent::MTE2_V>(b);
    WaitFlag<HardEvent::MTE3_V>(b);
    Muls(y_tile, x_tile, 2.0f, kTile);
    SetFlag<HardEvent::V_MTE2>(b);
    PipeBarrier<PIPE_V>();  // the next instruction needs the result of this one
    Adds(y_tile, y_tile, 1.0f, kTile);
    SetFlag<HardEvent::V_MTE3>(b);

    WaitFlag<HardEvent::V_MTE3>(b);
    DataCopy(y[t * kTile], y_tile, kTile);
    SetFlag<HardEvent::MTE3_V>(b);
  }
  for (event_t b = 0; b < 2; ++b) {  // every flag that was set is waited for
    WaitFlag<HardEvent::V_MTE2>(b);
    WaitFlag<HardEvent::MTE3_V>(b);
  }
}

// Sum of all elements of y.
float Sum(const GlobalTensor<float>& y) {
  const LocalTensor<float> tile(TPosition::VECIN, 0, kTile);
  const LocalTensor<float> work(TPosition::VECCALC, kSpare, 64), sum(TPosition::VECCALC, kSpare + 1024, 8);
  float total = 0;
  for (uint32_t t = 0; t < kTiles; ++t) {
    DataCopy(tile, y[t * kTile], kTile);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    ReduceSum(sum, tile, work, kTile);
    SetFlag<HardEvent::V_S>(EVENT_ID0);  // the scalar unit waits for the vector unit
    WaitFlag<HardEvent::V_S>(EVENT_ID0);
    total += sum.GetValue(0);
  }
  return total;
}

}  // namespace

extern "C" void kernel_main(GM_ADDR arguments) {
  const auto* memory = reinterpret_cast<const cm384_kernel*>(arguments);
  const uint32_t block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  constexpr uint64_t kBytes = kTiles * kTile * sizeof(float);  // of x or y of one block: 64 KiB
  if (arguments == nullptr || memory->scratch_bytes < 2 * blocks * kBytes) Abort("hello: too little memory");
  const GlobalTensor<float> x = GlobalAt<float>(memory->scratch + block * kBytes);
  const GlobalTensor<float> y = GlobalAt<float>(memory->scratch + (blocks + block) * kBytes);

  FillInput(x, static_cast<float>(block));
  SyncAll();  // all blocks start together
  const uint64_t start = GetCoreCycle();
  Compute(x, y);
  PipeBarrier<PIPE_ALL>();
  const uint64_t cycles = GetCoreCycle() - start;

  const float sum = Sum(y);
  float expected = 0;
  for (uint32_t t = 0; t < kTiles; ++t) expected += static_cast<float>(kTile * (2 * (block + t) + 1));
  PRINTF("block %u of %u: sum %.1f, %u elements in %lu cycles\n", block, blocks, sum, kTiles * kTile, cycles);
  if (sum != expected) Abort("hello: the sum is wrong");
}
