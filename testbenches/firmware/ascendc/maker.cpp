#include "testbenches/firmware/ascendc/maker.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "testbenches/firmware/ascendc/numbers.h"

namespace ascendc {
namespace {

// Rows of the pool, by what is in them.
enum Pool {
  kAnyF32 = 0,
  kSpecialF32 = 8,
  kAnyF16 = 12,
  kBitsF16 = 20,
  kBitsAny = 24,
  kSmallS32 = 32,
  kAnyBF16 = 36,
  kPositiveF32 = 40,
  kPositiveF16 = 44,
  kEqualF32 = 48,
  kEqualF16 = 50,
  kSmallS16 = 52
};

std::uint32_t row_of(std::uint32_t type, std::mt19937& draw) {
  const auto one = [&](std::uint32_t first, std::uint32_t count) { return first + draw() % count; };
  switch (type) {
    case kF32:
      return draw() % 3 == 0 ? one(kSpecialF32, 4) : one(kAnyF32, 8);
    case kF16:
      return draw() % 3 == 0 ? one(kBitsF16, 4) : one(kAnyF16, 8);
    case kBF16:
      return one(kAnyBF16, 4);
    case kS32:
      return draw() % 2 == 0 ? one(kSmallS32, 4) : one(kBitsAny, 8);
    default:
      return one(kBitsAny, 8);
  }
}

}  // namespace

std::vector<std::uint8_t> make_pool(std::mt19937& draw) {
  std::vector<std::uint8_t> pool(POOL_ROWS * AREA);
  const auto uniform = [&](float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(draw);
  };
  const float special[] = {0.0f,
                           -0.0f,
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(),
                           std::nanf(""),
                           1e-42f,
                           -3e-39f,
                           3e38f,
                           0.5f,
                           -2.5f,
                           1.5f,
                           65504.0f,
                           70000.0f,
                           2147483648.0f,
                           9e18f};
  for (std::uint32_t row = 0; row < POOL_ROWS; ++row) {
    std::uint8_t* at = &pool[row * AREA];
    for (std::uint32_t i = 0; i < AREA / 4; ++i) {
      float x = uniform(-100, 100);
      if (i % 3 == 0) x = std::round(x * 2) / 2;
      if (row >= kSpecialF32 && row < kAnyF16 && i % 4 == 0) x = special[draw() % std::size(special)];
      if (row >= kPositiveF32) x = std::abs(x) + 0.01f;
      if (row >= kEqualF32 && row < kSmallS16) x = static_cast<float>(static_cast<int>(draw() % 11) - 5);
      const bool f32 = row < kAnyF16 || (row >= kPositiveF32 && row < kPositiveF16) ||
                       (row >= kEqualF32 && row < kEqualF16);
      const bool f16 = (row >= kAnyF16 && row < kBitsF16) || (row >= kPositiveF16 && row < kEqualF32) ||
                       (row >= kEqualF16 && row < kSmallS16);
      if (f32) {
        std::memcpy(at + 4 * i, &x, 4);
      } else if (f16) {
        const _Float16 h[2] = {static_cast<_Float16>(x), static_cast<_Float16>(x / 2 - 1)};
        std::memcpy(at + 4 * i, h, 4);
        if (row >= kPositiveF16 && row < kEqualF32) at[4 * i + 3] &= 0x7f;
      } else if (row >= kSmallS32 && row < kAnyBF16) {
        const std::int32_t n = static_cast<std::int32_t>(draw() % 2001) - 1000;
        std::memcpy(at + 4 * i, &n, 4);
      } else if (row >= kAnyBF16 && row < kPositiveF32) {
        const float y = uniform(-1e4f, 1e4f);
        std::memcpy(at + 4 * i, reinterpret_cast<const char*>(&x) + 2, 2);
        std::memcpy(at + 4 * i + 2, reinterpret_cast<const char*>(&y) + 2, 2);
      } else if (row >= kSmallS16) {
        const std::int16_t n[2] = {static_cast<std::int16_t>(draw() % 201 - 100),
                                   static_cast<std::int16_t>(draw() % 201 - 100)};
        std::memcpy(at + 4 * i, n, 4);
      } else {
        const std::uint32_t n = draw();
        std::memcpy(at + 4 * i, &n, 4);
      }
    }
  }
  return pool;
}

const std::vector<std::pair<int, int>> kCasts = {
    {kBF16, kF32}, {kF32, kBF16}, {kF16, kF32}, {kF32, kF16}, {kF32, kS32}, {kS32, kF32},
    {kS32, kF16},  {kF16, kS8},   {kS8, kF16},  {kF32, kF32}, {kF16, kS32}, {kS32, kS16},
    {kS16, kS32},  {kF16, kU8},   {kU8, kF16},  {kF32, kS16}, {kF16, kS16}, {kS16, kF16},
    {kBF16, kS32}, {kF32, kS64},  {kS64, kF32}, {kS32, kS64}, {kS64, kS32}, {kS16, kF32}};

std::vector<std::uint32_t> types_of(std::uint32_t form) {
  switch (form) {
    case kDiv:
    case kExp:
    case kLn:
    case kSqrt:
    case kRsqrt:
    case kReciprocal:
    case kSort32:
    case kSort:
    case kMrgSort:
    case kExtract:
      return {kF32, kF16};
    case kAnd:
    case kOr:
    case kNot:
    case kCopy:
    case kDuplicate:
    case kSelect:
    case kSelectScalar:
    case kGatherMask:
    case kGatherMaskTensor:
    case kGather:
    case kBrcb:
    case kDataCopyLocal:
      return {kF32, kF16, kS32, kS16, kU32, kU16, kBF16};
    case kDataCopyPad:
    case kDataCopyPadOut:
      return {kF32, kF16, kS32, kS16, kU32, kU16, kBF16, kS8, kU8};
    case kDataCopy:
    case kDataCopyOut:
      return {kF32, kF16, kS32, kS16, kU32, kU16, kBF16, kS8, kU8, kS64};
    case kShiftLeft:
    case kShiftRight:
      return {kS32, kS16, kU32, kU16};
    case kTranspose:
      return {kF16, kS16};
    case kAtomicCopy:
      return {kF32, kF16, kS32, kS16, kBF16, kS8};
    default:
      return {kF32, kF16, kS32, kS16};
  }
}

Case Maker::make(std::uint32_t form, std::uint32_t n) {
  Case c{};
  c.form = form;
  const auto types = types_of(form);
  c.type = types[n % types.size()];
  const std::uint32_t turn = n / static_cast<std::uint32_t>(types.size());
  c.repeat = one(1, 4);
  for (int area = 0; area < AREAS; ++area) {
    const std::uint32_t type = area == 3 ? std::uint32_t{kU32} : c.type;
    c.row[area] = row_of(type, draw);
  }
  const std::uint32_t size = size_of(c.type), elements = 256 / size;
  strides(c, 8, 8);
  scalar_of(c);
  c.count = one(1, draw() % 4 == 0 ? 4 * elements : elements + 20);
  switch (kFamilies[form]) {
    case binary:
    case unary:
    case scalar:
    case fill:
      c.variant =
          turn % (c.type == kF32 || c.type == kS16 ? std::uint32_t{kVariants} : std::uint32_t{kPlaceholder});
      if (form == kExp || form == kLn)
        c.row[1] = c.type == kF32 ? one(kPositiveF32, kPositiveF16 - 1) : one(kPositiveF16, kEqualF32 - 1);
      if (form == kExp && c.type == kF16) c.row[1] = one(kEqualF16, kSmallS16 - 1);
      if (form == kShiftLeft || form == kShiftRight) c.scalar = one(0, 8 * size - 1);
      if (form == kCreateVecIndex && c.type == kF16) {
        const auto x = static_cast<_Float16>(one(0, 100));
        std::memcpy(&c.scalar, &x, 2);
      }
      masks(c, elements);
      break;
    case cast: {
      const auto [from, to] = kCasts[n % kCasts.size()];
      c.type = static_cast<std::uint32_t>(from);
      c.type2 = static_cast<std::uint32_t>(to);
      const std::uint32_t in = size_of(c.type), out = size_of(c.type2), each = 256 / std::max(in, out);
      c.variant = n / kCasts.size() % 3;
      c.mode = n / kCasts.size() / 3 % 7;
      c.row[1] = row_of(c.type, draw);
      strides(c, each * out / 32, each * in / 32);
      c.count = one(1, 3 * each + 20);
      masks(c, each);
      if (from == kS32 && to == kF16 && draw() % 2 == 0) {
        const auto x = static_cast<_Float16>(static_cast<float>(one(1, 64)) / 16);
        c.scalar = 0;
        std::memcpy(&c.scalar, &x, 2);
        c.extra[0] = 1;
        c.row[1] = one(kSmallS32, kAnyBF16 - 1);
      }
      break;
    }
    case compare:
      c.variant = turn % 3;
      c.mode = turn / 3 % 6;
      if (turn % 2 == 0)
        c.row[1] = c.type == kF32   ? std::uint32_t{kEqualF32}
                   : c.type == kF16 ? std::uint32_t{kEqualF16}
                                    : c.row[1];
      if (turn % 2 == 0)
        c.row[2] = c.type == kF32 ? kEqualF32 + 1 : c.type == kF16 ? kEqualF16 + 1 : c.row[1];
      masks(c, elements);
      break;
    case select:
      c.variant = turn % 3;
      c.mode = form == kSelect ? (turn / 3 % 2) * 2 : 1;
      masks(c, elements);
      break;
    case reduce:
      c.variant = turn % 3;
      c.mode = form == kReduceSum ? 0 : turn / 3 % 2;
      c.count = one(1, AREA / size);
      c.block[1] = 1;
      masks(c, elements);
      break;
    case whole:
      c.variant = form == kRepeatReduceSum ? std::uint32_t{kNumber} : 1u + turn % 2;
      if (form == kWholeReduceMax || form == kWholeReduceMin) c.mode = turn / 2 % 4;
      c.stride[0] = one(1, 4);
      masks(c, elements);
      break;
    case sum: {
      const std::uint32_t most = AREA / 32 / c.repeat, blocks = one(1, most);
      c.extra[0] = blocks * 32 / size;
      c.count = one(1, c.extra[0]);
      break;
    }
    case gather:
      c.variant = turn % 3;
      masks(c, elements);
      if (form == kGatherMask || form == kGatherMaskTensor) {
        c.repeat = one(1, 3);
        c.mode = one(1, 7);
        c.extra[0] = turn % 2;
        c.count = one(1, draw() % 2 == 0 ? elements : 3 * elements);
        c.block[1] = one(1, 2);
        c.stride[1] = one(0, 12);
        c.stride[2] = one(0, 4);
      } else if (form == kGather) {
        c.extra[0] = 4 * one(0, 200);
        c.stride[0] = one(0, 16);
        c.block[0] = 1;
      } else {
        c.block[0] = one(1, 2);
        c.stride[0] = one(8, 16);
      }
      break;
    case sort:
      c.variant = turn % 2;
      c.repeat = form == kExtract ? one(1, 8) : one(1, 16);
      c.mode = form == kMrgSort ? one(1, 15) : turn / 2 % 2;
      c.row[1] = c.type == kF32 ? of({0, 1, 2, 48, 49}) : of({12, 13, 50, 51});
      c.row[2] = row_of(kU32, draw);
      for (int list = 0; list < 4; ++list) c.extra[list] = one(1, 32);
      c.extra[4] = turn / 2 % 2;
      break;
    case copy:
      c.variant =
          form == kDataCopyPad || form == kDataCopyPadOut ? static_cast<std::uint32_t>(kNumber) : turn % 2;
      c.count = one(1, 40) * 32 / size;
      c.extra[0] = one(1, 8);
      c.stride[0] = one(0, 6);
      c.stride[1] = one(0, 6);
      if (c.variant == kNumber && form != kDataCopy && form != kDataCopyOut && form != kDataCopyLocal) {
        c.extra[0] = one(1, 300 / size) * size;
        if (form == kDataCopyPad) {
          c.stride[1] *= size;
          c.mode = turn % 2;
          if (c.mode != 0) {
            c.extra[1] = one(0, 32 / size);
            c.extra[2] = one(0, 32 / size);
          }
        } else {
          c.stride[0] *= size;
        }
      }
      break;
    case atomic:
      c.mode = turn % 3;
      c.extra[0] = one(1, 1000 / size) * size;
      break;
  }
  return c;
}

}  // namespace ascendc
