// Switch chips: lanes do not block each other, requests never block responses, routing spreads as its policy
// says, and another model can take a chip's place.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <set>

#include "firmware/abi/memory_map.h"
#include "testbenches/ub_fabric/fabric_bench.h"

namespace cm384::ub::switch_test {
namespace {

using namespace cm384::literals;
using sim::Operation;

// Worst latency of reads by `lane` while others' writes on lane 0 pile up before a slow target.
Time worst_read(const std::vector<std::string>& overrides, unsigned lane, bool blocked) {
  const Parameters p = machine(overrides);
  FabricBench bench(p, {0, 16, 32, 48, 64});
  if (blocked) {
    for (const unsigned d : {32u, 48u, 64u}) {
      bench.at(d).stream(Operation::write, 512, 3'000, 500,
                         [](std::uint64_t i) { return cm384_gm_die(16, i % 512 * 512); });
    }
  }
  for (std::uint32_t i = 0; i < 100; ++i) {
    bench.at(0).request(20_us + Time{100'000} * i, Operation::read, cm384_gm_die(16, 0), 512, i, lane);
  }
  bench.run();
  Time worst{};
  for (const auto& d : bench.at(0).done) {
    if (d.tag > 50) worst = std::max(worst, d.at - (20_us + Time{100'000} * d.tag));
  }
  return worst;
}

TEST(Lanes, AreIsolated) {
  const std::vector<std::string> slow = {"ub.link.lanes=4", "ub.controller.target_write_interval=40ns"};
  const Time clear = worst_read(slow, 1, false);
  const Time apart = worst_read(slow, 1, true);
  const Time together = worst_read(slow, 0, true);
  // On its own lane a read waits at most for packets on the wire, of each lane in turn, at a few links.
  EXPECT_LT(apart, clear + 150_ns);
  EXPECT_GT(together, clear + 2_us);
}

// Two dies write to each other, `depth` requests at a time, while each is a slow target. The longest time
// from a write's service to the arrival of its acknowledgement.
Time worst_acknowledgement(std::uint64_t count, std::uint64_t depth) {
  const Parameters p = machine(
      {"ub.link.buffer_cells=4", "ub.controller.target_write_interval=20ns", "topology.sub_planes=1"});
  FabricBench bench(p, {0, 16});
  for (const unsigned d : {0u, 16u}) {
    bench.at(d).stream(Operation::write, 512, count, depth,
                       [d](std::uint64_t i) { return cm384_gm_die(16 - d, i % 512 * 512); });
  }
  bench.run();
  Time worst{};
  for (const unsigned d : {0u, 16u}) {
    EXPECT_EQ(bench.at(d).completions, count);
    std::vector<Time> served(count);
    for (const auto& a : bench.at(16 - d).accesses) served.at(a.request.tag) = a.request.at;
    for (const auto& done : bench.at(d).done) worst = std::max(worst, done.at - served.at(done.tag));
  }
  return worst;
}

// A response waits for the packets on the wire at each of its four links, 20 ns each, but for no request's
// credits, which take a loop of hundreds of nanoseconds at each.
TEST(Lanes, ResponsesPassBlockedRequests) {
  const Time clear = worst_acknowledgement(1, 1);
  EXPECT_LE(worst_acknowledgement(5'000, 1'000), clear + 100_ns);
}

// Packets of each uplink of node 0 in plane 0, one die writing to one die of another node.
std::vector<std::uint64_t> uplink_packets(const std::string& policy) {
  const Parameters p = machine({"ub.switch.routing=" + policy});
  FabricBench bench(p, {0, 16});
  bench.at(0).stream(Operation::write, 512, 7'000, 500,
                     [](std::uint64_t i) { return cm384_gm_die(16, i % 512 * 512); });
  bench.run();
  std::vector<std::uint64_t> packets;
  for (unsigned l2 = 0; l2 < 16; ++l2) {
    packets.push_back(bench.plane(0).links().counters(link_up(bench.plane(0), 0, l2)).packets);
  }
  return packets;
}

TEST(Routing, SprayIsEven) {
  const auto packets = uplink_packets("spray");
  for (const std::uint64_t n : packets) {
    EXPECT_GE(n, 58u);
    EXPECT_LE(n, 67u);
  }
}

TEST(Routing, FlowUsesOneUplink) {
  const auto packets = uplink_packets("flow");
  EXPECT_EQ(std::count_if(packets.begin(), packets.end(), [](std::uint64_t n) { return n != 0; }), 1);
}

TEST(Routing, AdaptiveUsesAll) {
  for (const std::uint64_t n : uplink_packets("adaptive")) EXPECT_GT(n, 30u);
}

// Of uplinks that are alike the next in turn: packets that never meet use all of them.
TEST(Routing, AdaptiveTakesEqualsInTurn) {
  const Parameters p = machine({"topology.sub_planes=1", "ub.switch.routing=adaptive"});
  FabricBench bench(p, {0, 16});
  for (std::uint32_t i = 0; i < 48; ++i)
    bench.at(0).request(5_us * i, Operation::write, cm384_gm_die(16, 0), 64, i);
  bench.run();
  for (unsigned l2 = 0; l2 < 16; ++l2)
    EXPECT_EQ(bench.plane(0).links().counters(link_up(bench.plane(0), 0, l2)).packets, 3u) << l2;
}

// With one uplink losing every second packet, adaptive routing goes round it.
TEST(Routing, AdaptiveAvoidsADamagedUplink) {
  class AlwaysFaulty final : public LinkFault {
   public:
    Damage strike(Hop, Time start) override {
      // Every second transmission fails.
      return (++count_ & 1) && start < 1_ms ? Damage::lost : Damage::none;
    }

   private:
    std::uint64_t count_ = 0;
  };
  std::map<std::string, std::uint64_t> on_bad;
  for (const char* policy : {"spray", "adaptive"}) {
    const Parameters p = machine({std::string("ub.switch.routing=") + policy, "ub.link.retry_timeout=1us"});
    FabricBench bench(p, {0, 16});
    AlwaysFaulty fault;
    bench.plane(0).attach_fault(link_up(bench.plane(0), 0, 3), &fault);
    bench.at(0).stream(Operation::write, 512, 60'000, 500,
                       [](std::uint64_t i) { return cm384_gm_die(16, i % 512 * 512); });
    bench.run();
    EXPECT_EQ(bench.at(0).completions, 60'000u);
    on_bad[policy] = bench.plane(0).links().counters(link_up(bench.plane(0), 0, 3)).packets;
  }
  EXPECT_LT(on_bad["adaptive"] * 3, on_bad["spray"] * 2);
}

// Ports whose queues are alike: the one whose wire is free first, then the one whose turn it is.
TEST(Spreading, LeastLoadedBreaksATieByTheWireThenByTheTurn) {
  const Parameters p = machine({"topology.sub_planes=3", "ub.controller.spreading=least-loaded",
                                "ub.controller.write_interval=0ps", "ub.controller.write_outstanding=64"});
  FabricBench bench(p, {0, 17});
  const auto packets = [&] {
    std::vector<std::uint64_t> sent;
    for (unsigned port = 0; port < 3; ++port)
      sent.push_back(bench.at(0).controller.ports().counters(port).packets);
    return sent;
  };
  const auto write = [&](Time at, std::uint32_t bytes) {
    bench.at(0).request(at, Operation::write, cm384_gm_die(17, 0), bytes, 0);
  };
  bench.at(0).request(0_ns, Operation::read, cm384_gm_die(17, 0), 32,
                      0);    // port 0; fills the translation cache
  write(10_us, 512);         // port 1, for 20 ns
  write(10_us + 1_ns, 512);  // port 2, for 20 ns
  write(10_us + 2_ns, 1);    // port 0, for 2 ns
  write(10_us + 9_ns, 512);  // it would be port 1's turn, but 0 is free
  bench.run(15_us);
  EXPECT_EQ(packets(), (std::vector<std::uint64_t>{3, 1, 1}));
  write(20_us, 512);         // all are free: the turn is 1's
  write(20_us + 1_ns, 512);  // 2
  write(20_us + 2_ns, 512);  // 0
  write(20_us + 3_ns, 512);  // all send: 1 ends first
  bench.run();
  EXPECT_EQ(packets(), (std::vector<std::uint64_t>{4, 3, 2}));
}

// A foreign chip: one first-in first-out list an output, a pipeline of its own.
class FifoChip final : public SwitchChip {
 public:
  explicit FifoChip(Time pipeline) : pipeline_(pipeline) {}

  void arrived(ChipHost& host, unsigned port, Hop hop) override {
    const unsigned output = host.route(port, hop);
    queues_[output].push_back({port, hop, host.now() + pipeline_});
    if (queues_[output].size() == 1) host.wake_at(output, host.now() + pipeline_);
    ++packets;
  }
  void woken(ChipHost& host, unsigned output) override {
    auto& queue = queues_[output];
    if (queue.empty()) return;
    const Time ready = std::max(queue.front().ready, host.free_at(output));
    if (ready > host.now()) {
      host.wake_at(output, ready);
    } else if (host.take_credits(output, queue.front().hop)) {
      host.send(queue.front().port, output, queue.front().hop);
      queue.pop_front();
      if (!queue.empty()) host.wake_at(output, std::max(queue.front().ready, host.free_at(output)));
    } else {
      host.await_credits(output, queue.front().hop.lane());
    }
  }
  std::uint64_t packets = 0;

 private:
  struct Waiting {
    unsigned port;
    Hop hop;
    Time ready;
  };
  Time pipeline_;
  std::array<std::deque<Waiting>, 64> queues_;
};

TEST(ForeignChip, TakesTheBuiltInsPlace) {
  const Parameters p = machine({"ub.controller.spreading=flow", "ub.switch.routing=flow"});
  std::vector<std::vector<Time>> times;
  for (const bool foreign : {false, true}) {
    FabricBench bench(p, {0, 1, 16, 17});
    std::vector<std::unique_ptr<FifoChip>> chips;
    if (foreign) {
      for (unsigned plane = 0; plane < bench.planes(); ++plane) {
        for (const unsigned chip : {0u, 1u, 50u}) {  // both nodes' L1 chips and an L2 chip
          chips.push_back(std::make_unique<FifoChip>(p.ub.switch_chip.pipeline_latency));
          bench.plane(plane).install(chip, chips.back().get());
        }
      }
    }
    // Far enough apart that no two packets meet.
    for (std::uint32_t i = 0; i < 200; ++i) {
      const std::uint64_t to = std::array<std::uint64_t, 3>{1, 16, 17}[i % 3];
      bench.at(0).request(Time{3'000'000} * i, i % 2 ? Operation::read : Operation::write,
                          cm384_gm_die(to, 0) | CM384_GM_VIA_UB_BIT, 512, i, 0, i % 40);
    }
    bench.run();
    times.emplace_back();
    for (const auto& d : bench.at(0).done) times.back().push_back(d.at);
    if (foreign) {
      std::uint64_t packets = 0;
      for (const auto& chip : chips) packets += chip->packets;
      EXPECT_GT(packets, 500u);
    }
  }
  ASSERT_EQ(times[0].size(), 200u);
  EXPECT_EQ(times[0], times[1]);
}

TEST(ForeignChip, CarriesLoadBesideBuiltInOnes) {
  const Parameters p = machine({"ub.link.buffer_cells=16"});
  FabricBench bench(p, {0, 2, 16, 18});
  FifoChip chip(p.ub.switch_chip.pipeline_latency);
  bench.plane(0).install(0, &chip);
  for (const unsigned d : {0u, 2u}) {
    bench.at(d).stream(Operation::write, 512, 4'000, 300,
                       [](std::uint64_t i) { return cm384_gm_die(16 + i % 2 * 2, i % 512 * 512); });
  }
  bench.run();
  EXPECT_EQ(bench.at(0).completions, 4'000u);
  EXPECT_EQ(bench.at(2).completions, 4'000u);
  EXPECT_GT(chip.packets, 1'000u);
}

}  // namespace
}  // namespace cm384::ub::switch_test
