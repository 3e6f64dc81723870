// Reads of blocks over the VPC plane as `run ems` makes them: who reads what, what its rows have.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/text/error.h"
#include "hw/machine.h"
#include "workloads/contexts/ems_vpc.h"

namespace cm384::studies::vpc_reads_test {
namespace {

class Silent final : public Progress {
 public:
  void update(double fraction, Time, std::uint64_t) override {
    EXPECT_GE(fraction, 0);
    EXPECT_LE(fraction, 1);
    ++updates;
  }
  int updates = 0;
};

struct Bench {
  hw::Machine machine = hw::load_machine("cloudmatrix384");
  Silent progress;
  volatile std::sig_atomic_t interrupted = 0;
  StudyContext context{machine, 1, progress, interrupted};
  SimulatorCounts counts;
};

TEST(VpcReads, ReadersAreSpreadOverTheNodesAskedFor) {
  Bench bench;
  const BlockPlaces all = place_block_reads(bench.context, 96, 0),
                    two = place_block_reads(bench.context, 32, 2);
  std::map<int, int> of_all, of_two, blocks;
  for (const int die : all.dies) ++of_all[die / 16];
  for (const int die : two.dies) ++of_two[die / 16];
  for (const int socket : all.sockets) ++blocks[socket];
  EXPECT_EQ(of_all.size(), 48U);
  EXPECT_EQ(of_two, (std::map<int, int>{{0, 16}, {1, 16}}));
  EXPECT_EQ(all.servers, static_cast<int>(blocks.size()));
  int most = 0;
  for (const auto& [socket, count] : blocks) most = std::max(most, count);
  EXPECT_EQ(all.most_at_a_server, most);
  EXPECT_EQ(place_block_reads(bench.context, 48, 48).dies.size(), 48u);
  EXPECT_THROW(place_block_reads(bench.context, 32, 49), InputError);
  EXPECT_THROW(place_block_reads(bench.context, 33, 2), InputError);
}

// The busiest card binds: what it has to carry, and it idles for no more than latencies.
TEST(VpcReads, TheBusiestCardBinds) {
  Bench bench;
  const Bytes block = 4_MiB;
  for (const auto& [readers, nodes] : {std::pair{16, 1}, std::pair{96, 0}}) {
    const BlockPlaces places = place_block_reads(bench.context, readers, nodes);
    const VpcReads reads = measure_vpc_reads(bench.context, {}, places, block, bench.counts);
    ASSERT_EQ(reads.latency_us.size(), places.dies.size());
    std::map<int, int> in, out;
    for (std::size_t n = 0; n < places.dies.size(); ++n) {
      ++in[places.dies[n] / 16];
      ++out[places.sockets[n] / 4];
    }
    int most_in = 0, most_out = 0;
    for (const auto& [node, count] : in) most_in = std::max(most_in, count);
    for (const auto& [node, count] : out) most_out = std::max(most_out, count);
    EXPECT_EQ(reads.readers_of_a_card, most_in);
    EXPECT_EQ(reads.blocks_of_a_card, most_out);
    const double busy = std::max(most_in, most_out) * (4096.0 + 128) * 1024 / 25e3,
                 end = *std::ranges::max_element(reads.latency_us);
    EXPECT_GT(end, busy);
    EXPECT_LT(end, 1.05 * busy + 71);
    EXPECT_NEAR(std::max(reads.inward, reads.outward), busy / end, 0.04);
  }
  EXPECT_GT(bench.progress.updates, 2);
  EXPECT_GT(bench.counts.packet_hops, 112U * 1024 * 4 - 1);
  EXPECT_GT(bench.counts.events, bench.counts.packet_hops);
}

TEST(VpcReads, AnInterruptEndsItWithoutARow) {
  Bench bench;
  bench.interrupted = 1;
  const BlockPlaces places = place_block_reads(bench.context, 4, 0);
  EXPECT_TRUE(measure_vpc_reads(bench.context, {}, places, 4_MiB, bench.counts).latency_us.empty());
}

}  // namespace
}  // namespace cm384::studies::vpc_reads_test
