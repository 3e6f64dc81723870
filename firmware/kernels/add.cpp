// The sum of two matrices, chunk by chunk. Arguments: firmware/abi/rows.h.
#include "row_pipeline.h"

using namespace AscendC;

namespace {

class AddChunks {
 public:
  explicit AddChunks(const cm384_rows& a) : a_(a), all_(static_cast<uint64_t>(a.rows) * a.width) {
    Places places;
    for (uint32_t b = 0; b < a.buffers; ++b) {
      x_[b] = places.Allocate(a.chunk * 2);
      y_[b] = places.Allocate(a.chunk * 2);
      sum_[b] = places.Allocate(a.chunk * 2);
    }
    left_ = LocalTensor<float>(places.Allocate(a.chunk * 4));
    right_ = LocalTensor<float>(places.Allocate(a.chunk * 4));
  }

  void Load(uint32_t item, uint32_t b) {
    LoadBf16(x_[b], a_.in[0], First(item), Count(item));
    LoadBf16(y_[b], a_.in[1], First(item), Count(item));
  }
  void Compute(uint32_t item, uint32_t b) {
    const uint32_t count = Count(item);
    PipeBarrier<PIPE_V>();
    Widen(left_, x_[b], count);
    Widen(right_, y_[b], count);
    PipeBarrier<PIPE_V>();
    Add(left_, left_, right_, static_cast<int>(count));
    PipeBarrier<PIPE_V>();
    Narrow(sum_[b], left_, count);
  }
  void Store(uint32_t item, uint32_t b) { StoreBf16(a_.out[0], First(item), sum_[b], Count(item)); }

 private:
  uint64_t First(uint32_t item) const { return static_cast<uint64_t>(item) * a_.chunk; }
  uint32_t Count(uint32_t item) const {
    const uint64_t left = all_ - First(item);
    return left < a_.chunk ? static_cast<uint32_t>(left) : a_.chunk;
  }

  const cm384_rows& a_;
  const uint64_t all_;
  uint32_t x_[2], y_[2], sum_[2];
  LocalTensor<float> left_, right_;
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_rows& a = *reinterpret_cast<const cm384_rows*>(address);
  const uint64_t chunks = (static_cast<uint64_t>(a.rows) * a.width + a.chunk - 1) / a.chunk;
  AddChunks op(a);
  RunRows(op,
          Share(static_cast<uint32_t>(chunks), static_cast<uint32_t>(GetBlockNum()),
                static_cast<uint32_t>(GetBlockIdx())),
          a.buffers);
}
