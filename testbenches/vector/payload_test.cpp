// Payload tags: what a tag spreads to, and that times do not depend on the mode.
#include <gtest/gtest.h>

#include <random>

#include "testbenches/vector/stand_in.h"

namespace cm384::npu::testing {
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

TEST(Payload, PartlyWrittenBlocksStayPayload) {
  StandIn die;
  die.aiv.ubuffer().set_payload(0x1000, 256, true);
  ASSERT_TRUE(die.run(
      {sync(CM384_SET_MASK, 1, 0), vector(CM384_CLASS_VECTOR, CM384_VDUP, CM384_S32, 0x1000, 0, 7, 1)}));
  EXPECT_TRUE(die.aiv.ubuffer().payload(0x1000, 1));
}

TEST(Payload, BitRangesAgreeWithSingleBlocks) {
  UBuffer u;
  std::vector<bool> model(kUBufferBlocks);
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
}  // namespace cm384::npu::testing
