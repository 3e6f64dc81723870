// Root-mean-square norm of the sum of two matrices' rows. Arguments: firmware/abi/rows.h.
#include "row_pipeline.h"

using namespace AscendC;

namespace {

class AddRmsNorm {
 public:
  explicit AddRmsNorm(const cm384_rows& a) : a_(a), count_(static_cast<int>(a.width)) {
    Places places;
    for (uint32_t b = 0; b < a.buffers; ++b) {
      x_[b] = places.Allocate(a.width * 2);
      residual_[b] = places.Allocate(a.width * 2);
      sum_[b] = places.Allocate(a.width * 2);
      out_[b] = places.Allocate(a.width * 2);
    }
    row_ = LocalTensor<float>(places.Allocate(a.width * 4));
    work_ = LocalTensor<float>(places.Allocate(a.width * 4));
    gamma_ = places.Allocate(a.width * 2);
    total_ = LocalTensor<float>(places.Allocate(256));
  }

  // Its flag is one that rows do not use.
  void LoadGamma() {
    LoadBf16(gamma_, a_.in[2], 0, a_.width);
    SetFlag<HardEvent::MTE2_V>(2);
  }
  void Load(uint32_t row, uint32_t b) {
    LoadBf16(x_[b], a_.in[0], First(row), a_.width);
    LoadBf16(residual_[b], a_.in[1], First(row), a_.width);
  }
  void Compute(uint32_t, uint32_t b) {
    PipeBarrier<PIPE_V>();
    Widen(row_, x_[b], a_.width);
    Widen(work_, residual_[b], a_.width);
    PipeBarrier<PIPE_V>();
    Add(row_, row_, work_, count_);
    PipeBarrier<PIPE_V>();
    Narrow(sum_[b], row_, a_.width);
    Mul(work_, row_, row_, count_);
    Fold<CM384_VADD>(work_, a_.width);
    WholeReduceSum(total_, work_, 64, 1, 1, 1, 8);
    const float mean = FromVector(total_) / static_cast<float>(a_.width);
    float root = mean + a_.epsilon;
    asm("fsqrt.s %0, %0" : "+f"(root));
    ToVector();
    if (first_) WaitFlag<HardEvent::MTE2_V>(2);
    first_ = false;
    Muls(row_, row_, 1.0f / root, count_);
    Widen(work_, gamma_, a_.width);
    PipeBarrier<PIPE_V>();
    Mul(row_, row_, work_, count_);
    PipeBarrier<PIPE_V>();
    Narrow(out_[b], row_, a_.width);
  }
  void Store(uint32_t row, uint32_t b) {
    StoreBf16(a_.out[1], First(row), sum_[b], a_.width);
    StoreBf16(a_.out[0], First(row), out_[b], a_.width);
  }

 private:
  uint64_t First(uint32_t row) const { return static_cast<uint64_t>(row) * a_.width; }

  const cm384_rows& a_;
  const int count_;
  bool first_ = true;
  uint32_t x_[2], residual_[2], sum_[2], out_[2], gamma_;
  LocalTensor<float> row_, work_, total_;
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_rows& a = *reinterpret_cast<const cm384_rows*>(address);
  const Range rows =
      Share(a.rows, static_cast<uint32_t>(GetBlockNum()), static_cast<uint32_t>(GetBlockIdx()));
  if (rows.size() == 0) return;
  AddRmsNorm op(a);
  op.LoadGamma();
  RunRows(op, rows, a.buffers);
}
