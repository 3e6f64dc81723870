// Credits, acknowledgements, and who stalls when they are missing.
#include <gtest/gtest.h>

#include "testbenches/hw/rtl/ub_link/small_link.h"

namespace cm384::rtl::flow_test {
namespace {

void send_many(SmallLink& bench, int e, unsigned lane, int length, int packets) {
  Random random(7 + lane);
  for (int p = 0; p < packets; ++p) bench.send(e, random_packet(random, lane, length));
}

TEST(LinkFlow, ALaneTakesAsManyCellsAsItsBufferHasAndNoMore) {
  SmallLink bench(10);
  bench.on_cycle = [](int e, std::uint32_t& lanes, bool&) {
    if (e == 1) lanes = 0;
  };
  // 28 flits are 4 cells: 16 packets fill 64.
  send_many(bench, 0, 2, 536, 40);
  bench.run(4'000);
  EXPECT_EQ(bench.queued(0), 24u);
  // One packet of 9 flits takes 2 cells, one of 8 takes 1.
  send_many(bench, 0, 1, 9 * 20 - 8, 40);
  send_many(bench, 0, 3, 8 * 20 - 8, 80);
  bench.run(8'000);
  EXPECT_EQ(bench.queued(0), 24u + 8 + 16);
  bench.on_cycle = nullptr;
  bench.drain(20'000);
}

TEST(LinkFlow, AFullLaneDoesNotHoldUpTheOthers) {
  SmallLink bench(10);
  bench.on_cycle = [](int e, std::uint32_t& lanes, bool&) {
    if (e == 1) lanes = 0b1101;
  };
  send_many(bench, 0, 1, 536, 100);
  send_many(bench, 0, 0, 536, 100);
  bench.run(100 * 28 + 16 * 28 + 500);
  EXPECT_EQ(bench.received(1), 100u);
  bench.on_cycle = nullptr;
  bench.drain(20'000);
}

TEST(LinkFlow, ALaneThatStallsInsideItsPacketStallsAll) {
  SmallLink bench(10);
  bool stall = false;
  bench.on_cycle = [&](int e, std::uint32_t& lanes, bool&) {
    if (e == 1 && stall) lanes = 0b1101;
  };
  send_many(bench, 0, 1, 5'000, 1);
  while (bench.model(1).receive_valid_o == 0) bench.step();
  stall = true;
  send_many(bench, 0, 0, 40, 3);
  bench.run(1'000);
  EXPECT_EQ(bench.received(1), 0u);
  stall = false;
  bench.drain(1'000);
}

// The other end's acknowledgements do not get through: the retry buffer fills, and everything waits.
TEST(LinkFlow, AFullRetryBufferStallsTheSender) {
  SmallLink bench(10);
  bool open = false;
  int data_flits = 0;
  bench.on_cycle = [&](int e, std::uint32_t&, bool& takes) {
    if (e == 1) takes = open;
  };
  bench.on_wire = [&](int e, Flit& flit) {
    if (e == 0 && !is_control(flit, Control::null)) ++data_flits;
  };
  send_many(bench, 0, 0, 632, 20);
  bench.run(1'000);
  // Three blocks of 32 flits; a fourth would leave no place for acknowledgements.
  EXPECT_EQ(data_flits, 3 * 32);
  open = true;
  bench.drain(5'000);
}

// Both ends send all they can, all lanes: full retry buffers free each other, whatever the stalls before.
TEST(LinkFlow, FullRetryBuffersFreeEachOther) {
  for (const int latency : {2, 100, 300}) {
    SmallLink bench(latency);
    for (int e = 0; e < 2; ++e) {
      for (unsigned lane = 0; lane < 4; ++lane) send_many(bench, e, lane, 1 + 631 * (lane % 2), 30);
    }
    bench.drain(400'000);
    EXPECT_EQ(bench.received(0) + bench.received(1), 240u);
  }
}

TEST(LinkFlow, OneWayFullRateLosesNoFlit) {
  SmallLink bench(5);
  send_many(bench, 0, 0, 536, 200);
  send_many(bench, 0, 1, 12, 500);
  send_many(bench, 0, 2, 536, 200);
  const std::uint64_t start = bench.cycle();
  bench.drain(20'000);
  // All flits, and the latency of the last packet, which is read out when it is whole.
  EXPECT_LE(bench.cycle() - start, 400u * 28 + 500 + 5 + 7 + 28);
}

TEST(LinkFlow, IdleEndsFallSilent) {
  SmallLink bench(5);
  for (int e = 0; e < 2; ++e) send_many(bench, e, 0, 100, 20);
  bench.drain(5'000);
  bench.run(1'000);
  const std::uint64_t blocks = bench.events(0).returned + bench.events(1).returned;
  bench.run(5'000);
  EXPECT_EQ(bench.events(0).returned + bench.events(1).returned, blocks);
}

TEST(LinkFlow, WhatIsLeftOverReturnsAfterItsDelay) {
  SmallLink bench(5);
  send_many(bench, 0, 0, 12, 1);
  std::uint64_t delivered = 0, returned = 0;
  bench.on_packet = [&](int, const Packet&) { delivered = bench.cycle(); };
  bench.on_wire = [&](int e, Flit& flit) {
    if (e == 1 && returned == 0 && is_control(flit, Control::returns)) returned = bench.cycle();
  };
  bench.run(500);
  ASSERT_GT(delivered, 0u);
  EXPECT_GE(returned, delivered + kSmallReturnDelay - 3);
  EXPECT_LE(returned, delivered + kSmallReturnDelay + 5);
}

}  // namespace
}  // namespace cm384::rtl::flow_test
