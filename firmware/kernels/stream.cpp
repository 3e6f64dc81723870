// Streaming read of a matrix in GM by all cores of the launch: the data-copy measurements of ascend-facts A6.
// Arguments and results: firmware/abi/stream.h.
#include "firmware/abi/stream.h"

#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr uint32_t kResult = CM384_STREAM_BUFFER_BYTES;

// Fills the buffers in turn; waits before one is used again where the launch asks for it.
class BufferRing {
 public:
  CM384_INLINE explicit BufferRing(const cm384_stream& a)
      : bytes_(a.buffer_bytes), buffers_(a.buffers), wait_(a.wait_for_reuse != 0) {}

  // Where `padded` bytes may go next.
  CM384_INLINE uint32_t place(uint32_t padded) {
    if (next_ + padded > limit_) next_buffer();
    const uint32_t at = next_;
    next_ += padded;
    return at;
  }
  CM384_INLINE void drain() {
    if (!wait_) return PipeBarrier<PIPE_ALL>();
    if (used_ != 0) SetFlag<HardEvent::MTE2_S>(current_);
    for (uint32_t i = 0; i < used_; ++i) WaitFlag<HardEvent::MTE2_S>(i);
  }

 private:
  void next_buffer() {
    if (used_ != 0) {
      if (wait_) SetFlag<HardEvent::MTE2_S>(current_);
      current_ = current_ + 1 == buffers_ ? 0 : current_ + 1;
    }
    if (used_ == buffers_) {
      if (wait_) WaitFlag<HardEvent::MTE2_S>(current_);
    } else {
      ++used_;
    }
    next_ = current_ * bytes_;
    limit_ = next_ + bytes_;
  }

  uint32_t bytes_, buffers_;
  bool wait_;
  uint32_t current_ = 0, used_ = 0;
  uint32_t next_ = 0, limit_ = 0;  // free part of the current buffer
};

struct Count {
  uint64_t bytes = 0, instructions = 0;
};

// Rows [first, last) of the matrix. The loop over the whole blocks of a row is a few instructions long: at
// 128 B a copy the issue of copies is what is measured.
Count ReadRows(const cm384_stream& a, uint64_t first, uint64_t last) {
  BufferRing ring(a);
  Count count;
  const uint64_t block = a.block_bytes, pitch = a.pitch;
  const uint64_t whole = a.row_bytes / block * block, rest = a.row_bytes - whole;
  for (uint64_t row = first; row < last; row += a.block_count) {
    const uint64_t rows = last - row < a.block_count ? last - row : a.block_count;
    uint64_t from = a.source + row * pitch;
    const uint64_t end = from + whole, padded = PaddedBurst(block);
    const auto step = static_cast<uint32_t>(padded * rows);
    for (; from < end; from += block) {
      CopyBursts<CM384_MTE_GM_TO_UB>(ring.place(step), from, block, rows, pitch, padded);
    }
    if (rest != 0) {
      CopyBursts<CM384_MTE_GM_TO_UB>(ring.place(static_cast<uint32_t>(PaddedBurst(rest) * rows)), from, rest,
                                     rows, pitch, PaddedBurst(rest));
    }
    count.bytes += a.row_bytes * rows;
    count.instructions += whole / block + (rest != 0 ? 1 : 0);
  }
  ring.drain();
  return count;
}

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_stream a = *reinterpret_cast<const cm384_stream*>(address);
  if (a.buffers == 0 || a.buffers > 8 || a.block_bytes == 0 || a.block_count == 0 ||
      a.block_count * PaddedBurst(a.block_bytes) > a.buffer_bytes || a.buffer_bytes % 32 != 0 ||
      static_cast<uint64_t>(a.buffers) * a.buffer_bytes > CM384_STREAM_BUFFER_BYTES) {
    Abort("stream: the buffers do not fit the UBuffer");
  }
  const uint64_t block = GetBlockIdx(), blocks = GetBlockNum();
  const uint64_t groups = (a.rows + a.block_count - 1) / a.block_count;
  const uint64_t share = groups / blocks, more = groups % blocks;
  const uint64_t group = block * share + (block < more ? block : more);
  const uint64_t first = group * a.block_count;
  const uint64_t end = (group + share + (block < more ? 1 : 0)) * a.block_count;
  const uint64_t last = end < a.rows ? end : a.rows;

  SyncAll();
  const uint64_t start = GetCoreCycle();
  Count count;
  for (uint32_t pass = 0; pass < a.passes; ++pass) {
    const Count now = ReadRows(a, first, last);
    count.bytes += now.bytes;
    count.instructions += now.instructions;
  }
  const uint64_t values[4] = {start, GetCoreCycle(), count.bytes, count.instructions};
  const LocalTensor<uint64_t> record(kResult, 4);
  for (uint32_t i = 0; i < 4; ++i) record.SetValue(i, values[i]);
  SetFlag<HardEvent::S_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
  DataCopy(GlobalAt<uint64_t>(a.results + block * CM384_STREAM_RESULT_STRIDE), record, 4);
}
