// All that passes between modules goes into bytes and back without changing a time or a byte.
#include "ub_fabric/crossing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text/error.h"
#include "firmware/abi/p2p.h"
#include "system/host/runtime.h"
#include "testbenches/system/machine/study_stand.h"
#include "workloads/moe/dispatch.h"

namespace cm384::supernode::crossing_test {
namespace {

using ub::Crossings;

TEST(Crossings, APacketTakesItsPayloadAlong) {
  ub::PacketPool packets;
  sim::PayloadPool payloads;
  sim::EventQueue sender(1), receiver(2);
  ub::Packet packet;
  packet.address = 0x1234;
  packet.bytes = 48;
  packet.tag = 7;
  packet.flits = 5;
  packet.destination = 300;
  packet.kind = ub::PacketKind::write_request;
  packet.payload = {payloads.allocate(), 2};
  for (int n = 0; n < 48; ++n) payloads.bytes(packet.payload.chunk)[n] = static_cast<std::byte>(n);
  const ub::PacketIndex first = packets.allocate();
  packets[first] = packet;
  receiver.push_from(sender, Time{100}, 3, 0, ub::Hop(first, packets[first]).bits());
  receiver.push_from(sender, Time{50}, 4, 1, 99);  // no packet: its argument stays as it is

  Crossings crossings(packets, payloads);
  const auto exchange = [&] { crossings.events(receiver, [](const sim::Event& e) { return e.what == 0; }); };
  exchange();
  EXPECT_EQ(packets.in_use(), 0u);
  EXPECT_EQ(payloads.in_use(), 0u);
  packets[first] = {};  // what the sender has left
  const ub::PacketIndex other = packets.allocate();
  crossings.turn();
  exchange();
  crossings.clear();
  EXPECT_EQ(crossings.records(), 2u);

  std::vector<sim::Event> taken;
  receiver.run_until(Time{1000}, [&](const sim::Event& e) { taken.push_back(e); });
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].argument, 99u);
  EXPECT_EQ(taken[1].unit, 3u);
  const ub::Hop hop{taken[1].argument};
  EXPECT_NE(hop.packet(), other);
  EXPECT_EQ(hop.destination(), 300);
  EXPECT_EQ(hop.flits(), 5u);
  const ub::Packet& arrived = packets[hop.packet()];
  EXPECT_EQ(arrived.address, 0x1234u);
  EXPECT_EQ(arrived.tag, 7u);
  EXPECT_EQ(arrived.payload.tags, 2u);
  for (int n = 0; n < 48; ++n)
    EXPECT_EQ(payloads.bytes(arrived.payload.chunk)[n], static_cast<std::byte>(n)) << n;
}

TEST(Crossings, WhatWasLeftOutIsSeen) {
  ub::PacketPool packets;
  sim::PayloadPool payloads;
  sim::EventQueue sender(1), receiver(2);
  Crossings crossings(packets, payloads);
  const auto plain = [](const sim::Event&) { return false; };
  receiver.push_from(sender, Time{100}, 3, 0, 1);
  crossings.events(receiver, plain);
  crossings.turn();
  EXPECT_THROW(crossings.clear(), MachineError);
  crossings.events(receiver, plain);
  EXPECT_THROW(crossings.events(receiver, plain), MachineError);
}

std::vector<double> dispatch(StudyStand& stand, const studies::DispatchCase& model, bool by_value) {
  studies::DispatchCase setting = model;
  Supernode* seen = nullptr;
  setting.prepare = [&](Supernode& machine) {
    seen = &machine;
    if (by_value) machine.serialise_crossings();
  };
  studies::SimulatorCounts counts;
  const studies::DispatchReading reading = studies::measure_dispatch(stand.context(), setting, counts);
  EXPECT_NE(seen, nullptr);
  EXPECT_EQ(reading.correct.value_or(true), true) << reading.first_difference;
  std::vector<double> values{reading.task_us.mean, reading.kernel_us.mean, static_cast<double>(counts.events),
                             static_cast<double>(counts.packet_hops)};
  values.insert(values.end(), reading.phase_us.begin(), reading.phase_us.end());
  for (const npu::LaunchRecord& task : reading.tasks) {
    values.push_back(static_cast<double>(task.task_start.ps));
    values.push_back(static_cast<double>(task.last_retired.ps));
  }
  return values;
}

studies::DispatchCase small_case(bool full) {
  studies::DispatchCase setting;
  setting.ranks = 8;
  setting.batch = 16;
  setting.top_k = 4;
  setting.experts = 16;
  setting.hidden = 512;
  setting.cores = 8;
  setting.placement = "strided";
  setting.full = full;
  return setting;
}

TEST(Crossings, DispatchIsTheSameByValue) {
  for (const bool full : {false, true}) {
    StudyStand stand;
    EXPECT_EQ(dispatch(stand, small_case(full), true), dispatch(stand, small_case(full), false)) << full;
  }
}

// Senders that wait for credits are woken across modules.
TEST(Crossings, SoItIsWhereCreditsAreShort) {
  StudyStand stand;
  stand.machine = hw::load_machine(
      "cloudmatrix384",
      {"ub.link.buffer_cells=8", "cpu.controller.target_write_interval=20ns",
       "ub.controller.target_write_interval=20ns", "ub.controller.target_read_interval=20ns"});
  EXPECT_EQ(dispatch(stand, small_case(true), true), dispatch(stand, small_case(true), false));
}

// Host threads meet, copies go to a socket and back by the SDMA engines.
TEST(Crossings, HostThreadsAndSocketsAreTheSameByValue) {
  const auto run = [](bool by_value) {
    const hw::Machine parameters = hw::load_machine("cloudmatrix384");
    SupernodeOptions options;
    options.dies = {0, 1, 17};
    options.sockets = {0, 3};
    Supernode machine(parameters, options);
    if (by_value) machine.serialise_crossings();
    host::Runtime runtime(machine);
    std::vector<Time> times;
    std::vector<host::TaskHandle> tasks;
    std::vector<std::uint32_t> values(5000);
    for (std::size_t n = 0; n < values.size(); ++n) values[n] = static_cast<std::uint32_t>(n * 2654435761u);
    const std::uint64_t bytes = values.size() * 4;
    const std::uint64_t source = runtime.allocate(0, bytes), target = runtime.allocate(17, bytes);
    const std::uint64_t between = runtime.allocate_on_socket(3, bytes);
    runtime.put(source, std::span<const std::uint32_t>(values));
    const host::Stream first = runtime.create_stream(0), second = runtime.create_stream(17);
    tasks.push_back(runtime.memcpy_async(first, between, source, bytes));
    runtime.synchronize_stream(first);
    runtime.host_barrier({0, 1, 17});
    tasks.push_back(runtime.memcpy_async(second, target, between, bytes));
    runtime.synchronize_stream(second);
    EXPECT_TRUE(runtime.wait());
    EXPECT_EQ(runtime.get<std::uint32_t>(target, values.size()), values);
    for (const host::TaskHandle& task : tasks) {
      times.push_back(runtime.task(task).called);
      times.push_back(runtime.task(task).seen);
    }
    EXPECT_EQ(machine.crossings().first != 0, by_value);
    EXPECT_GE(machine.crossings().second, by_value ? 2 * bytes : 0);
    return times;
  };
  EXPECT_EQ(run(true), run(false));
}

}  // namespace
}  // namespace cm384::supernode::crossing_test
