// Instructions of class CUBE with their operands decoded and checked (firmware/abi/isa.h gives their
// meaning).
#pragma once

#include <cstdint>

#include "npu_core/cube/cube_buffers.h"
#include "npu_core/pipes/pipe_instruction.h"

namespace cm384::npu {

// L1 to L0A, L0B or a table.
struct CubeLoad {
  std::uint8_t operation = 0;
  std::uint8_t type = 0;
  std::uint32_t destination = 0, l1 = 0;
  std::uint32_t column_stride = 0;                  // L1, bytes
  std::uint32_t block_rows = 0, block_columns = 0;  // of the destination; tables: 0
  std::uint32_t bytes = 0;                          // of the destination

  bool transposed() const;
  // The range of L1 that holds all it reads.
  std::uint32_t l1_bytes() const;
};

// Single fractals, or transposed squares, from L1 to L0A or L0B.
struct FractalLoad {
  bool to_a = false, transpose = false;
  std::uint8_t type = 0;
  std::uint32_t destination = 0, l1 = 0;
  std::int32_t l1_step = 0;  // bytes from step to step
  std::uint32_t l0_step = 0;
  std::uint32_t second = 0;  // in L0, of a step's second fractal from its first
  std::uint32_t steps = 0;
  std::uint32_t fractals = 1;  // of a step

  std::uint32_t from(std::uint32_t step) const { return l1 + static_cast<std::uint32_t>(l1_step) * step; }
  std::uint32_t to(std::uint32_t step, std::uint32_t fractal) const {
    return destination + l0_step * step + second * fractal;
  }
  std::uint32_t bytes() const { return steps * fractals * kFractalBytes; }
};

// An image in L1 to rows of output places in L0A.
struct ImageLoad {
  struct Padding {
    std::uint32_t left = 0, right = 0, top = 0, bottom = 0;
  };
  struct Size {
    std::uint32_t width = 0, height = 0;
  };
  std::uint8_t type = 0;
  std::uint32_t destination = 0, l1 = 0;
  Size image, stride, filter, dilation;
  Padding padding;
  std::uint32_t first_row = 0, rows = 0;        // of the matrix
  std::uint32_t first_column = 0, columns = 0;  // blocks of 32 B
  std::uint32_t padded = 0;                     // bits of an element

  Size output() const;
  std::uint32_t block_rows() const { return blocks_of(rows, kFractalRows); }
  std::uint32_t bytes() const { return block_rows() * columns * kFractalBytes; }
  // Where the block with this row and column of the matrix stands in L1.
  enum class Place : std::uint8_t { image, padding, behind };
  Place place(std::uint32_t row, std::uint32_t column, std::uint32_t& offset) const;
};

struct BufferFill {
  enum class Buffer : std::uint8_t { l1, l0a, l0b } buffer = Buffer::l1;
  std::uint32_t destination = 0, word = 0;
  std::uint32_t turns = 0, turn_bytes = 0, pitch = 0;  // bytes from turn to turn

  std::uint32_t bytes() const { return turns * turn_bytes; }
};

struct Mmad {
  std::uint8_t type = 0;
  std::uint32_t l0a = 0, l0b = 0, l0c = 0, bias = 0;
  std::uint32_t start = 0;  // 0 from zero, 1 adds, 2 from the bias table
  std::uint32_t m = 0, n = 0, k = 0;
  bool halves = false;  // S4: two elements in a byte

  std::uint32_t m_blocks() const { return blocks_of(m, kFractalRows); }
  std::uint32_t n_blocks() const { return blocks_of(n, kFractalRows); }
  std::uint32_t k_blocks() const;
  std::uint32_t a_bytes() const { return m_blocks() * k_blocks() * kFractalBytes; }
  std::uint32_t b_bytes() const { return n_blocks() * k_blocks() * kFractalBytes; }
  std::uint32_t c_bytes() const { return m_blocks() * n_blocks() * kAccumulatorFractal; }
};

struct FixpipeCopy {
  std::uint32_t l0c = 0;
  std::uint32_t m = 0, n = 0;
  std::uint8_t operation = 0;  // cm384_fixpipe
  bool relu = false, nz = false;
  float scale = 0;
  std::uint32_t scales = 0;        // offset of column 0's in the fixpipe buffer
  std::uint32_t scale_bytes = 4;   // from a column's to the next one's
  std::uint32_t nz_row = 0;        // bytes of a row of a column of blocks, with NZ
  std::uint32_t column_bytes = 0;  // in L0C, from one column of blocks to the next

  bool vector() const;  // a scale for each column
  std::uint32_t element_bytes() const;
  std::uint32_t c_bytes() const {
    return (blocks_of(n, kFractalRows) - 1) * column_bytes + blocks_of(m, kFractalRows) * kAccumulatorFractal;
  }
};

// Bytes of an element of A and B.
std::uint32_t cube_element_bytes(std::uint8_t type);

// Each throws PipeFault, naming the buffer, for what does not fit or the ISA does not define.
CubeLoad decode_cube_load(const PipeInstruction& in);
FractalLoad decode_fractal_load(const PipeInstruction& in);
// The two strides that the instruction was pushed with.
ImageLoad decode_image_load(const PipeInstruction& in, std::uint64_t source, std::uint64_t destination);
BufferFill decode_buffer_fill(const PipeInstruction& in);
Mmad decode_mmad(const PipeInstruction& in);
// `column_bytes`: the instruction's source stride.
FixpipeCopy decode_fixpipe(const PipeInstruction& in, std::uint64_t column_bytes = 0);
// Where CM384_CUBE_FIX_TO_L1 puts its first column of blocks; `pitch`: its destination stride.
std::uint32_t fixpipe_in_l1(const PipeInstruction& in, const FixpipeCopy& copy, std::uint64_t pitch);

}  // namespace cm384::npu
