// Root-mean-square norm of heads, rows of 64 or 128 floats in the UBuffer, on a vector core: instructions
// whose repeats go over all rows.
#pragma once

#include "kernel_operator.h"

// Bytes of the UBuffer that it takes, and of its work area for `rows` rows.
inline constexpr uint32_t kHeadNormBytes(uint32_t rows, uint32_t width) {
  return width * 6 + (rows + 7) / 8 * (32 + 256);
}

template <uint32_t kWidth>
class HeadNorm {
 public:
  // `base`: offset in the UBuffer of kHeadNormBytes(), for up to `rows` rows at a time.
  HeadNorm(uint32_t rows, uint32_t base, float epsilon)
      : gamma_(base),
        stored_(gamma_ + kWidth * 4),
        sums_(stored_ + kWidth * 2),
        spread_(sums_ + (rows + 7) / 8 * 32),
        epsilon_(epsilon) {}

  // Loads gamma, in BF16. Uses the flag `event` of MTE2_V.
  void Open(uint64_t gamma, int event) const {
    using namespace AscendC;
    const LocalTensor<bfloat16_t> stored(stored_, kWidth);
    DataCopy(stored, GlobalAt<bfloat16_t>(gamma), kWidth);
    SetFlag<HardEvent::MTE2_V>(event);
    WaitFlag<HardEvent::MTE2_V>(event);
    Cast(At(gamma_, kWidth), stored, RoundMode::CAST_NONE, kWidth);
    PipeBarrier<PIPE_V>();
  }

  // In place; `work` has room for the rows. A barrier follows; up to 255 rows.
  CM384_INLINE void Rows(const AscendC::LocalTensor<float>& heads, const AscendC::LocalTensor<float>& work,
                         uint32_t rows) const {
    using namespace AscendC;
    constexpr uint8_t kRow = kWidth / 8;
    const auto repeats = static_cast<uint8_t>(rows);
    const auto count = static_cast<int>(rows);
    const LocalTensor<float> sums = At(sums_, rows), spread = At(spread_, rows * 8);
    Mul(work, heads, heads, static_cast<int>(rows * kWidth));
    PipeBarrier<PIPE_V>();
    if constexpr (kWidth > 64) {
      Add(work, work, work[64], uint64_t{64}, repeats, {1, 1, 1, kRow, kRow, kRow});
      PipeBarrier<PIPE_V>();
    }
    WholeReduceSum(sums, work, 64, count, 1, 1, kRow);
    PipeBarrier<PIPE_V>();
    Muls(sums, sums, 1.0f / kWidth, count);
    PipeBarrier<PIPE_V>();
    Adds(sums, sums, epsilon_, count);
    PipeBarrier<PIPE_V>();
    Sqrt(sums, sums, count);
    PipeBarrier<PIPE_V>();
    Brcb(spread, sums, static_cast<uint8_t>((rows + 7) / 8), {1, 8});
    PipeBarrier<PIPE_V>();
    for (uint32_t part = 0; part < kWidth; part += 64)
      Div(heads[part], heads[part], spread, uint64_t{64}, repeats, {1, 1, 0, kRow, kRow, 1});
    PipeBarrier<PIPE_V>();
    for (uint32_t part = 0; part < kWidth; part += 64)
      Mul(heads[part], heads[part], At(gamma_, kWidth)[part], uint64_t{64}, repeats,
          {1, 1, 1, kRow, kRow, 0});
    PipeBarrier<PIPE_V>();
  }

 private:
  static AscendC::LocalTensor<float> At(uint32_t offset, uint32_t count) {
    return AscendC::LocalTensor<float>(offset, count);
  }

  const uint32_t gamma_, stored_, sums_, spread_;  // in the UBuffer
  const float epsilon_;
};
