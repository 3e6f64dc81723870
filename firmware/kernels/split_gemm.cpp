// Matrix multiplication with k cut into parts: each is a group of a grouped multiplication, whose A and B are
// parts of rows, and leaves FP32 sums; the vector cores add them up. Arguments: firmware/abi/gemm.h.
#include "cube_gemm.h"
#include "kernel_operator.h"
#include "row_pipeline.h"
#include "steps.h"

using namespace AscendC;

namespace {

constexpr uint32_t kChunk = 2048;  // elements of C in the UBuffer at a time

// Item n is part n % parts of chunk n / parts.
class AddParts {
 public:
  explicit AddParts(const cm384_split_gemm& a) : a_(a), parts_(a.gemm.groups) {
    Places places;
    for (uint32_t b = 0; b < 2; ++b) {
      in_[b] = LocalTensor<float>(places.Allocate(kChunk * 4));
      out_[b] = places.Allocate(kChunk * 2);
    }
    sum_ = LocalTensor<float>(places.Allocate(kChunk * 4));
  }

  void Load(uint32_t item, uint32_t b) {
    const uint32_t chunk = item / parts_, part = item - chunk * parts_;
    DataCopy(in_[b], GlobalAt<float>(a_.gemm.c + part * a_.gemm.c_group + First(chunk) * 4), Count(chunk));
  }
  void Compute(uint32_t item, uint32_t b) {
    const uint32_t chunk = item / parts_, part = item - chunk * parts_;
    const int count = static_cast<int>(Count(chunk));
    PipeBarrier<PIPE_V>();
    if (part == 0) {
      Adds(sum_, in_[b], 0.0f, count);
    } else {
      Add(sum_, sum_, in_[b], count);
    }
    if (part + 1 < parts_) return;
    PipeBarrier<PIPE_V>();
    Narrow(out_[b], sum_, Count(chunk));
  }
  void Store(uint32_t item, uint32_t b) {
    const uint32_t chunk = item / parts_;
    if (item + 1 == (chunk + 1) * parts_) StoreBf16(a_.c, First(chunk), out_[b], Count(chunk));
  }

 private:
  uint64_t First(uint32_t chunk) const { return static_cast<uint64_t>(chunk) * kChunk; }
  uint32_t Count(uint32_t chunk) const {
    const uint64_t left = a_.elements - First(chunk);
    return left < kChunk ? static_cast<uint32_t>(left) : kChunk;
  }

  const cm384_split_gemm& a_;
  const uint32_t parts_;
  LocalTensor<float> in_[2], sum_;
  uint32_t out_[2];
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_split_gemm& a = *reinterpret_cast<const cm384_split_gemm*>(address);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  if (ASCEND_IS_AIC) {
    RunCubeGemm<bfloat16_t>(a.gemm, block, blocks);
    return CubesDone();
  }
  WaitForCubes();
  const Range chunks = Share(static_cast<uint32_t>((a.elements + kChunk - 1) / kChunk), 2 * blocks, block);
  AddParts op(a);
  RunRows(op, {chunks.first * a.gemm.groups, chunks.last * a.gemm.groups}, 2);
}
