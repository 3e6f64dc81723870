// Streaming read of a matrix in GM by all cores of the launch, vector cores to their UBuffer or cube cores to
// L1 (ND2NZ): the data-copy measurements of ascend-facts A6.
// Arguments and results: firmware/abi/stream.h.
#include "firmware/abi/stream.h"

#include "kernel_operator.h"

using namespace AscendC;

namespace {

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

// Bytes [from, to) of the rows from `row` on that an instruction takes. The loop over whole blocks is a few
// instructions long, in registers of its own: at 128 B a copy the issue of copies is what is measured.
template <bool kCube>
[[gnu::noinline]] void ReadGroup(const cm384_stream& a, BufferRing& buffers, uint64_t row, uint64_t last,
                                 uint64_t from, uint64_t to) {
  BufferRing ring = buffers;
  const uint64_t block = a.block_bytes, pitch = a.pitch;
  const uint64_t rows = last - row < a.block_count ? last - row : a.block_count;
  const uint64_t column = (rows + 15) / 16 * 16 * ONE_BLK_SIZE;
  const uint64_t whole = (to - from) / block, rest = to - from - whole * block;
  const auto copy = [&](uint64_t at, uint64_t bytes, uint64_t padded, uint32_t step)
      __attribute__((always_inline)) {
    if constexpr (kCube) {
      CopyNd2Nz(ring.place(step), at, rows, bytes, pitch, column);
    } else {
      CopyBursts<CM384_MTE_GM_TO_UB>(ring.place(step), at, bytes, rows, pitch, padded);
    }
  };
  uint64_t at = a.source + row * pitch + from;
  const uint64_t end = at + whole * block, padded = PaddedBurst(block);
  const auto step = static_cast<uint32_t>(padded * rows);
  for (; at < end; at += block) copy(at, block, padded, step);
  if (rest != 0) copy(at, rest, PaddedBurst(rest), static_cast<uint32_t>(PaddedBurst(rest) * rows));
  buffers = ring;
}

// Rows [first, last) of the matrix, beginning at instruction `skip` and ending before it.
template <bool kCube>
void ReadRows(const cm384_stream& a, uint64_t first, uint64_t last, uint64_t skip) {
  BufferRing ring(a);
  const uint64_t columns = (a.row_bytes + a.block_bytes - 1) / a.block_bytes;
  const uint64_t groups = (last - first + a.block_count - 1) / a.block_count;
  const uint64_t begin = skip / columns % (groups == 0 ? 1 : groups), from = skip % columns * a.block_bytes;
  // One turn more than groups where the first one is begun in its middle.
  for (uint64_t n = 0; n < groups + (from != 0 ? 1 : 0); ++n) {
    const uint64_t group = (begin + n) % groups;
    ReadGroup<kCube>(a, ring, first + group * a.block_count, last, n == 0 ? from : 0,
                     n == groups ? from : a.row_bytes);
  }
  ring.drain();
}

template <bool kCube>
void Run(const cm384_stream& a) {
  const uint64_t block = GetBlockIdx(), blocks = a.shared != 0 ? 1 : GetBlockNum();
  const uint64_t part_rows = a.rows / a.parts;
  const uint64_t groups = (part_rows + a.block_count - 1) / a.block_count;
  const uint64_t share = groups / blocks, more = groups % blocks;
  const uint64_t mine = a.shared != 0 ? 0 : block;
  const uint64_t begin = (mine * share + (mine < more ? mine : more)) * a.block_count;
  const uint64_t first = begin < part_rows ? begin : part_rows;
  const uint64_t end = begin + (share + (mine < more ? 1 : 0)) * a.block_count;
  const uint64_t last = end < part_rows ? end : part_rows;
  const uint64_t skip = a.shared == CM384_STREAM_ROTATED ? block : 0;

  SyncAll();
  const uint64_t start = GetCoreCycle();
  for (uint64_t part = 0; part < a.parts; ++part) {
    for (uint32_t pass = 0; pass < a.passes; ++pass)
      ReadRows<kCube>(a, part * part_rows + first, part * part_rows + last, skip);
  }
  const uint64_t columns = (a.row_bytes + a.block_bytes - 1) / a.block_bytes;
  const uint64_t times = static_cast<uint64_t>(a.parts) * a.passes;
  const uint64_t values[4] = {start, GetCoreCycle(), (last - first) * a.row_bytes * times,
                              (share + (mine < more ? 1 : 0)) * columns * times};
  auto* const result = reinterpret_cast<uint64_t*>(a.results + block * CM384_STREAM_RESULT_STRIDE);
  for (uint32_t i = 0; i < 4; ++i) result[i] = values[i];
  dcci(a.results + block * CM384_STREAM_RESULT_STRIDE, sizeof values);
}

}  // namespace

extern "C" void kernel_main(GM_ADDR address) {
  const cm384_stream a = *reinterpret_cast<const cm384_stream*>(address);
  if (a.buffers == 0 || a.buffers > 8 || a.block_bytes == 0 || a.block_count == 0 || a.parts == 0 ||
      a.block_count * PaddedBurst(a.block_bytes) > a.buffer_bytes || a.buffer_bytes % 32 != 0 ||
      static_cast<uint64_t>(a.buffers) * a.buffer_bytes > CM384_STREAM_BUFFER_BYTES) {
    Abort("stream: the buffers do not fit");
  }
  if (ASCEND_IS_AIC) {
    Run<true>(a);
  } else {
    Run<false>(a);
  }
}
