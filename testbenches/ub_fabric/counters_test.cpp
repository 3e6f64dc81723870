// What a controller reports of itself, for requests that are known one by one.
#include <gtest/gtest.h>

#include "base/engine/statistics.h"
#include "firmware/abi/memory_map.h"
#include "testbenches/ub_fabric/fabric_bench.h"
#include "ub_fabric/wire_format.h"

namespace cm384::ub::counters_test {
namespace {

using namespace cm384::literals;
using sim::Operation;

TEST(Counters, SayWhatWasAskedForAndWhatCameBack) {
  const Parameters p = machine();
  FabricBench bench(p, {0, 1, 17});
  bench.at(17).memory_bytes = 1 << 20;
  Time now{};
  const auto request = [&](Operation operation, std::uint64_t address, std::uint32_t bytes) {
    bench.at(0).request(now, operation, address, bytes, 0);
    now += 10_us;
  };
  for (const std::uint32_t bytes : {32u, 480u, 512u}) request(Operation::read, cm384_gm_die(17, 0), bytes);
  for (const std::uint32_t bytes : {100u, 300u}) request(Operation::write, cm384_gm_die(17, 0), bytes);
  request(Operation::atomic_add_s32, cm384_gm_die(17, 0), 4);
  request(Operation::read, cm384_gm_die(17, 2 << 20), 64);  // another page, beyond the memory there
  request(Operation::write, cm384_gm_die(1, 0), 256);       // by the package link
  bench.run();

  sim::Statistics all;
  bench.at(0).controller.declare_statistics(all, sim::StatisticPath{}.part("die", 0));
  bench.at(1).controller.declare_statistics(all, sim::StatisticPath{}.part("die", 1));
  bench.at(17).controller.declare_statistics(all, sim::StatisticPath{}.part("die", 17));
  EXPECT_EQ(all.total("die0.ub.reads"), 4u);
  EXPECT_EQ(all.total("die0.ub.writes"), 4u);
  EXPECT_EQ(all.total("die0.ub.atomics"), 1u);
  EXPECT_EQ(all.total("die0.ub.bytes_read"), 32u + 480 + 512);
  EXPECT_EQ(all.total("die0.ub.bytes_written"), 100u + 300 + 4 + 256);
  EXPECT_EQ(all.total("die0.ub.completions"), 8u);
  EXPECT_EQ(all.total("die0.ub.faults"), 1u);
  EXPECT_EQ(all.total("die0.ub.served"), 0u);
  EXPECT_EQ(all.total("die17.ub.served"), 7u);
  EXPECT_EQ(all.total("die0.ub.translation_misses"), 2u);
  EXPECT_EQ(all.total("die0.ub.translation_hits"), 5u);
  EXPECT_EQ(all.total("die0.ub.package_requests"), 1u);
  // The package link carries the write and its acknowledgement, each with its header, at 270 GB/s.
  const auto header = static_cast<std::uint64_t>(p.package_link.header.count);
  EXPECT_EQ(all.total("die0.ub.package.packets"), 1u);
  EXPECT_EQ(all.total("die0.ub.package.bytes"), 256 + header);
  EXPECT_EQ(all.total("die1.ub.package.bytes"), header);
  EXPECT_NEAR(static_cast<double>(all.total("die0.ub.package.busy_ps")),
              static_cast<double>(256 + header) * 1e3 / 270, 1.0);
  // Flits of 20 B at 28 GB/s on the seven ports.
  constexpr int kFlits =
      4 * packet_flits(PacketKind::read_request, 0) + packet_flits(PacketKind::write_request, 100) +
      packet_flits(PacketKind::write_request, 300) + packet_flits(PacketKind::atomic_request, 4);
  EXPECT_EQ(all.sum("die*.ub.port*.packets"), 14u);  // seven requests and their responses
  std::uint64_t flits = 0, busy = 0;
  for (unsigned port = 0; port < 7; ++port) {
    const std::string at = "die0.ub.port" + std::to_string(port);
    flits += all.total(at + ".flits");
    busy += all.total(at + ".busy_ps");
  }
  EXPECT_EQ(flits, static_cast<std::uint64_t>(kFlits));
  EXPECT_NEAR(static_cast<double>(busy), kFlits * 20e3 / 28, 7.0);
}

}  // namespace
}  // namespace cm384::ub::counters_test
