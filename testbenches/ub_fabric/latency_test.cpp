// Unloaded latencies against the sum of their stages, to the picosecond.
#include <gtest/gtest.h>

#include "firmware/abi/memory_map.h"
#include "testbenches/ub_fabric/fabric_bench.h"
#include "ub_fabric/wire_format.h"

namespace cm384::ub::latency_test {
namespace {

using namespace cm384::literals;
using sim::Operation;

constexpr Time kRead = 350_ns;
constexpr Time kWrite = 150_ns;

// One packet's way, stage by stage.
class Path {
 public:
  Path(const Parameters& p, bool inter, bool from_socket, bool to_socket)
      : p_(p), inter_(inter), from_socket_(from_socket), to_socket_(to_socket) {}

  // Last flit at the destination's port.
  Time end(Time start, int flits) const {
    const Clock die(Bytes{20}, 28_GBps);
    const Clock socket(Bytes{140}, 160_GBps);
    const Clock& first = from_socket_ ? socket : die;
    const Clock& last = to_socket_ ? socket : die;
    const Time pipeline = p_.ub.switch_chip.pipeline_latency;
    const Time wire = p_.ub.link.endpoint_latency;
    std::int64_t tick = first.tick_at_or_after(start);
    // A chip may send so early that the slow link's flits never run out.
    Time head = first.start(tick);
    const Time slow_tail = first.start(tick + flits);
    if (from_socket_) head = std::max(head, slow_tail - die.start(flits));
    head += wire + pipeline;
    for (int k = 0; k < (inter_ ? 2 : 0); ++k) {
      head = die.start(die.tick_at_or_after(head)) + p_.ub.link.trunk_latency + pipeline;
    }
    tick = last.tick_at_or_after(head);
    return last.start(tick + flits) + wire;
  }

