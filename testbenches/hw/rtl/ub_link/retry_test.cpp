// Damage to chosen flits: what is detected, what is sent again, and what it costs, cycle by cycle.
#include <gtest/gtest.h>

#include "testbenches/hw/rtl/ub_link/small_link.h"

namespace cm384::rtl::retry_test {
namespace {

void send_many(SmallLink& bench, int e, int length, int packets) {
  Random random(60 + e);
  for (int p = 0; p < packets; ++p) bench.send(e, random_packet(random, 0, length));
}

void turn(Flit& flit, int bit) {
  flit[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
}

// Cycles for 12 packets of 28 flits from end 0, the `struck`th flit that is no null block damaged in `bit`,
// unless -1.
std::uint64_t cycles_with_damage(int latency, int struck, int bit, Events& at_receiver) {
  SmallLink bench(latency);
  send_many(bench, 0, 536, 12);
  int seen = 0;
  bench.on_wire = [&](int e, Flit& flit) {
    if (e != 0 || (seen == 0 && is_control(flit, Control::null))) return;
    if (seen++ == struck) turn(flit, bit);
  };
  const std::uint64_t start = bench.cycle();
  bench.drain(20'000);
  at_receiver = bench.events(1);
  return bench.cycle() - start;
}

// README.md, "What a damaged block costs": n flits per block, back to back, cost n ceil((n + 2 L + 3) / n) +
// 1 cycles.
TEST(LinkRetry, ADamagedBlockCostsItsClosedForm) {
  constexpr int kFlits = 28;
  for (const int latency : {2, 12, 13}) {
    Events none, one;
    const std::uint64_t clear = cycles_with_damage(latency, -1, 0, none);
    EXPECT_EQ(none.damaged, 0u);
    const int ahead = kFlits + 2 * latency + 3;
    const std::uint64_t cost = static_cast<std::uint64_t>((ahead + kFlits - 1) / kFlits * kFlits + 1);
    for (const int flit : {0, 5, 27}) {
      // A bit of the content, the header's route, or the CRC.
      const int bit = flit == 0 ? 14 : flit == 5 ? 77 : 159;
      EXPECT_EQ(cycles_with_damage(latency, 5 * kFlits + flit, bit, one) - clear, cost)
          << "latency " << latency << ", flit " << flit;
      EXPECT_EQ(one.damaged, 1u);
      EXPECT_EQ(one.asked, 1u);
    }
  }
}

// Every bit of the first flit, header and all: lanes that do not exist, lengths that are none, control
// blocks.
TEST(LinkRetry, EveryBitOfAHeaderIsCovered) {
  for (int bit = 0; bit < 160; ++bit) {
    Events one;
    cycles_with_damage(5, 3 * 28, bit, one);
    ASSERT_FALSE(HasFatalFailure()) << bit;
    EXPECT_GE(one.damaged, 1u) << bit;
    EXPECT_LE(one.damaged, 2u) << bit;
  }
}

// The first control block of a kind from end 1 is damaged, both ends sending.
void damage_control(Control kind, int bit) {
  SmallLink bench(12);
  for (int e = 0; e < 2; ++e) send_many(bench, e, 40, 24);
  int data = 0;
  bool done = false;
  bench.on_wire = [&](int e, Flit& flit) {
    // Damage to a data block of end 0 brings the request, to one of end 1 the answer.
    const int cause = kind == Control::retry_request ? 0 : 1;
    const bool asks = kind == Control::retry_request || kind == Control::retry_answer;
    if (asks && e == cause && block_header(flit).format != 0 && data++ == 20) turn(flit, 100);
    const int where = kind == Control::retry_answer || kind == Control::retry_request ? 1 : 0;
    if (e == where && !done && is_control(flit, kind)) {
      turn(flit, bit);
      done = true;
    }
  };
  bench.drain(20'000);
  EXPECT_TRUE(done);
}
TEST(LinkRetry, DamagedNullBlocksAreHarmless) {
  for (int bit = 0; bit < 160; bit += 23) damage_control(Control::null, bit);
}
TEST(LinkRetry, DamagedReturnsAreSentAgain) {
  for (int bit = 0; bit < 160; bit += 11) damage_control(Control::returns, bit);
}
TEST(LinkRetry, DamagedRequestsAreRepeated) {
  for (int bit = 0; bit < 160; bit += 23) damage_control(Control::retry_request, bit);
}
TEST(LinkRetry, DamagedAnswersAreAskedForAgain) {
  for (int bit = 0; bit < 160; bit += 23) damage_control(Control::retry_answer, bit);
}

TEST(LinkRetry, BothDirectionsCanBeDamagedAtOnce) {
  SmallLink bench(15);
  for (int e = 0; e < 2; ++e) send_many(bench, e, 536, 30);
  int flits[2] = {0, 0};
  bench.on_wire = [&](int e, Flit& flit) {
    if (++flits[e] % 150 == 0) turn(flit, 60);
  };
  bench.drain(30'000);
  EXPECT_GT(bench.events(0).damaged, 3u);
  EXPECT_GT(bench.events(1).damaged, 3u);
}

TEST(LinkRetry, AnUnansweredRequestIsRepeatedAfterTwiceTheWait) {
  SmallLink bench(5);
  send_many(bench, 0, 536, 5);
  std::vector<std::uint64_t> asked;
  std::vector<unsigned> tags;
  bool cut = true;
  int data = 0;
  bench.on_wire = [&](int e, Flit& flit) {
    if (e == 0 && block_header(flit).format != 0 && data++ == 30) turn(flit, 50);
    if (e == 1 && is_control(flit, Control::retry_request)) {
      asked.push_back(bench.cycle());
      tags.push_back(field(flit, 4));
      if (cut) turn(flit, 80);
    }
  };
  bench.run(kSmallRetryTimeout * 16);
  ASSERT_EQ(asked.size(), 5u);
  for (std::size_t i = 1; i < asked.size(); ++i) {
    const std::uint64_t wait = static_cast<std::uint64_t>(kSmallRetryTimeout) << (i - 1);
    EXPECT_GE(asked[i] - asked[i - 1], wait);
    EXPECT_LE(asked[i] - asked[i - 1], wait + 2);
    EXPECT_EQ(tags[i], tags[i - 1] + 1);
  }
  cut = false;
  bench.drain(kSmallRetryTimeout * 40);
}

// The wait stops growing, so an end comes back even after a long outage.
TEST(LinkRetry, TheWaitIsBounded) {
  SmallLink bench(5);
  send_many(bench, 0, 536, 5);
  bool cut = true;
  int data = 0;
  bench.on_wire = [&](int e, Flit& flit) {
    if (e == 0 && block_header(flit).format != 0 && data++ == 30) turn(flit, 50);
    if (e == 1 && cut && is_control(flit, Control::retry_request)) turn(flit, 80);
  };
  bench.run(100'000);
  cut = false;
  bench.drain(80'000);
}

// Payload may look like any block: in place it is content; behind damage, where every flit is looked at, a
// false request is passed over or brings replay that the receiver refuses, and a false answer has not the
// tag.
TEST(LinkRetry, PayloadThatLooksLikeARetryMisleadsNobody) {
  for (const Control kind : {Control::retry_request, Control::retry_answer}) {
    for (const unsigned position : {0u, 30u, 60u, 90u, 5'000u, 65'000u}) {
      SmallLink bench(12);
      for (int e = 0; e < 2; ++e) {
        for (int p = 0; p < 30; ++p) {
          Packet packet{0, 6, 0, std::vector<std::uint8_t>(16, 0x11)};
          // From the second flit on, flits of content stand as they are.
          for (int f = 0; f < 20; ++f) {
            const Flit bait = retry_block(kind, position, static_cast<unsigned>(f), 20);
            packet.bytes.insert(packet.bytes.end(), bait.begin(), bait.end());
          }
          bench.send(e, packet);
        }
      }
      int data[2] = {0, 0};
      bench.on_wire = [&](int e, Flit& flit) {
        if (block_header(flit).format != 0 && data[e]++ % 50 == 49) turn(flit, 120);
      };
      bench.drain(60'000);
      ASSERT_FALSE(HasFatalFailure()) << "kind " << static_cast<int>(kind) << ", position " << position;
    }
  }
}

// An answer that nobody asked for: the other end has been misled, and is put right.
TEST(LinkRetry, AnAnswerNobodyAskedForBeginsARetry) {
  SmallLink bench(12);
  send_many(bench, 0, 536, 20);
  bool done = false;
  unsigned sent = 0;
  bench.on_wire = [&](int e, Flit& flit) {
    if (e == 0 && !is_control(flit, Control::null)) ++sent;
    // A false request in the place of a null block, for the block that is being sent.
    if (e == 1 && !done && sent > 100 && is_control(flit, Control::null)) {
      flit = retry_block(Control::retry_request, sent / 28 * 28, 999, 20);
      done = true;
    }
  };
  bench.drain(5'000);
  EXPECT_EQ(bench.events(0).replayed, 2u);
  EXPECT_EQ(bench.events(1).damaged, 1u);
}

TEST(LinkRetry, UnknownControlBlocksArePassedOver) {
  SmallLink bench(12);
  send_many(bench, 0, 536, 20);
  bench.on_wire = [&](int, Flit& flit) {
    if (!is_control(flit, Control::null)) return;
    flit[0] = 9u << 6 & 0xff;
    flit[1] = 9u >> 2;
    seal(flit);
  };
  bench.drain(5'000);
  EXPECT_EQ(bench.events(0).damaged + bench.events(1).damaged, 0u);
}

}  // namespace
}  // namespace cm384::rtl::retry_test
