// INT8 quantisation of rows, with a factor of the row's own or with one per column. Arguments:
// firmware/abi/rows.h.
#include "row_pipeline.h"

using namespace AscendC;

namespace {

class QuantiseRows {
 public:
  explicit QuantiseRows(const cm384_rows& a)
      : a_(a), count_(static_cast<int>(a.width)), by_column_((a.flags & CM384_ROWS_STATIC) != 0) {
    Places places;
    for (uint32_t b = 0; b < a.buffers; ++b) {
      in_[b] = places.Allocate(a.width * 2);
      out_[b] = places.Allocate(a.width);
      scale_[b] = places.Allocate(256);
    }
    row_ = LocalTensor<float>(places.Allocate(a.width * 4));
    work_ = LocalTensor<float>(places.Allocate(a.width * 4));
    if (by_column_) factors_ = LocalTensor<float>(places.Allocate(a.width * 4));
    maximum_ = LocalTensor<float>(places.Allocate(256));
  }

  void LoadFactors() {
    if (by_column_) DataCopy(factors_, GlobalAt<float>(a_.in[1]), a_.width);
    SetFlag<HardEvent::MTE2_V>(2);
  }
  void Load(uint32_t row, uint32_t b) {
    LoadBf16(in_[b], a_.in[0], static_cast<uint64_t>(row) * a_.width, a_.width);
  }
  void Compute(uint32_t, uint32_t b) {
    PipeBarrier<PIPE_V>();
    Widen(row_, in_[b], a_.width);
    PipeBarrier<PIPE_V>();
    if (first_) WaitFlag<HardEvent::MTE2_V>(2);
    first_ = false;
    if (by_column_) {
      Mul(row_, row_, factors_, count_);
    } else {
      Abs(work_, row_, count_);
      Fold<CM384_VMAX>(work_, a_.width);
      WholeReduceMax(maximum_, work_, 64, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
      const float factor = 127.0f / FromVector(maximum_);
      ToVector();
      Muls(row_, row_, factor, count_);
      Duplicate(LocalTensor<float>(scale_[b]), 1.0f / factor, 8);
    }
    const auto integers = work_.ReinterpretCast<int32_t>();
    const auto halves = row_.ReinterpretCast<half>();
    PipeBarrier<PIPE_V>();
    Cast(integers, row_, RoundMode::CAST_RINT, a_.width);
    PipeBarrier<PIPE_V>();
    Cast(halves, integers, RoundMode::CAST_RINT, a_.width);
    PipeBarrier<PIPE_V>();
    Cast(LocalTensor<int8_t>(out_[b]), halves, RoundMode::CAST_TRUNC, a_.width);
  }
  void Store(uint32_t row, uint32_t b) {
    DataCopy(GlobalAt<int8_t>(a_.out[0] + static_cast<uint64_t>(row) * a_.width),
             LocalTensor<int8_t>(out_[b]), a_.width);
    if (!by_column_)
      DataCopyPad(GlobalAt<float>(a_.out[1] + row * 4ull), LocalTensor<float>(scale_[b]), {1, 4, 0, 0, 0});
  }

 private:
  const cm384_rows& a_;
  const int count_;
  const bool by_column_;
  bool first_ = true;
  uint32_t in_[2], out_[2], scale_[2];
  LocalTensor<float> row_, work_, factors_, maximum_;
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_rows& a = *reinterpret_cast<const cm384_rows*>(address);
  const Range rows =
      Share(a.rows, static_cast<uint32_t>(GetBlockNum()), static_cast<uint32_t>(GetBlockIdx()));
  if (rows.size() == 0) return;
  QuantiseRows op(a);
  op.LoadFactors();
  RunRows(op, rows, a.buffers);
}