 private:
  const Parameters& p_;
  bool inter_, from_socket_, to_socket_;
};

struct Case {
  const char* name;
  Operation operation;
  bool inter, socket;
  int request_flits, response_flits;
};

class Unloaded : public ::testing::TestWithParam<Case> {};

TEST_P(Unloaded, IsTheSumOfItsStages) {
  const Case& c = GetParam();
  const Parameters p = machine();
  const unsigned socket = static_cast<unsigned>(p.topology.socket_endpoint(c.inter ? 5 : 1));
  const unsigned die = c.inter ? 17 : 5;
  const unsigned target = c.socket ? socket : die;
  FabricBench bench(p, {0, target});
  bench.at(target).read_latency = kRead;
  bench.at(target).write_latency = kWrite;
  const std::uint64_t address = c.socket ? cm384_gm_cpu(c.inter ? 5 : 1, 0x1000) : cm384_gm_die(die, 0x1000);
  bench.at(0).request(0_ns, Operation::read, address, 32, 1);  // fills the translation cache
  const Time at{10'000'123};
  bench.at(0).request(at, c.operation, address, 512, 2);
  bench.run();
  ASSERT_EQ(bench.at(0).done.size(), 2u);

  const hw::UbController& inbound = c.socket ? p.cpu.controller : p.ub.controller;
  const bool read = c.operation == Operation::read;
  Time t = Path(p, c.inter, false, c.socket).end(at, c.request_flits);
  t += read ? inbound.read_inbound_latency : inbound.write_inbound_latency;
  EXPECT_EQ(bench.at(target).accesses[1].request.at.ps, t.ps);
  t += read ? kRead : kWrite;
  t = Path(p, c.inter, c.socket, false).end(t, c.response_flits) + p.ub.controller.completion_latency;
  EXPECT_EQ(bench.at(0).done[1].at.ps, t.ps);
  // Beside the stages there is at most a flit's wait at each link.
  const Time wires = (p.ub.link.endpoint_latency * 2 + p.ub.switch_chip.pipeline_latency) * 2 +
                     (c.inter ? (p.ub.link.trunk_latency + p.ub.switch_chip.pipeline_latency) * 4 : Time{});
  EXPECT_GT(t - at, wires);
  EXPECT_LT(t - at, wires + 350_ns + 450_ns + 35_ns + 8_ns);
  // Request and response each cross 2 or 4 links, twice with the first request.
  EXPECT_EQ(bench.packet_hops(), c.inter ? 16u : 8u);
}

INSTANTIATE_TEST_SUITE_P(Paths, Unloaded,
                         ::testing::Values(Case{"ReadIntra", Operation::read, false, false, 2, 27},
                                           Case{"ReadInter", Operation::read, true, false, 2, 27},
                                           Case{"WriteIntra", Operation::write, false, false, 28, 1},
                                           Case{"WriteInter", Operation::write, true, false, 28, 1},
                                           Case{"AtomicInter", Operation::atomic_add_s32, true, false, 28, 1},
                                           Case{"ReadSocketIntra", Operation::read, false, true, 2, 27},
                                           Case{"ReadSocketInter", Operation::read, true, true, 2, 27},
                                           Case{"WriteSocketIntra", Operation::write, false, true, 28, 1},
                                           Case{"WriteSocketInter", Operation::write, true, true, 28, 1}),
                         [](const auto& test) { return std::string(test.param.name); });

Time latency(const std::vector<std::string>& overrides, Operation operation = Operation::write) {
  const Parameters p = machine(overrides);
  FabricBench bench(p, {0, 17});
  bench.at(0).request(0_ns, Operation::read, cm384_gm_die(17, 0), 32, 1);
  bench.at(0).request(10_us, operation, cm384_gm_die(17, 0), 512, 2);
  bench.run();
  return bench.at(0).done.at(1).at - 10_us;
}

// Each latency of the way moves the sum by as many times as it is passed, give or take a flit at each link.
TEST(LatencyKnobs, MoveTheSum) {
  const Time base = latency({});
  const auto moves = [&](const char* key, Time by, int times) {
    const Time moved = latency({key});
    EXPECT_NEAR(static_cast<double>((moved - base).ps), static_cast<double>((by * times).ps), 6000.0) << key;
  };
  const Parameters p = machine({});
  const auto longer = [&](const std::string& key, Time value, int times) {
    moves((key + "=" + std::to_string((value + 100_ns).ps) + "ps").c_str(), 100_ns, times);
  };
  longer("ub.link.endpoint_latency", p.ub.link.endpoint_latency, 4);
  longer("ub.link.trunk_latency", p.ub.link.trunk_latency, 4);
  longer("ub.switch.pipeline_latency", p.ub.switch_chip.pipeline_latency, 6);
  longer("ub.controller.write_inbound_latency", p.ub.controller.write_inbound_latency, 1);
  longer("ub.controller.completion_latency", p.ub.controller.completion_latency, 1);
  // A stored packet is sent anew at each chip: three times 28 flits and three times one.
  const Time flits = Time{20'000} * 3 + Time{714} * 3;
  moves("ub.switch.forwarding=packet-store", flits, 1);
  // Half the rate: a write's 28 flits and its acknowledgement's one take twice as long.
  moves("ub.link.bandwidth=14GB/s", Time{20'714}, 1);
  EXPECT_LT(latency({"ub.link.bandwidth=56GB/s"}), base);
  EXPECT_GT(latency({"ub.controller.read_inbound_latency=160ns"}, Operation::read),
            latency({}, Operation::read) + 99_ns);
}

// The first request to a page waits for its translation; requests behind it to the page share the walk.
TEST(Translation, MissIsOneWalkLong) {
  const Parameters p = machine();
  FabricBench bench(p, {0, 1, 17});
  const std::uint64_t page = 2u << 20;
  bench.at(0).request(0_ns, Operation::read, cm384_gm_die(17, 0), 512, 1);
  bench.at(0).request(200_ns, Operation::read, cm384_gm_die(17, 512), 512, 2);
  bench.at(0).request(10_us, Operation::read, cm384_gm_die(17, page - 512), 512, 3);
  bench.at(0).request(20_us, Operation::read, cm384_gm_die(17, page), 512, 4);
  bench.run();
  const auto& done = bench.at(0).done;
  ASSERT_EQ(done.size(), 4u);
  const Time hit = done[2].at - 10_us;
  const Time walk = p.ub.translation.miss_latency;
  EXPECT_NEAR(done[0].at.ns(), (hit + walk).ns(), 5.0);
  EXPECT_NEAR(done[1].at.ns(), (hit + walk).ns(), 5.0);
  EXPECT_NEAR((done[3].at - 20_us).ns(), (hit + walk).ns(), 5.0);
  EXPECT_EQ(bench.at(0).controller.counters().translation_misses, 2u);
}

TEST(Translation, WalksAreBounded) {
  const Parameters p = machine({"ub.translation.walks=2", "ub.controller.read_interval=0ps"});
  FabricBench bench(p, {0, 17});
  for (std::uint32_t i = 0; i < 6; ++i) {
    bench.at(0).request(0_ns, Operation::read, cm384_gm_die(17, std::uint64_t{i} << 21), 512, i);
  }
  bench.run();
  const auto& done = bench.at(0).done;
  ASSERT_EQ(done.size(), 6u);
  for (std::uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(done[i].tag, i);
    const Time later = p.ub.translation.miss_latency * static_cast<std::int64_t>(i / 2);
    EXPECT_NEAR((done[i].at - done[0].at).ns(), later.ns(), 25.0) << i;
  }
}

TEST(Translation, EntriesAndWaysBoundWhatHits) {
  const auto misses = [](const std::vector<std::string>& overrides, std::uint64_t stride) {
    const Parameters p = machine(overrides);
    FabricBench bench(p, {0, 17});
    for (std::uint32_t i = 0; i < 64; ++i) {
      bench.at(0).request(Time{5'000'000} * i, Operation::read, cm384_gm_die(17, (i % 8) * stride), 512, i);
    }
    bench.run();
    return bench.at(0).controller.counters().translation_misses;
  };
  EXPECT_EQ(misses({}, 2u << 20), 8u);
  EXPECT_EQ(misses({}, 1u << 20), 4u);
  EXPECT_EQ(misses({"ub.translation.page=1MiB"}, 1u << 20), 8u);
  // Four entries in one set of a round of eight pages: least recently used always misses.
  EXPECT_EQ(misses({"ub.translation.entries=4", "ub.translation.ways=4"}, 2u << 20), 64u);
  EXPECT_EQ(misses({"ub.translation.entries=8", "ub.translation.ways=8"}, 2u << 20), 8u);
}

TEST(PackageLink, LatencyAndWay) {
  const Parameters p = machine();
  FabricBench bench(p, {0, 1});
  bench.at(1).read_latency = kRead;
  bench.at(0).request(0_ns, Operation::read, cm384_gm_die(1, 0), 512, 1);
  bench.run(20_us);
  ASSERT_EQ(bench.at(0).done.size(), 1u);
  // 32 B there, 544 B back at 270 GB/s.
  const Time ideal = p.package_link.latency * 2 + kRead + Time{(32 + 544) * 100 / 27};
  EXPECT_NEAR(static_cast<double>(bench.at(0).done[0].at.ps), static_cast<double>(ideal.ps), 6.0);
  EXPECT_EQ(bench.packet_hops(), 2u);
  EXPECT_EQ(bench.at(0).controller.counters().package_requests, 1u);
  // The same die by the other window goes over the fabric.
  bench.at(0).request(20_us, Operation::write, cm384_gm_die(1, 0) | CM384_GM_VIA_UB_BIT, 512, 2);
  bench.run();
  ASSERT_EQ(bench.at(0).done.size(), 2u);
  EXPECT_EQ(bench.packet_hops(), 6u);
  EXPECT_EQ(bench.at(1).accesses[1].request.address, 0u);
  EXPECT_GT(bench.at(0).done[1].at - 20_us, 1_us);
}

TEST(PackageLink, KnobsMoveIt) {
  const auto time = [](const std::vector<std::string>& overrides) {
    FabricBench bench(machine(overrides), {0, 1});
    bench.at(0).request(0_ns, Operation::write, cm384_gm_die(1, 0), 512, 1);
    bench.run();
    return bench.at(0).done.at(0).at;
  };
  EXPECT_EQ((time({"package_link.latency=250ns"}) - time({})).ps, 200'000);
  EXPECT_GT(time({"package_link.bandwidth=135GB/s"}), time({}) + 2_ns);
  EXPECT_GT(time({"package_link.header=128B"}), time({}));
}

}  // namespace
}  // namespace cm384::ub::latency_test
