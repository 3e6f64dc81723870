// silu(gate) * up of rows that hold gate, then up. Arguments: firmware/abi/rows.h.
#include "row_pipeline.h"

using namespace AscendC;

namespace {

class SwiGluRows {
 public:
  explicit SwiGluRows(const cm384_rows& a) : a_(a), count_(static_cast<int>(a.width)) {
    Places places;
    for (uint32_t b = 0; b < a.buffers; ++b) {
      in_[b] = places.Allocate(a.width * 4);
      out_[b] = places.Allocate(a.width * 2);
    }
    gate_ = LocalTensor<float>(places.Allocate(a.width * 4));
    up_ = LocalTensor<float>(places.Allocate(a.width * 4));
    work_ = LocalTensor<float>(places.Allocate(a.width * 4));
  }

  void Load(uint32_t row, uint32_t b) {
    LoadBf16(in_[b], a_.in[0], static_cast<uint64_t>(row) * a_.width * 2, a_.width * 2);
  }
  void Compute(uint32_t, uint32_t b) {
    PipeBarrier<PIPE_V>();
    Widen(gate_, in_[b], a_.width);
    Widen(up_, in_[b] + a_.width * 2, a_.width);
    PipeBarrier<PIPE_V>();
    Muls(work_, gate_, -1.0f, count_);
    PipeBarrier<PIPE_V>();
    Exp(work_, work_, count_);
    PipeBarrier<PIPE_V>();
    Adds(work_, work_, 1.0f, count_);
    PipeBarrier<PIPE_V>();
    Div(gate_, gate_, work_, count_);
    PipeBarrier<PIPE_V>();
    Mul(gate_, gate_, up_, count_);
    PipeBarrier<PIPE_V>();
    Narrow(out_[b], gate_, a_.width);
  }
  void Store(uint32_t row, uint32_t b) {
    StoreBf16(a_.out[0], static_cast<uint64_t>(row) * a_.width, out_[b], a_.width);
  }

 private:
  const cm384_rows& a_;
  const int count_;
  uint32_t in_[2], out_[2];
  LocalTensor<float> gate_, up_, work_;
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_rows& a = *reinterpret_cast<const cm384_rows*>(address);
  SwiGluRows op(a);
  RunRows(op, Share(a.rows, static_cast<uint32_t>(GetBlockNum()), static_cast<uint32_t>(GetBlockIdx())),
          a.buffers);
}
