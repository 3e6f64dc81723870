// Sums of parts that others have brought into this die's memory. Arguments: firmware/abi/sum_parts.h.
#include "firmware/abi/sum_parts.h"

#include "collective_parts.h"

using namespace AscendC;

namespace {

// UBuffer: two buffers of BF16 in, two out, two of float.
constexpr uint32_t kChunk = 16 * 1024;  // bytes of BF16
constexpr uint32_t kSum = 4 * kChunk, kOne = kSum + 2 * kChunk;

// One of the sums: item n is chunk n / terms of term n % terms.
struct PartSum {
  uint64_t out;
  const uint64_t* terms;
  uint32_t count;
  Bytes share;

  void Run() {
    const uint64_t bytes = share.last - share.first;
    RunRows(*this, {0, static_cast<uint32_t>((bytes + kChunk - 1) / kChunk) * count}, 2);
  }
  void Load(uint32_t item, uint32_t b) {
    const uint32_t chunk = item / count;
    LoadBf16(In(b), terms[item - chunk * count] + First(chunk), 0, Elements(chunk));
  }
  void Compute(uint32_t item, uint32_t b) {
    const uint32_t chunk = item / count, term = item - chunk * count, elements = Elements(chunk);
    const LocalTensor<float> all(kSum), one(kOne);
    PipeBarrier<PIPE_V>();
    if (term == 0) {
      Widen(all, In(b), elements);
    } else {
      Widen(one, In(b), elements);
      PipeBarrier<PIPE_V>();
      Add(all, all, one, static_cast<int>(elements));
    }
    if (term + 1 < count) return;
    PipeBarrier<PIPE_V>();
    Narrow(Out(b), all, elements);
  }
  void Store(uint32_t item, uint32_t b) {
    const uint32_t chunk = item / count;
    if (item + 1 == (chunk + 1) * count) StoreBf16(out + First(chunk), 0, Out(b), Elements(chunk));
  }

  static uint32_t In(uint32_t b) { return b * kChunk; }
  static uint32_t Out(uint32_t b) { return (2 + b) * kChunk; }
  uint64_t First(uint32_t chunk) const { return share.first + static_cast<uint64_t>(chunk) * kChunk; }
  uint32_t Elements(uint32_t chunk) const {
    const uint64_t left = share.last - First(chunk);
    return static_cast<uint32_t>(left < kChunk ? left : kChunk) / 2;
  }
};

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const auto a = *reinterpret_cast<const cm384_sum_parts*>(address);
  const uint64_t stride = sizeof(cm384_part_sum) + a.terms * sizeof(uint64_t);
  const auto block = static_cast<uint32_t>(GetBlockIdx()), blocks = static_cast<uint32_t>(GetBlockNum());
  for (uint32_t n = 0; n < a.count; ++n) {
    const auto& sum = *reinterpret_cast<const cm384_part_sum*>(a.sums + n * stride);
    PartSum one{sum.out, reinterpret_cast<const uint64_t*>(&sum + 1), a.terms,
                Slice({0, sum.bytes}, blocks, block)};
    one.Run();
    PipeBarrier<PIPE_ALL>();
  }
}
