// The parts by themselves, and machines that do not fit together.
#include <gtest/gtest.h>

#include "base/text/error.h"
#include "testbenches/ub_fabric/fabric_bench.h"
#include "ub_fabric/link.h"
#include "ub_fabric/output_stage.h"
#include "ub_fabric/socket_dram.h"
#include "ub_fabric/translation_cache.h"
#include "ub_fabric/virtual_output_queues.h"

namespace cm384::ub::parts_test {
namespace {

using namespace cm384::literals;

Hop hop(PacketIndex index, unsigned flits, unsigned lane = 0) {
  Packet p;
  p.flits = static_cast<std::uint8_t>(flits);
  p.lane = static_cast<std::uint8_t>(lane);
  return Hop(index, p);
}

TEST(PacketPool, HandsOutEachIndexOnce) {
  PacketPool pool;
  std::vector<PacketIndex> held;
  for (int i = 0; i < 40'000; ++i) held.push_back(pool.allocate());
  for (std::size_t i = 0; i < held.size(); ++i) pool[held[i]].tag = static_cast<std::uint32_t>(i);
  for (std::size_t i = 0; i < held.size(); ++i) EXPECT_EQ(pool[held[i]].tag, i);
  EXPECT_EQ(pool.in_use(), 40'000u);
  for (const PacketIndex index : held) pool.release(index);
  EXPECT_EQ(pool.in_use(), 0u);
  EXPECT_EQ(pool.allocate(), held.back());
}

TEST(LinkBank, SerialisesInFlitTicks) {
  sim::EventQueue queue(1);
  LinkBank links(queue, 0, 0, 1, 2, RetryTimes{});
  const Clock flit(Bytes{20}, 28_GBps);
  links.connect(0, flit, 100_ns, 256);
  const Transmission a = links.transmit(0, hop(1, 28), 1_ps);
  EXPECT_EQ(a.start, flit.start(1));
  EXPECT_EQ(a.tail, flit.start(29));
  const Transmission b = links.transmit(0, hop(2, 1), 5_ns);
  EXPECT_EQ(b.start, flit.start(29));
  EXPECT_EQ(b.tail, flit.start(30));
  EXPECT_EQ(links.counters(0).flits, 29u);
  EXPECT_EQ(links.busy(0), flit.start(29));
}

TEST(LinkBank, CreditsComeBackByTheirTimes) {
  sim::EventQueue queue(1);
  LinkBank links(queue, 0, 0, 1, 2, RetryTimes{});
  links.connect(0, Clock(Bytes{20}, 28_GBps), 100_ns, 8);
  EXPECT_TRUE(links.take_credits(0, 0, 4, 0_ns));
  EXPECT_TRUE(links.take_credits(0, 0, 4, 0_ns));
  EXPECT_FALSE(links.take_credits(0, 0, 1, 0_ns));
  EXPECT_TRUE(links.take_credits(0, 1, 8, 0_ns));  // the other lane has its own
  links.return_credits(0, 0, 4, 200_ns);
  links.return_credits(0, 0, 4, 150_ns);  // never overtakes
  EXPECT_FALSE(links.take_credits(0, 0, 4, Time{199'999}));
  EXPECT_TRUE(links.take_credits(0, 0, 8, 200_ns));
  EXPECT_EQ(links.occupied(0, 0, 200_ns), 8);
}

TEST(LinkBank, WakesTheOneThatWaits) {
  sim::EventQueue queue(1);
  LinkBank links(queue, 5, 9, 2, 2, RetryTimes{});
  links.connect(1, Clock(Bytes{20}, 28_GBps), 100_ns, 4);
  EXPECT_TRUE(links.take_credits(1, 0, 4, 0_ns));
  links.await_credits(1, 0);
  EXPECT_TRUE(queue.empty());
  links.return_credits(1, 0, 4, 300_ns);
  int woken = 0;
  queue.run_until(1_us, [&](const sim::Event& e) {
    EXPECT_EQ(e.at, 300_ns);
    EXPECT_EQ(e.unit, 5u);
    EXPECT_EQ(e.what, 9u);
    EXPECT_EQ(e.argument, 1u);
    EXPECT_TRUE(links.woken(1, e.at));
    EXPECT_FALSE(links.woken(1, e.at));
    ++woken;
  });
  EXPECT_EQ(woken, 1);
}

// The endpoint takes in reads faster than writes: two streams of credits of one lane.
TEST(LinkBank, AStreamOfCreditsDoesNotWaitForTheOther) {
  sim::EventQueue queue(1);
  LinkBank links(queue, 5, 9, 1, 2, RetryTimes{});
  links.connect(0, Clock(Bytes{20}, 28_GBps), 100_ns, 8);
  ASSERT_TRUE(links.take_credits(0, 0, 8, 0_ns));
  links.await_credits(0, 0);
  links.return_credits(0, 0, 5, 500_ns, 1);
  links.return_credits(0, 0, 3, 300_ns, 0);
  std::vector<Time> woken;
  queue.run_until(1_us, [&](const sim::Event& e) {
    if (!links.woken(0, e.at)) return;
    woken.push_back(e.at);
    const bool all = links.take_credits(0, 0, 8, e.at);
    EXPECT_EQ(all, e.at == 500_ns);
    EXPECT_EQ(links.credits(0, 0, e.at), all ? 0 : 3);
    if (!all) links.await_credits(0, 0);
  });
  EXPECT_EQ(woken, (std::vector<Time>{300_ns, 500_ns}));
}

TEST(LinkBank, KeepsAnyNumberOfCreditsOnTheirWay) {
  sim::EventQueue queue(1);
  LinkBank links(queue, 0, 0, 1, 2, RetryTimes{});
  constexpr int kCells = 300;
  links.connect(0, Clock(Bytes{20}, 28_GBps), 100_ns, kCells);
  for (int turn = 0; turn < 500; ++turn) {
    const Time now = 1_us * turn;
    ASSERT_TRUE(links.take_credits(0, 0, kCells, now)) << turn;
    for (int cell = 0; cell < kCells; ++cell) links.return_credits(0, 0, 1, now + 1_ns * (cell + 1));
    ASSERT_EQ(links.credits(0, 0, now + 150_ns), 150) << turn;
  }
}

TEST(LateEvents, ComeAfterAllOthersOfTheirTimeByKey) {
  sim::EventQueue queue(7);
  sim::EventQueue other(900'000);
  queue.push_late(5_ns, 2, 0, 3);
  queue.push_late(5_ns, 1, 0, 2);
  queue.push_from(other, 5_ns, 0, 1);
  queue.push(5_ns, 0, 0);
  queue.push(Time{5001}, 0, 4);
  std::vector<std::uint32_t> order;
  queue.run_until(1_us, [&](const sim::Event& e) {
    order.push_back(e.what);
    if (e.what == 0) queue.push(5_ns, 0, 10);  // of the same time, from a handler
  });
  EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 10, 1, 2, 3, 4}));
}

TEST(VirtualOutputQueues, RoundRobinOverInputsAndLanes) {
  VirtualOutputQueues waiting(2, 4, 36);
  for (PacketIndex i = 0; i < 3; ++i) {
    for (const unsigned input : {0u, 7u, 35u}) waiting.push(1, 2, input, hop(input * 10 + i, 8, 2));
  }
  EXPECT_EQ(waiting.lanes_waiting(0), 0u);
  EXPECT_EQ(waiting.lanes_waiting(1), 4u);
  EXPECT_EQ(waiting.queued_cells(1), 9);
  std::vector<PacketIndex> order;
  while (waiting.lanes_waiting(1) != 0) {
    const unsigned lane = waiting.next_lane(1, waiting.lanes_waiting(1));
    const unsigned input = waiting.next_input(1, lane);
    order.push_back(waiting.front(1, lane, input).packet());
    waiting.pop(1, lane, input);
  }
  EXPECT_EQ(order, (std::vector<PacketIndex>{0, 70, 350, 1, 71, 351, 2, 72, 352}));
  EXPECT_EQ(waiting.queued_cells(1), 0);
  for (const unsigned lane : {0u, 3u, 0u, 3u}) waiting.push(1, lane, 4, hop(lane, 1, lane));
  std::vector<unsigned> lanes;
  while (waiting.lanes_waiting(1) != 0) {
    lanes.push_back(waiting.next_lane(1, waiting.lanes_waiting(1)));
    waiting.pop(1, lanes.back(), 4);
  }
  EXPECT_EQ(lanes, (std::vector<unsigned>{3, 0, 3, 0}));
}

// As the narrow ones, over several words of requests: 64 and 130 are the first of theirs.
TEST(VirtualOutputQueues, RoundRobinOverManyInputs) {
  VirtualOutputQueues waiting(1, 2, 200);
  for (PacketIndex i = 0; i < 2; ++i) {
    for (const unsigned input : {3u, 64u, 66u, 130u, 199u})
      waiting.push(0, 1, input, hop(input * 10 + i, 8, 0));
  }
  std::vector<PacketIndex> order;
  while (waiting.lanes_waiting(0) != 0) {
    const unsigned input = waiting.next_input(0, 1);
    order.push_back(waiting.front(0, 1, input).packet());
    waiting.pop(0, 1, input);
  }
  EXPECT_EQ(order, (std::vector<PacketIndex>{30, 640, 660, 1300, 1990, 31, 641, 661, 1301, 1991}));
  waiting.push(0, 0, 63, hop(1, 1, 0));
  EXPECT_EQ(waiting.next_input(0, 0), 63u);
}

// A B A C A: the oldest stays, since it was used again; in the order of their coming it would have gone.
TEST(TranslationCache, TheLeastRecentlyUsedOfASetGoes) {
  hw::UbTranslation p = machine().ub.translation;
  p.entries = p.ways = 2;
  TranslationCache cache(p);
  const auto use = [&](std::uint64_t key) {
    const bool hit = cache.lookup(key);
    if (!hit) cache.insert(key);
    return hit;
  };
  EXPECT_FALSE(use('A'));
  EXPECT_FALSE(use('B'));
  EXPECT_TRUE(use('A'));
  EXPECT_FALSE(use('C'));  // in the place of B
  EXPECT_TRUE(use('A'));
  EXPECT_FALSE(use('B'));
  EXPECT_EQ(cache.hits(), 2u);
  EXPECT_EQ(cache.misses(), 4u);
}

// An output that is to wake up at the moment at which a packet comes arbitrates after all that come then.
TEST(OutputStage, AnArrivalDoesNotGoBeforeTheArbiterOfItsMoment) {
  sim::EventQueue queue(1);
  LinkBank links(queue, 0, 0, 1, 2, RetryTimes{});
  links.connect(0, Clock(Bytes{20}, 28_GBps), 100_ns, 64);
  VirtualOutputQueues waiting(1, 2, 4);
  std::vector<PacketIndex> sent;
  const auto send = [&](unsigned, unsigned, unsigned, Hop h) {
    sent.push_back(h.packet());
    links.transmit(0, h, queue.now());
  };
  // On lane 0 one goes out, one stands before the wire, one waits for its place.
  queue.push(0_ns, 0, 1, 1);
  queue.push(0_ns, 0, 1, 2);
  queue.push(0_ns, 0, 1, 3);
  const Time second = Clock(Bytes{20}, 28_GBps).start(28);
  queue.push(second, 1, 1, 4);  // on lane 1, at the moment at which the output wakes up for the third
  queue.run_until(1_us, [&](const sim::Event& e) {
    if (e.what == 1) {
      offer(links, waiting, 0, e.unit, e.unit, hop(static_cast<PacketIndex>(e.argument), 28, e.unit), e.at,
            send);
    } else if (links.woken(0, e.at)) {
      serve(links, waiting, 0, e.at, send);
    }
  });
  // The turn is lane 0's: 4 finds an idle output, and all the same waits for the arbiter.
  EXPECT_EQ(sent, (std::vector<PacketIndex>{1, 2, 3, 4}));
}

// Accesses of one moment follow each other on the data bus; the latency is each one's own.
TEST(SocketDram, AccessesShareOneBus) {
  hw::CpuSocket p = machine().cpu;
  p.memory_bandwidth = 100_GBps;  // 512 B in 5.12 ns
  SocketDram dram(p);
  for (int n = 0; n < 4; ++n)
    EXPECT_EQ(dram.access(n % 2 == 1, 512, 1_us),
              1_us + Time{5120} * n + (n % 2 == 1 ? p.memory_write_latency : p.memory_read_latency));
  EXPECT_EQ(dram.access(false, 512, 2_us), 2_us + p.memory_read_latency);
  EXPECT_EQ(dram.accesses(), 5u);
  EXPECT_EQ(dram.bytes(), 5u * 512);
}

TEST(Check, RefusesWhatDoesNotFitTogether) {
  const auto refusal = [](const char* value) -> std::string {
    try {
      check(machine({value}));
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(refusal("ub.link.lanes=3").find("ub.link.lanes"), std::string::npos);
  EXPECT_NE(refusal("ub.translation.page=3MiB").find("ub.translation.page"), std::string::npos);
  EXPECT_NE(refusal("ub.translation.entries=100").find("ub.translation.entries"), std::string::npos);
  EXPECT_EQ(refusal("ub.link.lanes=4"), "");
  EXPECT_THROW(routing_policy("random"), InputError);
}

}  // namespace
}  // namespace cm384::ub::parts_test
