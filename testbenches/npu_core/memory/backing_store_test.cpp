#include "npu_core/memory/backing_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <random>

namespace cm384::npu::backing_store_test {
namespace {

using Line = std::array<std::byte, 512>;

Line filled(int first) {
  Line line;
  for (std::size_t i = 0; i < line.size(); ++i)
    line[i] = static_cast<std::byte>(first + static_cast<int>(i * 7));
  return line;
}

TEST(BackingStore, UntouchedMemoryReadsZeroAndCostsNothing) {
  const BackingStore store(64_GiB);
  Line line = filled(1);
  EXPECT_EQ(store.read(12'345'678, line.data(), 512), 0u);
  EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_LT(store.footprint(), 1024u);
}

TEST(BackingStore, KnowsItsEnd) {
  const BackingStore store(64_GiB);
  EXPECT_TRUE(store.contains((std::uint64_t{64} << 30) - 512, 512));
  EXPECT_FALSE(store.contains((std::uint64_t{64} << 30) - 511, 512));
  EXPECT_FALSE(store.contains(~std::uint64_t{0}, 512));
}

TEST(BackingStore, BytesSurviveAtEveryAlignmentAndAcrossLinesAndPages) {
  BackingStore store(1_GiB);
  for (const std::uint64_t offset : {0ull, 32ull, 500ull, 4095ull, 4096ull + 17, (16ull << 20) - 3}) {
    const Line in = filled(static_cast<int>(offset));
    for (const std::uint32_t bytes : {1u, 4u, 33u, 511u, 512u}) {
      store.clear();
      store.write(offset, in.data(), bytes, 0);
      Line out;
      EXPECT_EQ(store.read(offset, out.data(), bytes), 0u);
      EXPECT_EQ(std::memcmp(in.data(), out.data(), bytes), 0) << offset << " " << bytes;
      std::byte after{1};
      store.read(offset + bytes, &after, 1);
      EXPECT_EQ(after, std::byte{0});
    }
  }
}

TEST(BackingStore, PayloadBlocksReadAsStandInWithTheirTags) {
  BackingStore store(1_GiB);
  const Line in = filled(3);
  store.write(1024, in.data(), 128, 0b0101);
  Line out;
  EXPECT_EQ(store.read(1024, out.data(), 128), 0b0101u);
  EXPECT_EQ(out[0], sim::kStandIn);
  EXPECT_EQ(out[31], sim::kStandIn);
  EXPECT_EQ(std::memcmp(out.data() + 32, in.data() + 32, 32), 0);
  EXPECT_EQ(out[64], sim::kStandIn);
  EXPECT_EQ(std::memcmp(out.data() + 96, in.data() + 96, 32), 0);
  EXPECT_EQ(store.read(1056, out.data(), 96), 0b010u);
}

TEST(BackingStore, PayloadCostsTagsOnly) {
  BackingStore store(64_GiB);
  store.mark_payload(0, 1 << 20);
  const std::uint64_t tags_only = store.footprint();
  EXPECT_LT(tags_only, (1u << 20) / 8);
  store.write(0, nullptr, 512, sim::all_tags(512));
  EXPECT_EQ(store.footprint(), tags_only);
  const Line in{};
  store.write(0, in.data(), 512, 0);
  EXPECT_GT(store.footprint(), tags_only);
}

TEST(BackingStore, WholePagesOfPayloadCostTheirEntries) {
  BackingStore store(64_GiB);
  store.mark_payload(0, 64 << 20);
  EXPECT_LT(store.footprint(), (64u << 20) / 600);
  const std::uint64_t held = store.footprint();
  store.write(12345 * 512, nullptr, 512, sim::all_tags(512));
  EXPECT_EQ(store.footprint(), held) << "payload over payload";
}

// What is written into a stretch of payload costs the entries of its own 256 KiB, and what is forgotten of it
// leaves the rest.
TEST(BackingStore, StretchesOfPayloadShareTheirEntries) {
  BackingStore store(64_GiB);
  store.mark_payload(0, std::uint64_t{4} << 30);
  const std::uint64_t held = store.footprint();
  EXPECT_LT(held, (std::uint64_t{4} << 30) / 20'000);
  const Line in{};
  store.write(1 << 20, in.data(), 512, 0);
  EXPECT_LT(store.footprint(), held + 64 * 1024);
  EXPECT_FALSE(store.has_payload(1 << 20, 512));
  EXPECT_TRUE(store.has_payload((1 << 20) + 512, 512));
  EXPECT_TRUE(store.has_payload((1 << 20) + (256 << 10), 512));
  store.forget(2 << 20, (1 << 20) + 512);
  EXPECT_FALSE(store.has_payload(2 << 20, (1 << 20) + 512));
  EXPECT_TRUE(store.has_payload((3 << 20) + 512, 1 << 20));
  store.mark_payload((2 << 20) + 100, 4 << 20);
  EXPECT_FALSE(store.has_payload(2 << 20, 96));
  EXPECT_TRUE(store.has_payload((2 << 20) + 100, 1));
  EXPECT_TRUE(store.has_payload(6 << 20, 32));
}

// Made payload by pages or line by line: the same afterwards, whatever is written, read and forgotten.
TEST(BackingStore, PayloadByPagesIsPayloadByLines) {
  constexpr std::uint64_t kBytes = 64 * 1024;
  BackingStore pages(1_MiB), lines(1_MiB);
  pages.mark_payload(1000, kBytes - 1500);
  for (std::uint64_t at = 1000; at < kBytes - 500; at = (at / 512 + 1) * 512)
    lines.mark_payload(at, std::min<std::uint64_t>(512 - at % 512, kBytes - 500 - at));
  std::mt19937_64 random(1);
  for (int turn = 0; turn < 4000; ++turn) {
    const auto bytes = static_cast<std::uint32_t>(1 + random() % 512);
    const std::uint64_t at = random() % (kBytes - 512);
    const Line in = filled(turn % 200);
    const auto tags = static_cast<sim::TagMask>(random() & random() & sim::all_tags(bytes));
    Line a{}, b{};
    switch (random() % 4) {
      case 0:
        pages.write(at, in.data(), bytes, tags), lines.write(at, in.data(), bytes, tags);
        break;
      case 1:
        pages.mark_payload(at, bytes * 16 % (kBytes - at)),
            lines.mark_payload(at, bytes * 16 % (kBytes - at));
        break;
      case 2:
        pages.forget(at, bytes * 20 % (kBytes - at)), lines.forget(at, bytes * 20 % (kBytes - at));
        break;
      default:
        ASSERT_EQ(pages.read(at, a.data(), bytes), lines.read(at, b.data(), bytes)) << turn;
        ASSERT_EQ(a, b) << turn;
    }
  }
}

// A few plain bytes in a line cost no whole line.
TEST(BackingStore, APairOfBlocksCostsAPair) {
  BackingStore store(1_GiB);
  const Line in{std::byte{1}};
  constexpr std::uint64_t kLines = 4096;
  for (std::uint64_t n = 0; n < kLines; ++n) store.write(n * 512 + 64 * (n % 8), in.data(), 44, 0);
  const std::uint64_t pairs = store.footprint();
  EXPECT_LT(pairs, kLines * 160);
  for (std::uint64_t n = 0; n < kLines; ++n) store.write(n * 512 + 64 * ((n + 1) % 8), in.data(), 12, 0);
  EXPECT_GT(store.footprint(), pairs + kLines * 400);
  for (std::uint64_t n = 0; n < kLines; ++n) {
    std::array<std::byte, 512> out;
    EXPECT_EQ(store.read(n * 512, out.data(), 512), 0u);
    EXPECT_EQ(std::count(out.begin(), out.end(), std::byte{1}), 2);
    EXPECT_EQ(out[64 * (n % 8)], std::byte{1});
    EXPECT_EQ(out[64 * ((n + 1) % 8)], std::byte{1});
  }
}

// A dispatch slot: 7168 B of tensor, a 4 B scale computed from it, a 12 B triple.
TEST(BackingStore, DispatchSlotKeepsItsTripleReadable) {
  BackingStore store(1_GiB);
  const std::uint64_t slot = 7680 * 3;
  store.mark_payload(slot, 7168);
  std::array<std::byte, 44> tail{};
  for (std::size_t i = 32; i < 44; ++i) tail[i] = static_cast<std::byte>(i);
  store.write(slot + 7168, tail.data(), 44, 0b01);
  std::array<std::byte, 44> out;
  EXPECT_EQ(store.read(slot + 7168, out.data(), 44), 0b01u);
  EXPECT_EQ(std::memcmp(out.data() + 32, tail.data() + 32, 12), 0);
  std::array<std::byte, 12> triple;
  EXPECT_EQ(store.read(slot + 7200, triple.data(), 12), 0u);
  EXPECT_EQ(std::memcmp(triple.data(), tail.data() + 32, 12), 0);
}

TEST(BackingStore, PartialPlainWriteLeavesPayloadAndWholeOneClearsIt) {
  BackingStore store(1_GiB);
  store.mark_payload(0, 64);
  const Line in = filled(9);
  Line out;
  store.write(0, in.data(), 12, 0);
  EXPECT_EQ(store.read(0, out.data(), 12), 0b1u);
  EXPECT_EQ(out[0], sim::kStandIn);
  store.write(16, in.data(), 32, 0);  // parts of two blocks, all of none
  EXPECT_EQ(store.read(0, out.data(), 64), 0b11u);
  store.write(0, in.data(), 32, 0);
  EXPECT_EQ(store.read(0, out.data(), 64), 0b10u);
  EXPECT_EQ(std::memcmp(out.data(), in.data(), 32), 0);
  store.write(40, nullptr, 4, 0b1);
  store.write(8, nullptr, 4, 0b1);
  EXPECT_EQ(store.read(0, out.data(), 64), 0b11u) << "any payload byte makes the block payload";
}

TEST(BackingStore, ForgetsARangeAndNothingBesideIt) {
  BackingStore store(1_MiB);
  std::vector<std::byte> ones(20000, std::byte{1});
  store.write_bytes(100, ones.data(), ones.size());
  store.mark_payload(4096, 4096);
  const std::uint64_t held = store.footprint();
  store.forget(600, 15000);
  std::vector<std::byte> back(20200);
  store.read_bytes(0, back.data(), back.size());
  for (std::uint64_t n = 0; n < back.size(); ++n)
    ASSERT_EQ(back[n], n >= 100 && n < 20100 && (n < 600 || n >= 15600) ? std::byte{1} : std::byte{0}) << n;
  EXPECT_FALSE(store.has_payload(0, 20200));
  // A line that was lent stays in its place.
  std::byte* const lent = store.lend_line(600 * 1024);
  *lent = std::byte{1};
  store.forget(600 * 1024, 512);
  EXPECT_EQ(*lent, std::byte{0});
  *lent = std::byte{2};
  store.read_bytes(600 * 1024, back.data(), 1);
  EXPECT_EQ(back[0], std::byte{2});
  // What held it is used again.
  store.write_bytes(512 * 1024, ones.data(), 14000);
  EXPECT_LT(store.footprint(), held + 14000);
}

TEST(BackingStore, UnalignedRequestsConvertTagsConservatively) {
  BackingStore store(1_GiB);
  const Line in = filled(2);
  Line out;
  // Request block 1 is payload: bytes 16+32 .. 16+64 of the store, which touch store blocks 1 and 2.
  store.write(16, in.data(), 128, 0b0010);
  EXPECT_EQ(store.read(0, out.data(), 160), 0b00110u);
  // Reading at 16 again: request blocks 0, 1 and 2 contain bytes of store blocks 1 and 2.
  EXPECT_EQ(store.read(16, out.data(), 128), 0b0111u);
  EXPECT_EQ(std::memcmp(out.data(), in.data(), 16), 0);
  EXPECT_EQ(out[16], sim::kStandIn);
  // The same across a line.
  store.write(496, in.data(), 64, 0b01);
  EXPECT_EQ(store.read(480, out.data(), 96), 0b011u);
  EXPECT_EQ(store.read(496, out.data(), 16), 0b1u);
  // A short last block that ends inside its first store block tags no further block.
  store.write(2048 + 16, in.data(), 48, 0b10);
  EXPECT_EQ(store.read(2048, out.data(), 96), 0b010u);
}

// Random writes against a model that keeps a byte and a flag for every byte.
TEST(BackingStore, AgreesWithAByteModel) {
  BackingStore store(1_MiB);
  std::map<std::uint64_t, std::byte> bytes;
  std::map<std::uint64_t, bool> payload;  // by block
  std::uint64_t x = 7;
  const auto next = [&x](std::uint64_t below) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    return (x >> 33) % below;
  };
  for (int round = 0; round < 8000; ++round) {
    if (round % 100 == 0) {  // lines grow from nothing again
      store.clear();
      bytes.clear();
      payload.clear();
    }
    const std::uint64_t offset = next(3) == 0 ? next(9000) : next(280) * 32;
    const auto count = static_cast<std::uint32_t>(1 + next(next(2) == 0 ? 512 : 64));
    const Line in = filled(round);
    const auto tags = static_cast<sim::TagMask>(next(4) == 0 ? next(65536) : 0) & sim::all_tags(count);
    store.write(offset, in.data(), count, tags);
    std::map<std::uint64_t, int> plain_bytes;
    std::map<std::uint64_t, bool> any;
    for (std::uint32_t i = 0; i < count; ++i) {
      bytes[offset + i] = in[i];
      if ((tags >> (i / 32) & 1) != 0) any[(offset + i) / 32] = true;
      ++plain_bytes[(offset + i) / 32];
    }
    // A request block that is payload makes every store block it covers payload.
    for (const auto& [block, n] : plain_bytes) {
      if (any[block]) {
        payload[block] = true;
      } else if (n == 32) {
        payload[block] = false;
      }
    }
    const std::uint64_t at = next(9000);
    const auto length = static_cast<std::uint32_t>(1 + next(512));
    Line out;
    const sim::TagMask got = store.read(at, out.data(), length);
    sim::TagMask want = 0;
    for (std::uint32_t i = 0; i < length; ++i) {
      const bool is_payload = payload[(at + i) / 32];
      if (is_payload) want |= 1u << (i / 32);
      ASSERT_EQ(out[i], is_payload ? sim::kStandIn : bytes[at + i]) << "round " << round << " byte " << i;
    }
    // A misaligned request may be tagged for a neighbour's sake, never the other way.
    ASSERT_EQ(got & want, want) << "round " << round;
    if (at % 32 == 0) {
      ASSERT_EQ(got, want);
    }
  }
}

TEST(BackingStore, AtomicAddReturnsTheOldValue) {
  BackingStore store(1_GiB);
  const std::array<std::int32_t, 3> start{5, -1, 2147483647}, add{7, 1, 1};
  store.write_bytes(100, reinterpret_cast<const std::byte*>(start.data()), 12);
  std::array<std::int32_t, 3> old{}, now{};
  EXPECT_EQ(store.atomic_add(100, reinterpret_cast<const std::byte*>(add.data()), 12, 0,
                             sim::Operation::atomic_add_s32, reinterpret_cast<std::byte*>(old.data())),
            0u);
  store.read_bytes(100, reinterpret_cast<std::byte*>(now.data()), 12);
  EXPECT_EQ(old, start);
  EXPECT_EQ(now, (std::array<std::int32_t, 3>{12, 0, -2147483647 - 1}));
  const float one = 1.5f;
  float sum = 0;
  store.atomic_add(512, reinterpret_cast<const std::byte*>(&one), 4, 0, sim::Operation::atomic_add_f32,
                   nullptr);
  store.atomic_add(512, reinterpret_cast<const std::byte*>(&one), 4, 0, sim::Operation::atomic_add_f32,
                   nullptr);
  store.read_bytes(512, reinterpret_cast<std::byte*>(&sum), 4);
  EXPECT_EQ(sum, 3.0f);
}

// A sum with payload in it is payload, whichever side it was on.
TEST(BackingStore, AtomicAddsKeepTags) {
  BackingStore store(1_GiB);
  const std::array<std::int32_t, 8> add{1, 1, 1, 1, 1, 1, 1, 1};
  store.mark_payload(0, 32);
  EXPECT_EQ(store.atomic_add(0, reinterpret_cast<const std::byte*>(add.data()), 32, 0,
                             sim::Operation::atomic_add_s32, nullptr),
            1u);
  EXPECT_TRUE(store.has_payload(0, 32));
  EXPECT_EQ(store.atomic_add(64, nullptr, 32, 1, sim::Operation::atomic_add_s32, nullptr), 0u);
  EXPECT_TRUE(store.has_payload(64, 32));
  EXPECT_FALSE(store.has_payload(32, 32));
}

TEST(BackingStore, HasPayloadSeesOneBlock) {
  BackingStore store(1_GiB);
  store.mark_payload(100'000, 1);
  EXPECT_TRUE(store.has_payload(0, 200'000));
  EXPECT_FALSE(store.has_payload(0, 99'968));
  EXPECT_TRUE(store.has_payload(100'000, 1));
}

}  // namespace
}  // namespace cm384::npu::backing_store_test
