// Values of reductions, compare, select, gather and broadcast.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/text/error.h"
#include "firmware/abi/isa.h"
#include "npu_core/vector/vector_unit.h"

namespace cm384::npu::reductions_test {
namespace {

constexpr std::uint64_t kOnes = ~std::uint64_t{0};
constexpr std::uint32_t kTo = 0x10000, kFrom = 0x0, kOther = 0x8000;
constexpr std::uint64_t kContiguous =
    1u << 8 | 1u << 16 | 1u << 24 | std::uint64_t{8} << 40 | std::uint64_t{8} << 48;

template <class T>
void put(UBuffer& u, std::uint32_t at, T v) {
  u.store(at, reinterpret_cast<const std::byte*>(&v), sizeof v);
}
template <class T>
T get(const UBuffer& u, std::uint32_t at) {
  T v;
  u.load(at, reinterpret_cast<std::byte*>(&v), sizeof v);
  return v;
}

void perform_reduce(UBuffer& u, int operation, int type, std::uint64_t rs2, std::uint32_t repeats,
                    std::uint32_t destination_repeat = 1, std::uint64_t mask_low = kOnes,
                    std::uint64_t mask_high = kOnes) {
  PipeInstruction i;
  i.instruction_class = CM384_CLASS_REDUCE;
  i.operation = static_cast<std::uint8_t>(operation);
  i.type = static_cast<std::uint8_t>(type);
  i.a = kTo | std::uint64_t{kFrom} << 32;
  i.b = rs2;
  i.c = kContiguous | repeats | std::uint64_t{destination_repeat} << 32;
  perform(decode_vector(i, mask_low, mask_high), u);
}

TEST(Reductions, SumsArePairwise) {
  UBuffer u;
  float expected[2] = {};
  for (std::uint32_t r = 0; r < 2; ++r) {
    float x[64];
    for (std::uint32_t i = 0; i < 64; ++i) {
      x[i] = std::ldexp(static_cast<float>(i * 37 % 11) + 0.1f, static_cast<int>((i + r) % 24) - 12);
      put(u, kFrom + r * 256 + i * 4, x[i]);
    }
    for (int n = 64; n > 1; n /= 2) {
      for (int i = 0; i < n / 2; ++i) x[i] = x[2 * i] + x[2 * i + 1];
    }
    expected[r] = x[0];
  }
  perform_reduce(u, CM384_VCADD, CM384_F32, 0, 2, 3);
  EXPECT_EQ(get<float>(u, kTo), expected[0]);
  EXPECT_EQ(get<float>(u, kTo + 12), expected[1]);  // the repeat stride counts elements
  EXPECT_EQ(get<float>(u, kTo + 4), 0.0f);
}

TEST(Reductions, MaskedElementsTakeNoPart) {
  UBuffer u;
  for (std::uint32_t i = 0; i < 64; ++i) put(u, kFrom + i * 4, static_cast<std::int32_t>(i));
  perform_reduce(u, CM384_VCADD, CM384_S32, 0, 1, 1, 0x7);
  EXPECT_EQ(get<std::int32_t>(u, kTo), 0 + 1 + 2);
  perform_reduce(u, CM384_VCMAX, CM384_S32, 0, 1, 1, 0xf0);
  EXPECT_EQ(get<std::int32_t>(u, kTo), 7);
  perform_reduce(u, CM384_VCMIN, CM384_S32, 1, 1, 1, 0xf0);
  EXPECT_EQ(get<std::int32_t>(u, kTo), 4);
  EXPECT_EQ(get<std::int32_t>(u, kTo + 4), 4);  // its index
  perform_reduce(u, CM384_VCMAX, CM384_S32, 1, 1, 1, 0);
  EXPECT_EQ(get<std::int32_t>(u, kTo), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(get<std::int32_t>(u, kTo + 4), 0);
}

TEST(Reductions, MaximumWithNanIsNanAndPointsAtTheFirst) {
  UBuffer u;
  for (std::uint32_t i = 0; i < 64; ++i) put(u, kFrom + i * 4, 1.0f);
  put(u, kFrom + 5 * 4, 9.0f);
  put(u, kFrom + 6 * 4, 9.0f);
  perform_reduce(u, CM384_VCMAX, CM384_F32, 1, 1);
  EXPECT_EQ(get<float>(u, kTo), 9.0f);
  EXPECT_EQ(get<std::uint32_t>(u, kTo + 4), 5u);
  put(u, kFrom + 20 * 4, std::nanf(""));
  put(u, kFrom + 30 * 4, std::nanf(""));
  perform_reduce(u, CM384_VCMAX, CM384_F32, 1, 1);
  EXPECT_TRUE(std::isnan(get<float>(u, kTo)));
  EXPECT_EQ(get<std::uint32_t>(u, kTo + 4), 20u);
}

TEST(Reductions, GroupsGiveOneElementABlock) {
  UBuffer u;
  for (std::uint32_t i = 0; i < 256; ++i) put(u, kFrom + i * 2, f32_to_f16(static_cast<float>(i % 100)));
  perform_reduce(u, CM384_VCGMAX, CM384_F16, 0, 2);
  perform_reduce(u, CM384_VCGADD, CM384_F16, 0, 0 + 1, 1);
  for (std::uint32_t g = 8; g < 16; ++g) {
    float best = 0;
    for (std::uint32_t i = g * 16; i < g * 16 + 16; ++i) best = std::max(best, static_cast<float>(i % 100));
    EXPECT_EQ(f16_to_f32(get<std::uint16_t>(u, kTo + g * 2)), best) << g;
  }
  EXPECT_EQ(f16_to_f32(get<std::uint16_t>(u, kTo)), 120.0f);  // 0 + 1 + ... + 15
  EXPECT_EQ(f16_to_f32(get<std::uint16_t>(u, kTo + 2)), 256.0f + 120.0f);
}

TEST(Reductions, CompareWritesBitsAndSelectReadsThem) {
  UBuffer u;
  for (std::uint32_t i = 0; i < 128; ++i) {
    put(u, kFrom + i * 4, static_cast<float>(i));
    put(u, kOther + i * 4, i % 3 == 0 ? static_cast<float>(i) : -1.0f);
  }
  put(u, kFrom, std::nanf(""));
  perform_reduce(u, CM384_VCMP_EQ, CM384_F32, kOther, 2, 1, kOnes >> 1);
  std::uint64_t expected[2] = {};
  for (std::uint32_t i = 0; i < 128; ++i) {
    if (i != 0 && i % 3 == 0 && i % 64 != 63) expected[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  EXPECT_EQ(get<std::uint64_t>(u, kTo), expected[0]);
  EXPECT_EQ(get<std::uint64_t>(u, kTo + 8), expected[1]);
  perform_reduce(u, CM384_VCMPS_NE, CM384_F32, std::bit_cast<std::uint32_t>(3.0f), 1);
  EXPECT_EQ(get<std::uint64_t>(u, kTo), ~std::uint64_t{8});  // NaN differs from all
  const struct {
    int operation;
    std::uint64_t bits;
  } order[] = {{CM384_VCMPS_LT, 0x6},
               {CM384_VCMPS_LE, 0xe},
               {CM384_VCMPS_GT, ~std::uint64_t{0xf}},
               {CM384_VCMPS_GE, ~std::uint64_t{0x7}},
               {CM384_VCMPS_EQ, 0x8}};
  for (const auto& o : order) {
    perform_reduce(u, o.operation, CM384_F32, std::bit_cast<std::uint32_t>(3.0f), 1);
    EXPECT_EQ(get<std::uint64_t>(u, kTo), o.bits) << o.operation;
  }
  constexpr std::uint32_t kBits = 0x20000;
  put(u, kBits, std::uint64_t{0x00000000ffff0000u});
  perform_reduce(u, CM384_VSEL, CM384_F32, kOther | std::uint64_t{kBits} << 32, 1, 8);
  EXPECT_EQ(get<float>(u, kTo + 17 * 4), 17.0f);
  EXPECT_EQ(get<float>(u, kTo + 40 * 4), -1.0f);
}

TEST(Reductions, GatherMaskPacksElements) {
  UBuffer u;
  for (std::uint32_t i = 0; i < 128; ++i) put(u, kFrom + i * 4, i);
  for (std::uint32_t pattern = 1; pattern <= 7; ++pattern) {
    perform_reduce(u, CM384_VGATHER_MASK, CM384_S32, pattern, 2, 1, 0);  // the vector mask is not used
    std::uint32_t at = kTo;
    for (std::uint32_t i = 0; i < 128; ++i) {
      const bool on = pattern == 7 || (pattern <= 2 ? i % 2 == pattern - 1 : i % 4 == pattern - 3);
      if (!on) continue;
      ASSERT_EQ(get<std::uint32_t>(u, at), i) << pattern;
      at += 4;
    }
  }
  constexpr std::uint32_t kBits = 0x20000;
  put(u, kBits, std::uint64_t{0x8000000000000001u});
  put(u, kBits + 8, std::uint64_t{0x10});
  perform_reduce(u, CM384_VGATHER_MASK, CM384_S32, std::uint64_t{kBits} << 32, 2);
  EXPECT_EQ(get<std::uint32_t>(u, kTo), 0u);
  EXPECT_EQ(get<std::uint32_t>(u, kTo + 4), 63u);
  EXPECT_EQ(get<std::uint32_t>(u, kTo + 8), 68u);
}

TEST(Reductions, BroadcastAndGather) {
  UBuffer u;
  for (std::uint32_t i = 0; i < 64; ++i) put(u, kFrom + i * 4, 4 * (63 - i));
  PipeInstruction brcb;
  brcb.instruction_class = CM384_CLASS_REDUCE;
  brcb.operation = CM384_VBRCB;
  brcb.type = CM384_S32;
  brcb.a = kTo | std::uint64_t{kFrom + 4} << 32;
  brcb.c = kContiguous | 2 | std::uint64_t{8} << 32;
  perform(decode_vector(brcb, kOnes, kOnes), u);
  EXPECT_EQ(get<std::uint32_t>(u, kTo), 4u * 62);
  EXPECT_EQ(get<std::uint32_t>(u, kTo + 28), 4u * 62);
  EXPECT_EQ(get<std::uint32_t>(u, kTo + 15 * 32), 4u * (62 - 15));
  for (std::uint32_t i = 0; i < 64; ++i) put(u, kOther + i * 4, 1000 + i);
  perform_reduce(u, CM384_VGATHER, CM384_S32, kOther, 1, 8);
  EXPECT_EQ(get<std::uint32_t>(u, kTo), 1063u);
  EXPECT_EQ(get<std::uint32_t>(u, kTo + 63 * 4), 1000u);
  EXPECT_THROW(perform_reduce(u, CM384_VGATHER, CM384_S32, kUBufferBytes - 8, 1, 8), MachineError);
}

}  // namespace
}  // namespace cm384::npu::reductions_test
