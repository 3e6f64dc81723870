// Injected faults: retried in order, delivered once, at the cost that closed form gives.
#include <gtest/gtest.h>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "testbenches/ub_fabric/fabric_bench.h"

namespace cm384::ub::fault_test {
namespace {

using namespace cm384::literals;
using sim::Operation;

Time write_latency(const std::vector<std::string>& overrides, LinkFault* fault) {
  const Parameters p = machine(overrides);
  FabricBench bench(p, {0, 5});
  bench.at(0).request(0_ns, Operation::read, cm384_gm_die(5, 0), 32, 1);
  bench.at(0).request(10_us, Operation::write, cm384_gm_die(5, 0), 512, 2);
  if (fault != nullptr) {
    for (unsigned port = 0; port < bench.planes(); ++port) {
      bench.plane(port).attach_fault(bench.plane(port).link_to_endpoint(5), fault);
    }
  }
  bench.run();
  return bench.at(0).done.at(1).at - 10_us;
}

TEST(Fault, CostsOneRoundTripAndTheRetransmission) {
  const Parameters p = machine();
  const Time clear = write_latency({}, nullptr);
  // The write passes the chip's output at 10.2 us; it is damaged once.
  TimedFault corrupted(10_us, 10_us + 300_ns, Damage::corrupted);
  const Time once = write_latency({}, &corrupted);
  EXPECT_EQ(corrupted.strikes(), 1u);
  const Time retry = Time{20'000} + p.ub.link.endpoint_latency * 2 + p.ub.link.retry_turnaround;
  EXPECT_NEAR(static_cast<double>((once - clear).ps), static_cast<double>(retry.ps), 1500.0);
  TimedFault lost(10_us, 10_us + 300_ns, Damage::lost);
  const Time timeout = Time{20'000} + p.ub.link.endpoint_latency * 2 + p.ub.link.retry_timeout;
  EXPECT_NEAR(static_cast<double>((write_latency({}, &lost) - clear).ps), static_cast<double>(timeout.ps),
              1500.0);
  TimedFault slower(10_us, 10_us + 300_ns, Damage::corrupted);
  EXPECT_NEAR(static_cast<double>((write_latency({"ub.link.retry_turnaround=200ns"}, &slower) - once).ps),
              static_cast<double>((200_ns - p.ub.link.retry_turnaround).ps), 1500.0);
  TimedFault longer(10_us, 10_us + 300_ns, Damage::lost);
  EXPECT_GT(write_latency({"ub.link.retry_timeout=20us"}, &longer), clear + 20_us);
  TimedFault twice(10_us, 10_us + 600_ns, Damage::corrupted);
  EXPECT_NEAR(static_cast<double>((write_latency({}, &twice) - clear).ps), static_cast<double>(retry.ps * 2),
              3000.0);
}

TEST(Fault, EverythingArrivesOnceAndInOrder) {
  const Parameters p = machine({"ub.switch.routing=flow", "ub.controller.spreading=flow"});
  FabricBench bench(p, {0, 2, 16});
  std::vector<std::unique_ptr<RandomFault>> faults;
  for (unsigned plane = 0; plane < bench.planes(); ++plane) {
    for (unsigned l2 = 0; l2 < 16; ++l2) {
      faults.push_back(std::make_unique<RandomFault>(0.05, Damage::corrupted, plane * 100 + l2));
      bench.plane(plane).attach_fault(link_up(bench.plane(plane), 0, l2), faults.back().get());
    }
    faults.push_back(std::make_unique<RandomFault>(0.02, Damage::lost, plane));
    bench.at(0).controller.ports().attach_fault(plane, faults.back().get());
  }
  for (const unsigned d : {0u, 2u}) {
    for (std::uint32_t i = 0; i < 3'000; ++i) {
      bench.at(d).request(Time{4'000} * i, Operation::write, cm384_gm_die(16, 0), 512, d * 10'000 + i, 0, 3);
    }
  }
  bench.run();
  ASSERT_EQ(bench.at(16).accesses.size(), 6'000u);
  std::uint32_t next[2] = {0, 20'000};
  for (const auto& a : bench.at(16).accesses) ASSERT_EQ(a.request.tag, next[a.request.tag / 20'000]++);
  EXPECT_EQ(bench.at(0).completions, 3'000u);
  EXPECT_EQ(bench.at(2).completions, 3'000u);
  std::uint64_t strikes = 0;
  for (const auto& fault : faults) strikes += fault->strikes();
  std::uint64_t retransmissions = 0;
  for (unsigned plane = 0; plane < bench.planes(); ++plane) {
    retransmissions += bench.at(0).controller.ports().counters(plane).retransmissions;
    for (unsigned l2 = 0; l2 < 16; ++l2) {
      retransmissions +=
          bench.plane(plane).links().counters(link_up(bench.plane(plane), 0, l2)).retransmissions;
    }
  }
  EXPECT_GT(strikes, 250u);
  EXPECT_EQ(strikes, retransmissions);
  EXPECT_EQ(bench.packets.in_use(), 0u);
}

TEST(Fault, ATimedOneStrikesFromItsBeginAndNotAtItsEnd) {
  TimedFault fault(10_ns, 20_ns, Damage::lost);
  EXPECT_EQ(fault.strike(Hop{}, 10_ns - 1_ps), Damage::none);
  EXPECT_EQ(fault.strike(Hop{}, 10_ns), Damage::lost);
  EXPECT_EQ(fault.strike(Hop{}, 20_ns - 1_ps), Damage::lost);
  EXPECT_EQ(fault.strike(Hop{}, 20_ns), Damage::none);
  EXPECT_EQ(fault.strikes(), 2u);
}

TEST(Fault, RateIsTheOneAskedFor) {
  RandomFault fault(0.1, Damage::corrupted, 42);
  for (int i = 0; i < 100'000; ++i) fault.strike(Hop{}, Time{});
  EXPECT_NEAR(static_cast<double>(fault.strikes()), 10'000.0, 300.0);
  RandomFault never(0.0, Damage::corrupted, 42);
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(never.strike(Hop{}, Time{}), Damage::none);
}

// Bit errors hit long packets more often: 1 - (1 - e)^(160 bits x flits).
TEST(Fault, BitErrorsStrikeByTheSizeOfThePacket) {
  const auto struck = [](double rate, std::uint16_t flits) {
    Packet packet{};
    packet.flits = static_cast<decltype(packet.flits)>(flits);
    RandomFault fault = RandomFault::of_bits(rate, Damage::corrupted, 7);
    for (int i = 0; i < 100'000; ++i) fault.strike(Hop(0, packet), Time{});
    return static_cast<double>(fault.strikes());
  };
  EXPECT_NEAR(struck(1e-4, 1), 1'587.0, 160.0);
  EXPECT_NEAR(struck(1e-4, 2), 3'149.0, 220.0);
  EXPECT_NEAR(struck(1e-4, 28), 36'110.0, 600.0);
  EXPECT_EQ(struck(0, 28), 0.0);
}

TEST(Fault, ADeadLinkIsReported) {
  RandomFault always(1.0, Damage::corrupted, 1);
  EXPECT_THROW(write_latency({}, &always), MachineError);
}

// An observer sees each packet and changes nothing.
TEST(Observer, SeesEveryPacket) {
  class Counter final : public LinkObserver {
   public:
    void sent(Hop hop, Time start, Time tail, int free_cells) override {
      ++packets;
      flits += hop.flits();
      EXPECT_GT(tail, start);
      EXPECT_GE(free_cells, 0);
      fewest = std::min(fewest, free_cells);
    }
    std::uint64_t packets = 0;
    std::uint64_t flits = 0;
    int fewest = 1 << 20;
  };
  const Parameters p = machine();
  std::vector<Time> ends;
  for (const bool watched : {false, true}) {
    FabricBench bench(p, {0, 5});
    Counter counter;
    const unsigned link = bench.plane(2).link_to_endpoint(5);
    if (watched) bench.plane(2).attach_observer(link, &counter);
    bench.at(0).stream(Operation::write, 512, 5'000, 500,
                       [](std::uint64_t i) { return cm384_gm_die(5, i % 512 * 512); });
    bench.run();
    ends.push_back(bench.at(0).last_done);
    const LinkCounters counted = bench.plane(2).links().counters(link);
    EXPECT_EQ(counted.flits, counted.packets * 28);
    EXPECT_EQ(bench.plane(2).links().busy(link),
              Clock(Bytes{20}, 28_GBps).start(static_cast<std::int64_t>(counted.flits)));
    if (watched) {
      EXPECT_EQ(counter.packets, counted.packets);
      EXPECT_EQ(counter.flits, counted.flits);
      EXPECT_LT(counter.fewest, p.ub.link.buffer_cells - 20);
    }
  }
  EXPECT_EQ(ends[0], ends[1]);
}

}  // namespace
}  // namespace cm384::ub::fault_test
