// Payload tags: what a tag spreads to, and that times do not depend on the mode.
#include <gtest/gtest.h>

#include <random>

#include "testbenches/npu_core/vector/stand_in.h"

namespace cm384::npu::testing::payload_test {
namespace {

constexpr int kV = CM384_PIPE_V, kMte2 = CM384_PIPE_MTE2, kMte3 = CM384_PIPE_MTE3;

void mark_payload(std::vector<bool>& tagged, std::uint64_t offset, std::uint64_t bytes) {
  for (std::uint64_t b = offset / 32; b <= (offset + bytes - 1) / 32; ++b) tagged[b] = true;
}

// A row comes in, is worked on and goes out to both memories, with metadata behind it.
std::vector<PipeInstruction> work() {
  const auto v = [](int op, std::uint32_t to, std::uint32_t from, std::uint64_t rs2, std::uint32_t repeats) {
    return vector(CM384_CLASS_VECTOR, op, CM384_F32, to, from, rs2, repeats);
  };
  return {copy_in(0, cm384_gm_die(kLocal, 0), 14336),
          copy_in(0x20000, cm384_gm_die(kRemote, 0x100), 64),
          set_flag(kMte2, kV),
          wait_flag(kMte2, kV),
          vector(CM384_CLASS_CONVERT, CM384_BF16_TO_F32, 0, 0x4000, 0, 0, 112, {1, 1, 1, 8, 4, 0}),
          v(CM384_VABS, 0xc000, 0x4000, 0, 112),
          vector(CM384_CLASS_REDUCE, CM384_VCMAX, CM384_F32, 0x18000, 0xc000, 0, 1),
          v(CM384_VMULS, 0x4000, 0x4000, 0x3f000000, 112),
          v(CM384_VADDS, 0x21000, 0x20000, 1, 1),
          set_flag(kV, kMte3),
          wait_flag(kV, kMte3),
          copy_out(cm384_gm_die(kRemote, 0x4004), 0x4000, 7212),
          copy_out(cm384_gm_die(kLocal, 0x20000), 0x4000, 28672),
          copy_out(cm384_gm_die(kLocal, 0x40000), 0x21000, 64)};
}

TEST(Payload, TimesAreTheSameInBothModes) {
  StandIn full, control;
  mark_payload(control.tagged, 0, 14336);
  ASSERT_TRUE(full.run(work()));
  ASSERT_TRUE(control.run(work()));
  EXPECT_EQ(full.drained(), control.drained());
  ASSERT_EQ(full.accesses.size(), control.accesses.size());
  for (std::size_t i = 0; i < full.accesses.size(); ++i)
    EXPECT_EQ(full.accesses[i].at, control.accesses[i].at);
  ASSERT_EQ(full.requests.size(), control.requests.size());
  for (std::size_t i = 0; i < full.requests.size(); ++i)
    EXPECT_EQ(full.requests[i].at, control.requests[i].at);
  EXPECT_FALSE(full.aiv.ubuffer().tagged());
  EXPECT_LT(control.aiv.ubuffer().pages(), 4u);  // no bytes where there is only payload
  EXPECT_EQ(control.payloads().in_use(), 0u);
}

// Where a merge stops depends on the values.
TEST(Payload, AMergeThatStopsNeedsValues) {
  PipeInstruction merge = vector(CM384_CLASS_REDUCE, CM384_VMERGE, CM384_F32, 0x1000, 0, 0x2000, 0);
  merge.c = 32 | 32 << 12;
  StandIn plain, stopping;
  plain.aiv.forget_values();
  EXPECT_TRUE(plain.run({merge}));
  merge.c |= CM384_MERGE_STOPS;
  EXPECT_TRUE(StandIn{}.run({merge}));
  stopping.aiv.forget_values();
  EXPECT_THROW(stopping.run({merge}), MachineError);
}

TEST(Payload, TagsFollowTheData) {
  StandIn die;
  mark_payload(die.tagged, 0, 14336);
  ASSERT_TRUE(die.run(work()));
  const UBuffer& u = die.aiv.ubuffer();
  EXPECT_TRUE(u.payload(0x4000, 28672));
  EXPECT_TRUE(u.payload(0x4000 + 28640, 32));
  EXPECT_TRUE(u.payload(0x18000, 4));    // the reduced value
  EXPECT_FALSE(u.payload(0x21000, 64));  // metadata
  EXPECT_TRUE(die.remote_tagged[0x4020 / 32]);
  EXPECT_TRUE(die.tagged[(0x20000 + 28640) / 32]);
  EXPECT_FALSE(die.tagged[0x40000 / 32]);
  for (const sim::Request& r : die.requests) {
    if (r.operation == sim::Operation::write) {
      EXPECT_EQ(r.payload.chunk, sim::kNoChunk);  // all payload: no bytes
    }
  }
  std::byte read[4];
  u.load(0x4000, read, 4);
  EXPECT_EQ(read[0], sim::kStandIn);
}

TEST(Payload, PlainDataMakesBlocksPlainAgain) {
  StandIn die;
  die.aiv.ubuffer().set_payload(0, 0x4000, true);
  die.memory[5] = std::byte{9};
  ASSERT_TRUE(die.run({copy_in(0x40, cm384_gm_die(kLocal, 0), 44), barrier(CM384_PIPE_ALL),
                       vector(CM384_CLASS_VECTOR, CM384_VDUP, CM384_S32, 0x1000, 0, 7, 1)}));
  const UBuffer& u = die.aiv.ubuffer();
  EXPECT_TRUE(u.payload(0x20, 32));
  EXPECT_FALSE(u.payload(0x40, 64));
  EXPECT_TRUE(u.payload(0x80, 1));
  EXPECT_FALSE(u.payload(0x1000, 256));
  EXPECT_TRUE(u.payload(0xfff, 1));
  EXPECT_TRUE(u.payload(0x1100, 1));
}

TEST(Payload, AScalarOfPayloadMakesWhatIsWrittenPayload) {
  StandIn die;
  PipeInstruction fill = vector(CM384_CLASS_VECTOR, CM384_VDUP, CM384_S32, 0x1000, 0, 7, 1);
  PipeInstruction compare = vector(CM384_CLASS_REDUCE, CM384_VCMPS_EQ, CM384_S32, 0x3000, 0x2000, 7, 1);
  fill.tainted_scalar = compare.tainted_scalar = true;
  ASSERT_TRUE(die.run({fill, compare, vector(CM384_CLASS_VECTOR, CM384_VDUP, CM384_S32, 0x4000, 0, 7, 1)}));
  const UBuffer& u = die.aiv.ubuffer();
  EXPECT_TRUE(u.payload(0x1000, 1));
  EXPECT_TRUE(u.payload(0x10ff, 1));
  EXPECT_FALSE(u.payload(0x1100, 32));
  EXPECT_TRUE(u.payload(0x3000, 8));  // a bit for each of 64 elements
  EXPECT_FALSE(u.payload(0x2000, 256));
  EXPECT_FALSE(u.payload(0x4000, 256));
}

TEST(Payload, OfPartlyWrittenBlocksTheRestStaysPayload) {
  StandIn die;
  die.aiv.ubuffer().set_payload(0x1000, 256, true);
  die.aiv.ubuffer().set_payload(0x2000, 32, true);
  ASSERT_TRUE(
      die.run({sync(CM384_SET_MASK, 5, 0), vector(CM384_CLASS_VECTOR, CM384_VDUP, CM384_S32, 0x1000, 0, 7, 1),
               vector(CM384_CLASS_REDUCE, CM384_VCADD, CM384_S32, 0x2004, 0x1000, 0, 1),
               barrier(CM384_PIPE_ALL), copy_out(cm384_gm_die(kLocal, 0x40000), 0x2000, 32)}));
  UBuffer& u = die.aiv.ubuffer();
  for (std::uint32_t element = 0; element < 64; ++element)
    EXPECT_EQ(u.payload(0x1000 + 4 * element, 4), element != 0 && element != 2) << element;
  EXPECT_TRUE(u.payload(0x2000, 4));
  EXPECT_FALSE(u.payload(0x2004, 4));
  EXPECT_TRUE(die.tagged[0x40000 / 32]);
  std::uint32_t words[3];
  u.load(0x2000, reinterpret_cast<std::byte*>(words), sizeof words);
  EXPECT_EQ(words[0], 0x3c3c3c3cu);
  EXPECT_EQ(words[1], 14u);  // 7 + 7: what is masked off is not read
  EXPECT_EQ(words[2], 0x3c3c3c3cu);
}

// Against a tag for every byte.
TEST(Payload, PartsOfBlocksAgreeWithSingleBytes) {
  UBuffer u;
  constexpr std::uint32_t kArea = 1024;
  std::vector<bool> model(kArea);
  std::mt19937 random(5);
  for (int turn = 0; turn < 20000; ++turn) {
    const auto offset = static_cast<std::uint32_t>(random() % (kArea - 512));
    const std::uint32_t bytes = 1 + static_cast<std::uint32_t>(random()) % (turn % 4 == 0 ? 300 : 24);
    const std::uint32_t kind = static_cast<std::uint32_t>(random()) % 8;
    if (kind < 2) {
      u.set_payload(offset, bytes, kind == 0);
      for (std::uint32_t b = offset / 32 * 32; b < (offset + bytes + 31) / 32 * 32; ++b) model[b] = kind == 0;
    } else {
      u.set_plain(offset, bytes);
      std::fill(model.begin() + offset, model.begin() + offset + bytes, false);
    }
    const auto from = static_cast<std::uint32_t>(random() % (kArea - 512));
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(random()) % 512;
    sim::TagMask expected = 0;
    std::vector<std::byte> bytes_read(count);
    u.load(from, bytes_read.data(), count);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (model[from + i]) expected |= 1u << (i / 32);
      ASSERT_EQ(bytes_read[i] == sim::kStandIn, model[from + i]);
    }
    ASSERT_EQ(u.payload(from, count), expected != 0);
    const sim::TagMask got = u.tags(from, count);
    ASSERT_EQ(got & expected, expected);
    ASSERT_EQ(got == 0, expected == 0);
    if (from % 32 == 0) {
      ASSERT_EQ(got, expected);
    }
  }
}

TEST(Payload, BitRangesAgreeWithSingleBlocks) {
  UBuffer u;
  std::vector<bool> model(kUBufferBytes / sim::kBlockBytes);
  std::mt19937 random(3);
  for (int turn = 0; turn < 3000; ++turn) {
    const auto offset = static_cast<std::uint32_t>(random() % kUBufferBytes);
    const std::uint32_t room = kUBufferBytes - offset;
    const std::uint32_t bytes =
        1 + static_cast<std::uint32_t>(random()) % std::min(room, turn % 2 == 0 ? 600u : 9000u);
    const bool payload = random() % 3 == 0;
    u.set_payload(offset, bytes, payload);
    for (std::uint32_t b = offset / 32; b <= (offset + bytes - 1) / 32; ++b) model[b] = payload;
    const auto from = static_cast<std::uint32_t>(random() % (kUBufferBytes - 512));
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(random()) % 512;
    sim::TagMask expected = 0;
    bool any = false;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!model[(from + i) / 32]) continue;
      any = true;
      expected |= 1u << (i / 32);
    }
    // A 32 B piece that straddles two blocks is payload when either is, even if it ends before the second.
    const sim::TagMask got = u.tags(from, count);
    ASSERT_EQ(got & expected, expected);
    ASSERT_EQ(got == 0, !any);
    ASSERT_EQ(u.payload(from, count), any);
    if (from % 32 == 0) {
      ASSERT_EQ(got, expected);
    }
  }
}

