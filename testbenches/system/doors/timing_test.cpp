// Round trips through doors against the sum of their stages, to the picosecond.
#include <array>
#include <optional>

#include "testbenches/system/doors/stand.h"

namespace cm384::doors::timing_test {
namespace {

// CPU sockets 0 and 1 are of one node, 40 of another.
constexpr Time kStart{10'000'123};

// One packet's way between two CPU sockets, stage by stage: when its last flit is at the other's port.
Time way(const hw::Machine& m, bool inter, Time start, int flits) {
  const Clock die(Bytes{20}, 28_GBps);
  const Clock socket(Bytes{140}, 160_GBps);
  const Time pipeline = m.ub.switch_chip.pipeline_latency;
  const Time wire = m.ub.link.endpoint_latency;
  const std::int64_t tick = socket.tick_at_or_after(start);
  Time head = socket.start(tick);
  // A chip may send so early that the slow link's flits never run out, at the rate of a die's link.
  head = std::max(head, socket.start(tick + flits) - die.start(flits));
  head += wire + pipeline;
  for (int k = 0; k < (inter ? 2 : 0); ++k)
    head = die.start(die.tick_at_or_after(head)) + m.ub.link.trunk_latency + pipeline;
  return socket.start(socket.tick_at_or_after(head) + flits) + wire;
}

// Of 512 B: 2 flits and 27 back, or 28 and 1.
Time round_trip(const hw::Machine& m, bool inter, bool write, Time latency, Time* at_target = nullptr) {
  const hw::UbController& c = m.cpu.controller;
  Time t = way(m, inter, kStart, write ? 28 : 2) + (write ? c.write_inbound_latency : c.read_inbound_latency);
  if (at_target != nullptr) *at_target = t;
  return way(m, inter, t + latency, write ? 1 : 27) + c.completion_latency;
}

// The first access fills the translation cache.
std::vector<Access> two(std::uint64_t address, bool write, Time annotated = {}) {
  return {{1_us, false, address, 32}, {kStart - annotated, write, address, 512, annotated}};
}

TEST(InitiatorDoor, RoundTripIsTheSumOfItsStages) {
  for (const bool write : {false, true}) {
    for (const bool inter : {false, true}) {
      for (const bool four_phases : {false, true}) {
        const int target = inter ? 40 : 1;
        Stand stand(taking_part({}, {target}));
        const std::uint64_t address = stand.doors.address(stand.doors.socket(target), 0x2000);
        Caller caller("caller", two(address, write, four_phases ? 300_ns : Time{}), four_phases);
        caller.socket.bind(stand.doors.open_initiator(stand.doors.socket(0)).socket);
        stand.machine.run_for(20_us);
        ASSERT_EQ(caller.finished, 2u);
        EXPECT_EQ(caller.script[1].status, tlm::TLM_OK_RESPONSE);
        const hw::CpuSocket& cpu = stand.parameters.cpu;
        const Time dram = write ? cpu.memory_write_latency : cpu.memory_read_latency;
        EXPECT_EQ(caller.script[1].done.ps, round_trip(stand.parameters, inter, write, dram).ps)
            << write << inter << four_phases;
      }
    }
  }
}

struct TargetCase {
  Way way;
  Time declared;
};

class Targets : public ::testing::TestWithParam<TargetCase> {};

TEST_P(Targets, RoundTripIsTheSumOfItsStages) {
  const TargetCase& c = GetParam();
  for (const bool write : {false, true}) {
    Stand stand(taking_part({}));
    Device device("device", c.way, 250_ns);
    const bool four_phases = c.way >= Way::four_phases;
    const int place = stand.doors.socket(40);
    stand.doors.open_target(place, {.latency = c.declared, .four_phases = four_phases})
        .socket.bind(device.socket);
    Caller caller("caller", two(stand.doors.address(place, 0x2000), write), false);
    caller.socket.bind(stand.doors.open_initiator(stand.doors.socket(0)).socket);
    stand.machine.run_for(20_us);
    ASSERT_EQ(caller.finished, 2u);
    Time at_target;
    EXPECT_EQ(caller.script[1].done.ps, round_trip(stand.parameters, true, write, 250_ns, &at_target).ps);
    EXPECT_EQ(device.asked.at(1).ps, at_target.ps);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, Targets,
                         ::testing::Values(TargetCase{Way::annotates, {}}, TargetCase{Way::annotates, 250_ns},
                                           TargetCase{Way::waits, {}}, TargetCase{Way::annotates_part, {}},
                                           TargetCase{Way::four_phases, {}},
                                           TargetCase{Way::four_phases_in_call, {}},
                                           TargetCase{Way::four_phases_in_call, 250_ns},
                                           TargetCase{Way::four_phases_annotated, {}}));

// Many at the same time: both kinds of calls leave and come back at the same times, whatever responses cost.
TEST(InitiatorDoor, BlockingAndFourPhasesAreEqual) {
  const auto times = [](bool four_phases) {
    Stand stand(taking_part({}, {1, 40}));
    std::vector<Access> script;
    for (std::uint64_t n = 0; n < 40; ++n) {
      const std::uint64_t to = stand.doors.address(stand.doors.socket(n % 3 == 0 ? 1 : 40), n * 8192);
      script.push_back({Time{5'000'000 + static_cast<std::int64_t>(n * n * 137)}, n % 2 == 0, to,
                        static_cast<std::uint32_t>(100 + 97 * n)});
    }
    Caller caller("caller", script, four_phases);
    caller.socket.bind(stand.doors.open_initiator(stand.doors.socket(0)).socket);
    stand.machine.run_for(100_us);
    EXPECT_EQ(caller.finished, script.size());
    std::vector<std::int64_t> done;
    for (const Access& a : caller.script) done.push_back(a.done.ps);
    return done;
  };
  EXPECT_EQ(times(false), times(true));
}

// 3,000 B from offset 1,000 are seven requests, from offset 1,024 six.
TEST(InitiatorDoor, CutsAtLinesOfMemory) {
  Stand stand(taking_part({}));
  Device device("device", Way::annotates, 10_ns);
  const int place = stand.doors.socket(40);
  stand.doors.open_target(place).socket.bind(device.socket);
  Caller caller("caller",
                {{1_us, true, stand.doors.address(place, 1'000), 3'000},
                 {9_us, false, stand.doors.address(place, 1'024), 3'000}},
                false);
  for (std::size_t n = 0; n < 3'000; ++n) caller.script[0].data[n] = static_cast<unsigned char>(n * 7);
  caller.socket.bind(stand.doors.open_initiator(stand.doors.socket(0)).socket);
  stand.machine.run_for(8_us);
  EXPECT_EQ(device.asked.size(), 7u);
  stand.machine.run_for(10_us);
  EXPECT_EQ(device.asked.size(), 7u + 6u);
  EXPECT_EQ(caller.finished, 2u);
  EXPECT_EQ(device.bytes[3'999], static_cast<unsigned char>(2'999 * 7));
  EXPECT_EQ(caller.script[1].data[0], static_cast<unsigned char>(24 * 7));
}

// A response is held up by the one before, until its END_RESP.
TEST(InitiatorDoor, ResponsesFollowEachOthersEnd) {
  Stand stand(taking_part({}, {1}));
  const std::uint64_t to = stand.doors.address(stand.doors.socket(1), 0);
  Caller caller("caller", {{1_us, false, to}, {kStart, false, to}, {kStart + 1_us, false, to + 512}}, true);
  caller.response_time = 2_us;
  caller.socket.bind(stand.doors.open_initiator(stand.doors.socket(0)).socket);
  stand.machine.run_for(30_us);
  ASSERT_EQ(caller.finished, 3u);
  EXPECT_EQ(caller.script[1].done.ps,
            round_trip(stand.parameters, false, false, stand.parameters.cpu.memory_read_latency).ps);
  EXPECT_EQ((caller.script[2].done - caller.script[1].done).ps, (2_us).ps);
}

// With a declared latency of a link's, windows are as long as without foreign models.
TEST(Targets, DeclaredLatencyIsTheLookahead) {
  const auto windows = [](std::optional<Time> latency) {
    Stand stand(taking_part({0, 16}));
    if (latency) {
      Device device("device", Way::annotates, *latency);
      stand.doors.open_target(stand.doors.die(5), {.latency = *latency}).socket.bind(device.socket);
      return stand.machine.foreign().window();
    }
    return stand.machine.foreign().window();
  };
  EXPECT_EQ(windows({}).ps, (300_ns).ps);
  EXPECT_EQ(windows(0_ns).ps, (200_ns).ps);
  EXPECT_EQ(windows(40_ns).ps, (240_ns).ps);
  EXPECT_EQ(windows(1_us).ps, (300_ns).ps - 1);
}

}  // namespace
}  // namespace cm384::doors::timing_test
