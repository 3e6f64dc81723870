// Softmax of rows of float that may be longer than the UBuffer: in chunks, with a pass for the maximum, one
// for the sum and one that writes. Arguments: firmware/abi/rows.h.
#include "row_pipeline.h"

using namespace AscendC;

namespace {

class Softmax {
 public:
  explicit Softmax(const cm384_rows& a) : a_(a) {
    Places places;
    for (uint32_t b = 0; b < a.buffers; ++b) {
      in_[b] = places.Allocate(a.chunk * 4);
      out_[b] = places.Allocate(a.chunk * 4);
    }
    lanes_ = LocalTensor<float>(places.Allocate(256));
    value_ = LocalTensor<float>(places.Allocate(256));
  }

  void Row(uint32_t row) {
    first_ = static_cast<uint64_t>(row) * a_.width;
    const Range chunks{0, (a_.width + a_.chunk - 1) / a_.chunk};
    PipeBarrier<PIPE_V>();
    Duplicate(lanes_, -__builtin_inff(), 64);
    Pass<kMaximum> maximum{*this};
    RunRows(maximum, chunks, a_.buffers);
    PipeBarrier<PIPE_V>();
    WholeReduceMax(value_, lanes_, 64, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
    maximum_ = FromVector(value_);
    ToVector();
    Duplicate(lanes_, 0.0f, 64);
    Pass<kSum> sum{*this};
    RunRows(sum, chunks, a_.buffers);
    PipeBarrier<PIPE_V>();
    WholeReduceSum(value_, lanes_, 64, 1, 1, 1, 8);
    factor_ = 1.0f / FromVector(value_);
    ToVector();
    Pass<kWrite> write{*this};
    RunRows(write, chunks, a_.buffers);
  }

 private:
  enum Step { kMaximum, kSum, kWrite };

  template <Step step>
  struct Pass {
    Softmax& of;
    void Load(uint32_t item, uint32_t b) {
      DataCopy(LocalTensor<float>(of.in_[b]), GlobalAt<float>(of.a_.in[0] + of.First(item) * 4),
               of.Count(item));
    }
    void Compute(uint32_t item, uint32_t b) {
      const LocalTensor<float> in(of.in_[b]), out(of.out_[b]);
      const uint32_t count = of.Count(item);
      PipeBarrier<PIPE_V>();
      if constexpr (step == kMaximum) return of.Gather<CM384_VMAX>(in, count);
      Adds(in, in, -of.maximum_, static_cast<int>(count));
      PipeBarrier<PIPE_V>();
      if constexpr (step == kSum) {
        Exp(in, in, static_cast<int>(count));
        PipeBarrier<PIPE_V>();
        return of.Gather<CM384_VADD>(in, count);
      } else {
        Exp(out, in, static_cast<int>(count));
        PipeBarrier<PIPE_V>();
        Muls(out, out, of.factor_, static_cast<int>(count));
      }
    }
    void Store(uint32_t item, uint32_t b) {
      if constexpr (step == kWrite)
        DataCopy(GlobalAt<float>(of.a_.out[0] + of.First(item) * 4), LocalTensor<float>(of.out_[b]),
                 of.Count(item));
    }
  };

  // All repeats of a chunk onto the 64 lanes.
  template <int Operation>
  CM384_INLINE void Gather(const LocalTensor<float>& in, uint32_t count) {
    for (uint32_t from = 0; from < count;) {
      const uint32_t left = (count - from) / 64, now = left < 255 ? left : 255;
      BinaryRepeat<Operation, CM384_F32, true>(lanes_, lanes_, in[from], uint64_t{64},
                                               static_cast<uint8_t>(now), {1, 1, 1, 0, 0, 8});
      from += now * 64;
      PipeBarrier<PIPE_V>();
    }
  }
  uint64_t First(uint32_t item) const { return first_ + item * a_.chunk; }
  uint32_t Count(uint32_t item) const {
    const uint32_t left = a_.width - item * a_.chunk;
    return left < a_.chunk ? left : a_.chunk;
  }

  const cm384_rows& a_;
  uint32_t in_[2], out_[2];
  LocalTensor<float> lanes_, value_;
  uint64_t first_ = 0;
  float maximum_ = 0, factor_ = 0;
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_rows& a = *reinterpret_cast<const cm384_rows*>(address);
  const Range rows =
      Share(a.rows, static_cast<uint32_t>(GetBlockNum()), static_cast<uint32_t>(GetBlockIdx()));
  Softmax op(a);
  for (uint32_t row = rows.first; row < rows.last; ++row) op.Row(row);
}