TEST(Payload, UnalignedReadsShiftTags) {
  StandIn die;
  mark_payload(die.tagged, 0x240, 32);
  ASSERT_TRUE(die.run({copy_in(0, cm384_gm_die(kLocal, 0x210), 0x100)}));
  // Memory block 0x240 is bytes 0x30..0x4f of the copy: blocks 1 and 2 of the UBuffer.
  const UBuffer& u = die.aiv.ubuffer();
  EXPECT_FALSE(u.payload(0, 32));
  EXPECT_TRUE(u.payload(32, 32));
  EXPECT_TRUE(u.payload(64, 32));
  EXPECT_FALSE(u.payload(96, 160));
}

// Blocks that no element of the mask lies in are not read: what stands there does not matter.
TEST(Payload, WhatIsMaskedOffIsNotRead) {
  for (const std::uint64_t elements : {8, 9}) {
    StandIn die;
    die.aiv.ubuffer().set_payload(0x20, 0xe0, true);
    ASSERT_TRUE(die.run({sync(CM384_SET_MASK, (std::uint64_t{1} << elements) - 1, 0),
                         vector(CM384_CLASS_REDUCE, CM384_VCADD, CM384_F32, 0x1000, 0, 0, 1)}));
    EXPECT_EQ(die.aiv.ubuffer().payload(0x1000, 4), elements == 9);
  }
}

}  // namespace
}  // namespace cm384::npu::testing::payload_test
