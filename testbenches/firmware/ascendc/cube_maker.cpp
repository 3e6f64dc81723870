#include "testbenches/firmware/ascendc/cube_maker.h"

#include <cmath>
#include <cstring>

namespace ascendc {
namespace {

// Rows of the pool: some of each type's numbers, its identity; sums of 4 B and of 2 B to add to; scales;
// bytes.
constexpr std::uint32_t kRows = 3, kIdentity = 12, kInteger = 16, kFloat = 17, kHalf = 18, kScales = 19,
                        kAny = 20, kPool = 24;

std::uint32_t bits_of(float f) {
  std::uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return bits;
}
}  // namespace

float value(const std::uint8_t* at, std::uint32_t type) {
  if (type == kS8) return static_cast<float>(static_cast<std::int8_t>(*at));
  if (type == kF32) {
    float f;
    std::memcpy(&f, at, 4);
    return f;
  }
  if (type == kF16) {
    _Float16 h;
    std::memcpy(&h, at, 2);
    return static_cast<float>(h);
  }
  std::uint32_t bits = static_cast<std::uint32_t>(at[0] << 16 | at[1] << 24);
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
void put(std::uint8_t* at, std::uint32_t type, float f) {
  if (type == kS8) *at = static_cast<std::uint8_t>(static_cast<std::int8_t>(f));
  if (type == kF32) std::memcpy(at, &f, 4);
  if (type == kF16) {
    const auto h = static_cast<_Float16>(f);
    std::memcpy(at, &h, 2);
  }
  if (type == kBF16) {
    const std::uint32_t bits = bits_of(f);
    const auto rounded = static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    std::memcpy(at, &rounded, 2);
  }
}

std::vector<std::uint8_t> make_pool(std::mt19937& draw) {
  std::vector<std::uint8_t> pool(kPool * CUBE_AREA);
  const auto small = [&] { return static_cast<float>(static_cast<int>(draw() % 17) - 8); };
  for (std::uint32_t type = 0; type < kCubeTypes; ++type) {
    const std::uint32_t size = kSizes[type], c0 = 32 / size;
    for (std::uint32_t row = 0; row < kRows; ++row) {
      for (std::uint32_t i = 0; i < CUBE_AREA / size; ++i) {
        float x = small();
        if (x == 0) x = 1;  // no zeros, whose signs a product with an identity loses
        put(&pool[(type * kRows + row) * CUBE_AREA + i * size], type, x);
      }
    }
    // Rows of 32 B: element (r, r) of the first c0.
    for (std::uint32_t r = 0; r < c0; ++r)
      put(&pool[(kIdentity + type) * CUBE_AREA + r * 32 + r * size], type, 1);
  }
  for (std::uint32_t i = 0; i < CUBE_AREA / 4; ++i) {
    const std::int32_t n = static_cast<std::int32_t>(draw() % 201) - 100;
    std::memcpy(&pool[kInteger * CUBE_AREA + i * 4], &n, 4);
    put(&pool[kFloat * CUBE_AREA + i * 4], kF32, static_cast<float>(n));
  }
  for (std::uint32_t i = 0; i < CUBE_AREA / 2; ++i) put(&pool[kHalf * CUBE_AREA + i * 2], kF16, small());
  for (std::uint32_t i = 0; i < CUBE_AREA / 8; ++i) {
    const std::uint32_t junk = draw();  // the upper half of a scale says nothing
    put(&pool[kScales * CUBE_AREA + i * 8], kF32, std::ldexp(1.0f, -static_cast<int>(draw() % 8)));
    std::memcpy(&pool[kScales * CUBE_AREA + i * 8 + 4], &junk, 4);
  }
  for (std::size_t i = kAny * CUBE_AREA; i < pool.size(); ++i) pool[i] = static_cast<std::uint8_t>(draw());
  return pool;
}

CubeCase CubeMaker::make(std::uint32_t form, std::uint32_t n) {
  CubeCase c{};
  c.form = form;
  c.type = n % kCubeTypes;
  for (auto& row : c.row) row = kAny + draw() % (kPool - kAny);
  c.row[1] = c.type * kRows + draw() % kRows;
  std::uint32_t* p = c.p;
  const std::uint32_t size = kSizes[c.type];
  switch (form) {
    case kNd2Nz: {
      const std::uint32_t matrices = one(1, 2), rows = one(1, 20), columns = one(1, 40), apart = one(1, 2);
      const std::uint32_t blocks = (columns * size + 31) / 32, column = rows * apart + one(0, 4);
      const std::uint32_t c_values[] = {matrices,
                                        rows,
                                        columns,
                                        one(0, 300),
                                        columns + one(0, 20),
                                        column,
                                        apart,
                                        blocks * column * 32 / size + 32 / size * one(0, 2)};
      std::memcpy(p, c_values, sizeof c_values);
      break;
    }
    case kCopyIn:
    case kCopyOut:
      c.variant = draw() % 2;
      p[0] = c.variant == 0 ? one(1, 256) * 32 / size : one(1, 6);
      p[1] = one(1, 20), p[2] = one(0, 20), p[3] = one(0, 20);
      break;
    case kLoadGm:
      p[5] = draw() % 2;
      p[0] = p[5] == 0 ? one(0, 4) : one(21, 31), p[1] = one(0, 8), p[2] = one(0, 3), p[3] = one(0, 2);
      break;
    case kLoadA:
    case kLoadB:
      c.row[2] = kIdentity + c.type;
      p[0] = one(12, 15), p[1] = one(0, 4), p[2] = one(0, 4), p[3] = one(0, 1);
      p[4] = size == 2 ? draw() % 2 : 0, p[5] = draw() % 2;
      c.row[0] = c.type * kRows + draw() % kRows;
      break;
    case kTurnA:
    case kTurnB:
      c.row[2] = kIdentity + c.type;
      c.row[0] = c.type * kRows + draw() % kRows;
      p[0] = one(0, 4), p[1] = one(0, 2), p[2] = one(0, 5), p[3] = one(1, 3), p[4] = one(0, 2);
      break;
    default:
      c.row[2] = c.type * kRows + draw() % kRows;
      p[0] = one(1, 48), p[1] = one(1, 48), p[2] = one(1, 4 * 32 / size);
      if (form == kMmad) {
        c.variant = draw() % kStarts;
        c.row[3] = c.type == kS8 ? kInteger : kFloat;
      } else {
        fixpipe(c);
      }
  }
  return c;
}

void CubeMaker::fixpipe(CubeCase& c) {
  std::uint32_t* p = c.p;
  const bool integer = c.type == kS8;
  const std::uint32_t height = (p[0] + 15) / 16 * 16;
  p[3] = one(1, p[0]), p[4] = one(1, p[1]), p[5] = height;
  p[10] = draw() % 3 == 0;
  p[7] = 1;
  p[11] = draw() % 2;
  const std::uint32_t with[2][3] = {{0, 1, 16}, {0, 11, 9}}, vector[2][2] = {{23, 23}, {10, 8}};
  p[13] = c.form == kFixpipeQuant ? vector[integer][draw() % 2] : with[integer][draw() % 3];
  if (c.form != kFixpipeQuant && !integer && draw() % 4 == 0) p[13] = 24;
  if (c.form == kFixpipeAtomic) p[13] = draw() % 2 == 0 ? 0 : integer ? 11 : 1;
  p[14] = bits_of(std::ldexp(1.0f, -static_cast<int>(draw() % 8)));
  c.row[3] = kScales;
  if (c.form == kFixpipeAtomic) c.row[0] = p[13] != 0 ? kHalf : integer ? kInteger : kFloat;
  if (p[10] != 0) {
    p[12] = p[13] == 0 && !integer ? draw() % 2 : 0;
    p[6] = p[3] * (p[13] == 0 && p[12] == 0 ? 2 : 1) + one(0, 4);
  } else {
    p[6] = p[4] + one(0, 20);
    if (c.form == kFixpipeAtomic) p[6] = (p[6] + 1) / 2 * 2;
    if (p[1] > 16 && draw() % 3 == 0) {  // two matrices, of 16 columns and fewer
      p[4] = one(1, p[1] - 16), p[7] = 2, p[8] = height / 16, p[9] = one(p[4], 60);
      if (p[4] > 16) p[4] = 16;
      p[6] = p[4] + one(60, 64);
    }
  }
}

}  // namespace ascendc
