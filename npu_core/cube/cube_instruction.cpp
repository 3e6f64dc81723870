#include "npu_core/cube/cube_instruction.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "firmware/abi/isa.h"
#include "npu_core/pipes/pipe_fault.h"

namespace cm384::npu {
namespace {

template <class... Arguments>
[[noreturn]] void refuse(std::uint64_t pc, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  fault(pc, fmt::format(text, std::forward<Arguments>(arguments)...));
}

void fits(std::uint64_t pc, const char* who, const char* buffer, std::uint64_t offset, std::uint64_t bytes,
          std::uint32_t size, std::uint32_t alignment) {
  if (offset % alignment != 0)
    refuse(pc, "{}: {} offset {:#x} must be a multiple of {}", who, buffer, offset, alignment);
  if (offset + bytes > size)
    refuse(pc, "{}: {} B at {} offset {:#x} leave {} ({} KiB)", who, bytes, buffer, offset, buffer,
           size >> 10);
}

std::uint32_t low(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
std::uint32_t high(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}
std::uint32_t field(std::uint64_t value, int shift, int bits) {
  return static_cast<std::uint32_t>(value >> shift & ((std::uint64_t{1} << bits) - 1));
}

}  // namespace

std::uint32_t cube_element_bytes(std::uint8_t type) {
  constexpr std::uint32_t kBytes[] = {1, 2, 2, 4};
  return kBytes[type];
}

bool CubeLoad::transposed() const {
  return operation == CM384_CUBE_LOAD_B_TRANSPOSED;
}

std::uint32_t CubeLoad::l1_bytes() const {
  if (block_rows == 0) return bytes;
  const std::uint32_t columns = transposed() ? block_rows : block_columns;
  const std::uint32_t height = transposed() ? block_columns : block_rows;
  return (columns - 1) * column_stride + height * kFractalBytes;
}

std::uint32_t Mmad::k_blocks() const {
  return blocks_of(k, halves ? 2 * sim::kBlockBytes : sim::kBlockBytes / cube_element_bytes(type));
}

CubeLoad decode_cube_load(const PipeInstruction& in) {
  CubeLoad load;
  load.operation = in.operation;
  load.type = in.type;
  load.destination = low(in.a);
  load.l1 = high(in.a);
  if (in.operation == CM384_CUBE_LOAD_BIAS || in.operation == CM384_CUBE_LOAD_FIXPIPE) {
    const bool bias = in.operation == CM384_CUBE_LOAD_BIAS;
    load.bytes = low(in.c);
    if (load.bytes == 0 || load.bytes % sim::kBlockBytes != 0)
      refuse(in.pc, "cube load: {} B to a table; a multiple of 32", load.bytes);
    fits(in.pc, "cube load", bias ? "the bias table" : "the fixpipe buffer", load.destination, load.bytes,
         bias ? kBiasBytes : kFixpipeBytes, sim::kBlockBytes);
    fits(in.pc, "cube load", "L1", load.l1, load.bytes, kL1Bytes, sim::kBlockBytes);
    return load;
  }
  load.column_stride = low(in.b);
  load.block_rows = field(in.c, 0, 16);
  load.block_columns = field(in.c, 16, 16);
  if (load.block_rows == 0 || load.block_columns == 0) refuse(in.pc, "cube load of 0 fractals");
  if (load.transposed() && cube_element_bytes(in.type) != 2)
    refuse(in.pc, "cube load: only elements of 2 B can be transposed on the way to L0B");
  const bool a = in.operation == CM384_CUBE_LOAD_A;
  const std::uint64_t bytes = std::uint64_t{load.block_rows} * load.block_columns * kFractalBytes;
  fits(in.pc, "cube load", a ? "L0A" : "L0B", load.destination, bytes, a ? kL0aBytes : kL0bBytes,
       kFractalBytes);
  load.bytes = static_cast<std::uint32_t>(bytes);
  const std::uint32_t height = load.transposed() ? load.block_columns : load.block_rows;
  const std::uint32_t columns = load.transposed() ? load.block_rows : load.block_columns;
  if (columns > 1 &&
      (load.column_stride % sim::kBlockBytes != 0 || load.column_stride < height * kFractalBytes))
    refuse(in.pc,
           "cube load: {} B from a column of blocks to the next in L1 do not hold {} fractals of 512 B",
           load.column_stride, height);
  fits(in.pc, "cube load", "L1", load.l1,
       std::uint64_t{columns - 1} * load.column_stride + std::uint64_t{height} * kFractalBytes, kL1Bytes,
       sim::kBlockBytes);
  return load;
}

FractalLoad decode_fractal_load(const PipeInstruction& in) {
  FractalLoad load;
  load.to_a = in.operation == CM384_CUBE_LOAD_2D_A;
  load.type = in.type;
  load.destination = low(in.a);
  load.l1 = high(in.a);
  load.l1_step = static_cast<std::int32_t>(low(in.b));
  load.l0_step = high(in.b);
  load.steps = field(in.c, 0, 16);
  load.transpose = field(in.c, 16, 1) != 0;
  load.second = high(in.c);
  load.fractals = load.transpose && cube_element_bytes(in.type) != 2 ? 2 : 1;
  if (load.steps == 0) refuse(in.pc, "cube load of 0 fractals");
  const char* const l0 = load.to_a ? "L0A" : "L0B";
  // Steps go in one direction: what holds of the first and the last one holds of all.
  for (const std::uint32_t step : {0u, load.steps - 1}) {
    const std::int64_t from = std::int64_t{load.l1} + std::int64_t{load.l1_step} * step;
    if (from < 0) refuse(in.pc, "cube load: step {} begins {} B before L1", step, -from);
    fits(in.pc, "cube load", "L1", static_cast<std::uint64_t>(from), load.fractals * kFractalBytes, kL1Bytes,
         sim::kBlockBytes);
    for (std::uint32_t n = 0; n < load.fractals; ++n)
      fits(in.pc, "cube load", l0,
           std::uint64_t{load.destination} + std::uint64_t{load.l0_step} * step +
               std::uint64_t{load.second} * n,
           kFractalBytes, load.to_a ? kL0aBytes : kL0bBytes, kFractalBytes);
  }
  return load;
}

ImageLoad::Size ImageLoad::output() const {
  const auto places = [](std::uint32_t size, std::uint32_t taps, std::uint32_t spread, std::uint32_t step) {
    const std::uint32_t reach = spread * (taps - 1) + 1;
    return size < reach ? 0 : (size - reach) / step + 1;
  };
  return {places(image.width + padding.left + padding.right, filter.width, dilation.width, stride.width),
          places(image.height + padding.top + padding.bottom, filter.height, dilation.height, stride.height)};
}

ImageLoad::Place ImageLoad::place(std::uint32_t row, std::uint32_t column, std::uint32_t& offset) const {
  const Size out = output();
  const std::uint32_t m = first_row + row, k = first_column + column;
  if (m / out.width >= out.height) return Place::behind;
  const std::uint32_t tap = k % (filter.width * filter.height);
  const std::int64_t x = std::int64_t{m % out.width} * stride.width + tap % filter.width * dilation.width -
                         std::int64_t{padding.left};
  const std::int64_t y = std::int64_t{m / out.width} * stride.height + tap / filter.width * dilation.height -
                         std::int64_t{padding.top};
  if (x < 0 || y < 0 || x >= image.width || y >= image.height) return Place::padding;
  const std::uint64_t channels = k / (filter.width * filter.height);
  offset = static_cast<std::uint32_t>(
      l1 + ((channels * image.height + static_cast<std::uint64_t>(y)) * image.width +
            static_cast<std::uint64_t>(x)) *
               sim::kBlockBytes);
  return Place::image;
}

ImageLoad decode_image_load(const PipeInstruction& in, std::uint64_t source, std::uint64_t destination) {
  ImageLoad load;
  load.type = in.type;
  load.destination = low(in.a);
  load.l1 = high(in.a);
  load.image = {field(source, 16, 16), field(source, 0, 16)};
  load.padding = {field(source, 32, 8), field(source, 40, 8), field(source, 48, 8), field(source, 56, 8)};
  load.stride = {field(destination, 0, 8), field(destination, 8, 8)};
  load.filter = {field(destination, 16, 9), field(destination, 25, 9)};
  load.dilation = {field(destination, 34, 8), field(destination, 42, 8)};
  load.first_row = field(in.b, 0, 16);
  load.rows = field(in.b, 16, 16);
  load.first_column = field(in.b, 32, 16);
  load.columns = field(in.b, 48, 16);
  load.padded = low(in.c);
  if (load.rows == 0 || load.columns == 0) refuse(in.pc, "cube load of an image: no rows or no columns");
  for (const ImageLoad::Size& size : {load.image, load.stride, load.filter, load.dilation}) {
    if (size.width == 0 || size.height == 0)
      refuse(in.pc, "cube load of an image: sizes, strides and dilations are 1 at least");
  }
  const ImageLoad::Size out = load.output();
  if (out.width == 0 || out.height == 0)
    refuse(in.pc, "cube load of an image: its filter is larger than the padded image");
  const std::uint64_t bytes = std::uint64_t{load.block_rows()} * load.columns * kFractalBytes;
  fits(in.pc, "cube load", "L0A", load.destination, bytes, kL0aBytes, kFractalBytes);
  const std::uint64_t channels =
      (load.first_column + load.columns - 1) / (load.filter.width * load.filter.height) + 1;
  fits(in.pc, "cube load", "L1", load.l1, channels * load.image.height * load.image.width * sim::kBlockBytes,
       kL1Bytes, sim::kBlockBytes);
  return load;
}

BufferFill decode_buffer_fill(const PipeInstruction& in) {
  BufferFill fill;
  if (high(in.a) > 2) refuse(in.pc, "fill: buffers are 0 to 2");
  fill.buffer = static_cast<BufferFill::Buffer>(high(in.a));
  fill.destination = low(in.a);
  fill.word = low(in.b);
  const bool l1 = fill.buffer == BufferFill::Buffer::l1;
  const std::uint32_t unit = l1 ? sim::kBlockBytes : kFractalBytes;
  fill.turns = field(in.c, 0, 16);
  fill.turn_bytes = field(in.c, 16, 16) * unit;
  fill.pitch = fill.turn_bytes + field(in.c, 32, 16) * unit;
  if (fill.bytes() == 0) refuse(in.pc, "fill of nothing");
  const char* const names[] = {"L1", "L0A", "L0B"};
  fits(in.pc, "fill", names[high(in.a)], fill.destination,
       std::uint64_t{fill.turns - 1} * fill.pitch + fill.turn_bytes,
       l1                                       ? kL1Bytes
       : fill.buffer == BufferFill::Buffer::l0a ? kL0aBytes
                                                : kL0bBytes,
       unit);
  return fill;
}

std::uint32_t fixpipe_in_l1(const PipeInstruction& in, const FixpipeCopy& copy, std::uint64_t pitch) {
  if (!copy.nz) refuse(in.pc, "fixpipe to L1: NZ alone");
  if (pitch % sim::kBlockBytes != 0)
    refuse(in.pc, "fixpipe to L1: strides are multiples of {}", sim::kBlockBytes);
  const std::uint64_t columns = blocks_of(copy.n * copy.element_bytes(), copy.nz_row);
  fits(in.pc, "fixpipe", "L1", in.a,
       (columns - 1) * std::min<std::uint64_t>(pitch, kL1Bytes) + std::uint64_t{copy.m} * copy.nz_row,
       kL1Bytes, sim::kBlockBytes);
  return low(in.a);
}

Mmad decode_mmad(const PipeInstruction& in) {
  Mmad mmad;
  mmad.type = in.type;
  mmad.l0a = low(in.a);
  mmad.l0b = high(in.a);
  mmad.l0c = low(in.b);
  mmad.start = field(in.b, 32, 8);
  mmad.bias = field(in.b, 40, 24);
  mmad.m = field(in.c, 0, 16);
  mmad.n = field(in.c, 16, 16);
  mmad.k = field(in.c, 32, 16);
  mmad.halves = field(in.c, 48, 1) != 0;
  if (mmad.halves && in.type != CM384_CUBE_S8) refuse(in.pc, "mmad: two elements in a byte are of S8");
  if (mmad.m == 0 || mmad.n == 0 || mmad.k == 0)
    refuse(in.pc, "mmad of m {} n {} k {}", mmad.m, mmad.n, mmad.k);
  if (mmad.start > 2) refuse(in.pc, "mmad: accumulate is 0, 1 or 2");
  const auto fractals = [](std::uint32_t rows, std::uint32_t columns, std::uint32_t bytes) {
    return std::uint64_t{rows} * columns * bytes;
  };
  fits(in.pc, "mmad", "L0A", mmad.l0a, fractals(mmad.m_blocks(), mmad.k_blocks(), kFractalBytes), kL0aBytes,
       kFractalBytes);
  fits(in.pc, "mmad", "L0B", mmad.l0b, fractals(mmad.n_blocks(), mmad.k_blocks(), kFractalBytes), kL0bBytes,
       kFractalBytes);
  fits(in.pc, "mmad", "L0C", mmad.l0c, fractals(mmad.m_blocks(), mmad.n_blocks(), kAccumulatorFractal),
       kL0cBytes, kAccumulatorFractal);
  if (mmad.start == 2)
    fits(in.pc, "mmad", "the bias table", mmad.bias, mmad.n * 4, kBiasBytes, sim::kBlockBytes);
  return mmad;
}

bool FixpipeCopy::vector() const {
  return operation == CM384_FIX_S32_TO_F16_VECTOR || operation == CM384_FIX_F32_TO_S8_VECTOR ||
         operation == CM384_FIX_S32_TO_S8_VECTOR;
}

std::uint32_t FixpipeCopy::element_bytes() const {
  return operation == CM384_FIX_KEEP ? 4 : operation >= CM384_FIX_F32_TO_S8 ? 1 : 2;
}

FixpipeCopy decode_fixpipe(const PipeInstruction& in, std::uint64_t column_bytes) {
  FixpipeCopy copy;
  copy.l0c = low(in.b);
  copy.scale = std::bit_cast<float>(high(in.b));
  copy.m = field(in.c, 0, 16);
  copy.n = field(in.c, 16, 16);
  copy.operation = static_cast<std::uint8_t>(field(in.c, 32, 8));
  copy.relu = field(in.c, 40, 1) != 0;
  copy.nz = field(in.c, 41, 1) != 0;
  copy.nz_row = sim::kBlockBytes << field(in.c, 42, 1);
  copy.scale_bytes = 4u << field(in.c, 43, 1);
  copy.scales = field(in.c, 48, 16);
  if (copy.m == 0 || copy.n == 0) refuse(in.pc, "fixpipe of m {} n {}", copy.m, copy.n);
  if (copy.operation > CM384_FIX_S32_TO_S8_VECTOR)
    refuse(in.pc, "fixpipe has no operation {}", copy.operation);
  const std::uint32_t height = blocks_of(copy.m, kFractalRows) * kAccumulatorFractal;
  copy.column_bytes = column_bytes == 0 ? height : low(std::min<std::uint64_t>(column_bytes, kL0cBytes));
  if (copy.column_bytes % kAccumulatorFractal != 0)
    refuse(in.pc, "fixpipe: the stride in L0C must be a multiple of {}", kAccumulatorFractal);
  const std::uint64_t bytes =
      (blocks_of(copy.n, kFractalRows) - 1) * std::uint64_t{copy.column_bytes} + height;
  fits(in.pc, "fixpipe", "L0C", copy.l0c, bytes, kL0cBytes, kAccumulatorFractal);
  if (copy.vector())
    fits(in.pc, "fixpipe", "the fixpipe buffer", copy.scales, copy.n * copy.scale_bytes, kFixpipeBytes,
         sim::kBlockBytes);
  return copy;
}

}  // namespace cm384::npu
