#include "npu_core/cube/cube_unit.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "firmware/abi/isa.h"
#include "npu_core/vector/numeric.h"

namespace cm384::npu {
namespace {

using Fractal = std::array<std::byte, kFractalBytes>;

void transpose(const Fractal& from, Fractal& to) {
  for (std::uint32_t r = 0; r < kFractalRows; ++r) {
    for (std::uint32_t c = 0; c < kFractalRows; ++c) {
      std::memcpy(&to[(c * kFractalRows + r) * 2], &from[(r * kFractalRows + c) * 2], 2);
    }
  }
}

LocalBuffer& destination_of(const CubeLoad& load, CubeBuffers& buffers) {
  switch (load.operation) {
    case CM384_CUBE_LOAD_A:
      return buffers.l0a;
    case CM384_CUBE_LOAD_BIAS:
      return buffers.bias;
    case CM384_CUBE_LOAD_FIXPIPE:
      return buffers.fixpipe;
    default:
      return buffers.l0b;
  }
}

// Element `i` of a 32 B block as a float.
float element(const std::byte* block, std::uint8_t type, std::uint32_t i) {
  if (type == CM384_CUBE_F32) {
    float value = 0;
    std::memcpy(&value, block + i * 4, 4);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, block + i * 2, 2);
  return type == CM384_CUBE_F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

enum class Order : std::uint8_t { rows, columns };  // of fractals: L0A, L0B

// Fractals to plain rows: put(row, block column, 32 B).
template <class Put>
void unpack(const LocalBuffer& buffer, std::uint32_t offset, Order order, std::uint32_t block_rows,
            std::uint32_t block_columns, Put&& put) {
  Fractal fractal;
  for (std::uint32_t i = 0; i < block_rows; ++i) {
    for (std::uint32_t j = 0; j < block_columns; ++j) {
      const std::uint32_t place = order == Order::rows ? i * block_columns + j : j * block_rows + i;
      buffer.load(offset + place * kFractalBytes, fractal.data(), kFractalBytes);
      for (std::uint32_t r = 0; r < kFractalRows; ++r) {
        put(i * kFractalRows + r, j, &fractal[r * sim::kBlockBytes]);
      }
    }
  }
}

template <class T>
class Accumulator {
 public:
  Accumulator(const Mmad& mmad, CubeBuffers& buffers)
      : m_(mmad), buffers_(buffers), width_(mmad.n_blocks() * kFractalRows), c_(mmad.m * width_) {
    if (mmad.start == 1) {
      visit([](T* row, std::byte* block) { std::memcpy(row, block, kFractalRows * 4); }, true, false);
    } else if (mmad.start == 2) {
      for (std::uint32_t r = 0; r < m_.m; ++r) {
        buffers.bias.load(mmad.bias, reinterpret_cast<std::byte*>(row(r)), mmad.n * 4);
      }
    }
  }
  T* row(std::uint32_t r) { return &c_[std::size_t{r} * width_]; }
  std::uint32_t width() const { return width_; }
  void store() {
    visit([](T* from, std::byte* block) { std::memcpy(block, from, kFractalRows * 4); }, false, true);
  }

 private:
  template <class Visit>
  void visit(Visit&& visit, bool load, bool store) {
    std::byte block[kFractalRows * 4];
    for (std::uint32_t column = 0; column < width_; column += kFractalRows) {
      for (std::uint32_t r = 0; r < m_.m; ++r) {
        const std::uint32_t at = m_.l0c + (column * m_.m_blocks() * kFractalRows + r * kFractalRows) * 4;
        if (load) buffers_.l0c.load(at, block, sizeof block);
        visit(row(r) + column, block);
        if (store) buffers_.l0c.store(at, block, sizeof block);
      }
    }
  }

  const Mmad& m_;
  CubeBuffers& buffers_;
  std::uint32_t width_;
  std::vector<T> c_;
};

std::int16_t half_of(std::byte two, std::uint32_t i) {
  const int half = std::to_integer<int>(two) >> 4 * i & 15;
  return static_cast<std::int16_t>(half < 8 ? half : half - 16);
}

// Elements of 8 or 4 bits widened, so that the compiler multiplies and adds pairs of them at once.
std::vector<std::int16_t> widened(const LocalBuffer& buffer, std::uint32_t offset, Order order,
                                  std::uint32_t block_rows, const Mmad& mmad) {
  const std::uint32_t c0 = sim::kBlockBytes * (mmad.halves ? 2 : 1), columns = mmad.k_blocks() * c0;
  std::vector<std::int16_t> rows(std::size_t{block_rows} * kFractalRows * columns);
  unpack(buffer, offset, order, block_rows, mmad.k_blocks(),
         [&](std::uint32_t row, std::uint32_t block, const std::byte* bytes) {
           std::int16_t* to = &rows[std::size_t{row} * columns + block * c0];
           // Past k there is nothing to multiply, whatever the buffer holds.
           const std::uint32_t count = std::min(c0, mmad.k - block * c0);
           for (std::uint32_t i = 0; i < count; ++i)
             to[i] = mmad.halves ? half_of(bytes[i / 2], i % 2) : static_cast<std::int8_t>(bytes[i]);
         });
  return rows;
}

void multiply_integers(const Mmad& mmad, CubeBuffers& buffers) {
  const std::uint32_t columns = mmad.k_blocks() * sim::kBlockBytes * (mmad.halves ? 2 : 1);
  const auto a = widened(buffers.l0a, mmad.l0a, Order::rows, mmad.m_blocks(), mmad);
  const auto b = widened(buffers.l0b, mmad.l0b, Order::columns, mmad.n_blocks(), mmad);
  Accumulator<std::uint32_t> c(mmad, buffers);
  for (std::uint32_t r = 0; r < mmad.m; ++r) {
    const std::int16_t* x = &a[std::size_t{r} * columns];
    for (std::uint32_t n = 0; n < mmad.n; ++n) {
      const std::int16_t* y = &b[std::size_t{n} * columns];
      std::int32_t sum = 0;  // of 65,535 products of 14 bits at most: no overflow
      for (std::uint32_t i = 0; i < columns; ++i) sum += std::int32_t{x[i]} * y[i];
      c.row(r)[n] += static_cast<std::uint32_t>(sum);
    }
  }
  c.store();
}

void multiply_floats(const Mmad& mmad, CubeBuffers& buffers) {
  const std::uint32_t c0 = sim::kBlockBytes / cube_element_bytes(mmad.type);
  const std::uint32_t columns = mmad.k_blocks() * c0;
  Accumulator<float> c(mmad, buffers);
  const std::uint32_t width = c.width();
  std::vector<float> a(std::size_t{mmad.m_blocks()} * kFractalRows * columns);
  std::vector<float> b(std::size_t{columns} * width);  // k rows of n
  unpack(buffers.l0a, mmad.l0a, Order::rows, mmad.m_blocks(), mmad.k_blocks(),
         [&](std::uint32_t row, std::uint32_t block, const std::byte* bytes) {
           for (std::uint32_t i = 0; i < c0; ++i)
             a[std::size_t{row} * columns + block * c0 + i] = element(bytes, mmad.type, i);
         });
  unpack(buffers.l0b, mmad.l0b, Order::columns, mmad.n_blocks(), mmad.k_blocks(),
         [&](std::uint32_t row, std::uint32_t block, const std::byte* bytes) {
           for (std::uint32_t i = 0; i < c0; ++i)
             b[std::size_t{block * c0 + i} * width + row] = element(bytes, mmad.type, i);
         });
  for (std::uint32_t r = 0; r < mmad.m; ++r) {
    float* __restrict sum = c.row(r);
    for (std::uint32_t k = 0; k < mmad.k; ++k) {
      const float x = a[std::size_t{r} * columns + k];
      const float* __restrict y = &b[std::size_t{k} * width];
      for (std::uint32_t n = 0; n < width; ++n) sum[n] += x * y[n];
    }
  }
  c.store();
}

}  // namespace

void perform(const CubeLoad& load, CubeBuffers& buffers) {
  LocalBuffer& to = destination_of(load, buffers);
  const bool payload = buffers.l1.payload(load.l1, load.l1_bytes());
  to.set_payload(load.destination, load.bytes, payload);
  if (payload) return;
  if (load.block_rows == 0) {
    std::vector<std::byte> bytes(load.bytes);
    buffers.l1.load(load.l1, bytes.data(), load.bytes);
    return to.store(load.destination, bytes.data(), load.bytes);
  }
  Fractal fractal, turned;
  for (std::uint32_t i = 0; i < load.block_rows; ++i) {
    for (std::uint32_t j = 0; j < load.block_columns; ++j) {
      const std::uint32_t column = load.transposed() ? i : j, row = load.transposed() ? j : i;
      buffers.l1.load(load.l1 + column * load.column_stride + row * kFractalBytes, fractal.data(),
                      kFractalBytes);
      if (load.transposed()) transpose(fractal, turned);
      const std::uint32_t place =
          load.operation == CM384_CUBE_LOAD_A ? i * load.block_columns + j : j * load.block_rows + i;
      to.store(load.destination + place * kFractalBytes, load.transposed() ? turned.data() : fractal.data(),
               kFractalBytes);
    }
  }
}

void perform(const FractalLoad& load, CubeBuffers& buffers) {
  LocalBuffer& to = load.to_a ? buffers.l0a : buffers.l0b;
  const std::uint32_t size = cube_element_bytes(load.type), square = load.fractals * kFractalBytes;
  // A square of `side` elements stands as rows of 32 B; elements of 4 B as the left half, then the right one.
  const std::uint32_t side = size == 1 ? 32 : kFractalRows;
  const auto place = [&](std::uint32_t row, std::uint32_t column) {
    return size == 4 ? column / 8 * kFractalBytes + row * sim::kBlockBytes + column % 8 * 4
                     : row * sim::kBlockBytes + column * size;
  };
  std::array<std::byte, 2 * kFractalBytes> from, turned;
  for (std::uint32_t step = 0; step < load.steps; ++step) {
    const bool payload = buffers.l1.payload(load.from(step), square);
    if (!payload) buffers.l1.load(load.from(step), from.data(), square);
    for (std::uint32_t r = 0; load.transpose && !payload && r < side; ++r) {
      for (std::uint32_t c = 0; c < side; ++c) std::memcpy(&turned[place(c, r)], &from[place(r, c)], size);
    }
    for (std::uint32_t n = 0; n < load.fractals; ++n) {
      to.set_payload(load.to(step, n), kFractalBytes, payload);
      if (payload) continue;
      to.store(load.to(step, n), (load.transpose ? turned : from).data() + n * kFractalBytes, kFractalBytes);
    }
  }
}

void perform(const ImageLoad& load, CubeBuffers& buffers) {
  std::array<std::byte, sim::kBlockBytes> padded{};
  const std::uint32_t size = cube_element_bytes(load.type);
  for (std::uint32_t at = 0; at < padded.size(); at += size) std::memcpy(&padded[at], &load.padded, size);
  Fractal fractal;
  for (std::uint32_t i = 0; i < load.block_rows(); ++i) {
    for (std::uint32_t j = 0; j < load.columns; ++j) {
      const std::uint32_t to = load.destination + (i * load.columns + j) * kFractalBytes;
      bool payload = false;
      for (std::uint32_t r = 0; r < kFractalRows; ++r) {
        std::byte* const block = &fractal[r * sim::kBlockBytes];
        std::uint32_t from = 0;
        switch (load.place(i * kFractalRows + r, j, from)) {
          case ImageLoad::Place::image:
            payload = payload || buffers.l1.payload(from, sim::kBlockBytes);
            buffers.l1.load(from, block, sim::kBlockBytes);
            break;
          case ImageLoad::Place::padding:
            std::memcpy(block, padded.data(), sim::kBlockBytes);
            break;
          case ImageLoad::Place::behind:
            std::memset(block, 0, sim::kBlockBytes);
        }
      }
      buffers.l0a.set_payload(to, kFractalBytes, payload);
      if (!payload) buffers.l0a.store(to, fractal.data(), kFractalBytes);
    }
  }
}

void perform(const BufferFill& fill, CubeBuffers& buffers) {
  LocalBuffer& to = fill.buffer == BufferFill::Buffer::l1    ? buffers.l1
                    : fill.buffer == BufferFill::Buffer::l0a ? buffers.l0a
                                                             : buffers.l0b;
  for (std::uint32_t turn = 0; turn < fill.turns; ++turn) {
    to.set_payload(fill.destination + turn * fill.pitch, fill.turn_bytes, false);
    to.fill(fill.destination + turn * fill.pitch, fill.turn_bytes, fill.word);
  }
}

void perform(const Mmad& mmad, CubeBuffers& buffers) {
  const bool payload = buffers.l0a.payload(mmad.l0a, mmad.a_bytes()) ||
                       buffers.l0b.payload(mmad.l0b, mmad.b_bytes()) ||
                       (mmad.start == 1 && buffers.l0c.payload(mmad.l0c, mmad.c_bytes())) ||
                       (mmad.start == 2 && buffers.bias.payload(mmad.bias, mmad.n * 4));
  buffers.l0c.set_payload(mmad.l0c, mmad.c_bytes(), payload);
  if (payload) return;
  mmad.type == CM384_CUBE_S8 ? multiply_integers(mmad, buffers) : multiply_floats(mmad, buffers);
}

}  // namespace cm384::npu
