// Rotary position embedding of rows of 64 or 128 on a vector core: elements i and half + i are a plane,
// turned by the angle i of the token's position.
#pragma once

#include "firmware/abi/mla.h"
#include "kernel_operator.h"

// Bytes of the UBuffer for `rows` rows at a time.
inline constexpr uint32_t kRopeBytes(uint32_t rows, uint32_t width = CM384_MLA_ROPE) {
  return rows * width * 20 + 2 * width * 8;
}

// Rows are rotated as they are.
struct AsTheyAre {
  CM384_INLINE void operator()(const AscendC::LocalTensor<float>&, const AscendC::LocalTensor<float>&) const {
  }
};

// Two buffers each way, taken in turn. Uses the flags `event` and `event` + 1 of V_MTE2, MTE2_V, MTE3_V and
// V_MTE3.
template <uint32_t kWidth>
class RopeOf {
 public:
  RopeOf(uint32_t rows, uint32_t base, int event) : rows_(rows), event_(event) {
    uint32_t next = base;
    const auto allocate = [&next](uint32_t bytes) {
      const uint32_t at = next;
      next += bytes;
      return at;
    };
    for (uint32_t b = 0; b < 2; ++b) {
      angles_[b] = allocate(kWidth * 8);
      in_[b] = allocate(rows * kWidth * 2);
      out_[b] = allocate(rows * kWidth * 2);
    }
    row_ = allocate(rows * kWidth * 4);
    turned_ = allocate(rows * kWidth * 4);
    sum_ = allocate(rows * kWidth * 4);
  }

  void Open() const {
    using namespace AscendC;
    for (int b = 0; b < 2; ++b) {
      SetFlag<HardEvent::V_MTE2>(event_ + b);
      SetFlag<HardEvent::MTE3_V>(event_ + b);
    }
  }
  void Close() const {
    using namespace AscendC;
    for (int b = 0; b < 2; ++b) {
      WaitFlag<HardEvent::V_MTE2>(event_ + b);
      WaitFlag<HardEvent::MTE3_V>(event_ + b);
    }
  }

  // Rows `pitch` bytes apart at `from`, by the angles at `angles` (cosines of a row, sines, the first half of
  // these negated); `store` copies them from their place in the UBuffer to memory. `before` changes them in
  // FP32, with a second area as large.
  template <class Store, class Before = AsTheyAre>
  CM384_INLINE void Rows(uint64_t from, uint64_t pitch, uint64_t angles, Store&& store,
                         Before&& before = {}) {
    using namespace AscendC;
    const uint32_t b = turns_++ & 1, elements = rows_ * kWidth;
    const int event = event_ + static_cast<int>(b);
    const LocalTensor<bfloat16_t> in(in_[b], elements), out(out_[b], elements);
    const LocalTensor<float> row(row_, elements), turned(turned_, elements), sum(sum_, elements);
    const LocalTensor<float> cosines(angles_[b], kWidth), sines(angles_[b] + kWidth * 4, kWidth);
    const auto repeats = static_cast<uint8_t>(rows_);
    const BinaryRepeatParams each{1, 1, 1, kWidth / 8, kWidth / 8, 0};
    WaitFlag<HardEvent::V_MTE2>(event);
    CopyBursts<CM384_MTE_GM_TO_UB>(in_[b], from, kWidth * 2, rows_, pitch, kWidth * 2);
    DataCopy(LocalTensor<float>(angles_[b], 2 * kWidth), GlobalAt<float>(angles), 2 * kWidth);
    SetFlag<HardEvent::MTE2_V>(event);
    WaitFlag<HardEvent::MTE2_V>(event);
    PipeBarrier<PIPE_V>();
    Cast(row, in, RoundMode::CAST_NONE, elements);
    PipeBarrier<PIPE_V>();
    before(row, sum);
    for (uint32_t part = 0; part < kWidth; part += 64)
      Mul(sum[part], row[part], cosines[part], uint64_t{64}, repeats, each);
    Mul(turned, row[kHalf], sines, uint64_t{kHalf}, repeats, each);
    Mul(turned[kHalf], row, sines[kHalf], uint64_t{kHalf}, repeats, each);
    SetFlag<HardEvent::V_MTE2>(event);
    PipeBarrier<PIPE_V>();
    Add(sum, sum, turned, static_cast<int>(elements));
    PipeBarrier<PIPE_V>();
    WaitFlag<HardEvent::MTE3_V>(event);
    Cast(out, sum, RoundMode::CAST_RINT, elements);
    SetFlag<HardEvent::V_MTE3>(event);
    WaitFlag<HardEvent::V_MTE3>(event);
    store(out_[b]);
    SetFlag<HardEvent::MTE3_V>(event);
  }

 private:
  static constexpr uint32_t kHalf = kWidth / 2;

  const uint32_t rows_;
  const int event_;
  uint32_t angles_[2], in_[2], out_[2], row_, turned_, sum_;  // offsets in the UBuffer
  uint32_t turns_ = 0;
};

using Rope = RopeOf<CM384_MLA_ROPE>;
