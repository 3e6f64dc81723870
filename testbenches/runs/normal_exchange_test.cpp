// DeepEP's normal exchange on accelerators without cores: rows counted from the experts alone, one token as a
// sum of its stages, many against what links and units bind.
#include "workloads/moe/normal_exchange.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/text/error.h"
#include "testbenches/system/machine/study_stand.h"
#include "workloads/moe/moe_case.h"
#include "workloads/moe/normal_exchange_run.h"

namespace cm384::testing::normal_exchange_test {
namespace {

using studies::Carrier;
using studies::ExchangeDirection;

studies::DispatchCase setting_of(int ranks, int tokens) {
  studies::DispatchCase setting;
  setting.ranks = ranks;
  setting.tokens = setting.batch = tokens;
  setting.normal = true;
  setting.warmup = 0;
  return setting;
}

studies::DispatchReading measured(const hw::Machine& machine, ExchangeDirection direction,
                                  const studies::DispatchCase& setting) {
  supernode::StudyStand stand;
  stand.machine = machine;
  studies::SimulatorCounts counts;
  return studies::measure_normal(stand.context(), setting, direction, counts);
}

struct Counted {
  std::map<Carrier, std::uint64_t> rows;
  std::uint64_t servers = 0, ranks = 0;  // of all tokens
};
// Experts stand on ranks in order, as many on each, and 8 ranks share a server.
Counted counted(const reference::DispatchCase& layer, int ranks, bool one_server) {
  Counted found;
  const int experts = 256 / ranks, top_k = layer.top_k;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& ids = layer.expert_ids[static_cast<std::size_t>(rank)];
    for (std::size_t token = 0; token < ids.size() / static_cast<std::size_t>(top_k); ++token) {
      std::set<int> targets, servers;
      for (int k = 0; k < top_k; ++k)
        targets.insert(ids[token * static_cast<std::size_t>(top_k) + static_cast<std::size_t>(k)] / experts);
      for (const int target : targets) servers.insert(target / 8);
      found.ranks += targets.size();
      found.servers += servers.size();
      // To the rank of the same number in each server, from there to those of its server; or from the rank
      // itself.
      for (const int server : servers) {
        if (!one_server) ++found.rows[server == rank / 8 ? Carrier::memory : Carrier::rdma];
      }
      for (const int target : targets) {
        const int from = target / 8 * 8 + rank % 8;
        ++found.rows[from == target ? Carrier::memory : Carrier::bus];
      }
    }
  }
  return found;
}

TEST(NormalExchange, ARowGoesOnceToAServerAndOnceToAGpu) {
  EXPECT_EQ(studies::normal_row_bytes(ExchangeDirection::dispatch, 7168), 7392u);
  EXPECT_EQ(studies::normal_row_bytes(ExchangeDirection::combine, 7168), 14336u);
  const hw::Machine m = hw::load_machine("dgx-h800");
  for (const int ranks : {8, 32}) {
    const reference::DispatchCase layer = studies::make_moe_case(1, setting_of(ranks, 100));
    Counted expected = counted(layer, ranks, ranks == 8);
    for (const ExchangeDirection direction : {ExchangeDirection::dispatch, ExchangeDirection::combine}) {
      const studies::NormalExchange exchange = studies::make_normal_exchange(layer, m, direction, 24);
      for (const Carrier carrier : {Carrier::memory, Carrier::bus, Carrier::rdma})
        EXPECT_EQ(exchange.count(m.topology, carrier), expected.rows[carrier]) << ranks;
      EXPECT_EQ(exchange.counted, ranks == 8 ? expected.ranks : expected.servers);
    }
  }
}

// One token of each of two ranks in servers of their own, with an expert on either.
TEST(NormalExchange, OneTokenTakesTheSumOfItsStages) {
  const hw::Machine m = hw::load_machine("dgx-h800", {"topology.dies_per_node=1", "rdma.spines=32"});
  const hw::Processor& u = m.processor;
  const hw::TransferEngine& e = m.transfer_engine;
  const hw::Rdma& p = m.rdma;
  studies::DispatchCase one = setting_of(2, 1);
  one.top_k = 2;
  one.experts = 2;
  one.hidden = 64;
  const auto unit = [](std::int64_t bytes) { return Time{(bytes * 1'000'000 + 59'999) / 60'000}; };
  // From the post to the target, stored at one leaf; 50 GB/s.
  const auto by_rdma = [&](std::int64_t bytes) {
    return u.post_latency + e.start_latency + e.memory_read_latency + p.send_latency +
           Time{(bytes + p.header.count) * 20} * 2 + p.link_latency * 2 + p.switch_latency +
           p.receive_latency;
  };
  // Read, and written for each of two servers; forwarded; copied.
  const Time dispatch = u.launch_latency + unit(3 * 68) + by_rdma(68) + u.poll_latency + unit(2 * 68) +
                        u.poll_latency + unit(2 * 68) + u.end_latency;
  EXPECT_NEAR(measured(m, ExchangeDirection::dispatch, one).task_us.mean, dispatch.us(), 1e-4);
  // Behind the row of the own token; one row added up; that and the own one.
  const Time combine = u.launch_latency + unit(2 * 128) * 2 + u.poll_latency + unit(2 * 128) + by_rdma(128) +
                       u.poll_latency + unit(3 * 128) + u.end_latency;
  EXPECT_NEAR(measured(m, ExchangeDirection::combine, one).task_us.mean, combine.us(), 1e-4);
}

// In one server a rank's link carries what it stores to the others, or few units bind.
TEST(NormalExchange, LinksOrUnitsBindInOneServer) {
  const hw::Machine m = hw::load_machine("dgx-h800");
  studies::DispatchCase setting = setting_of(8, 1024);
  const reference::DispatchCase layer = studies::make_moe_case(1, setting);
  const Counted rows = counted(layer, 8, true);
  const double bus = static_cast<double>(rows.rows.at(Carrier::bus)) / 8 * 7392 / 200e3;  // us
  const studies::DispatchReading all = measured(m, ExchangeDirection::dispatch, setting);
  EXPECT_GT(all.task_us.mean, bus);
  EXPECT_LT(all.task_us.mean, 1.5 * bus + 20);
  EXPECT_NEAR(all.counted_MB, static_cast<double>(rows.ranks) / 8 * 7392 / 1e6, 1e-9);
  setting.sms = 4;  // two receivers at 60 GB/s each: every row read and written
  const double receivers = static_cast<double>(rows.ranks) / 8 * 2 * 7392 / 120e3;
  const double few = measured(m, ExchangeDirection::dispatch, setting).task_us.mean;
  EXPECT_GT(few, receivers);
  EXPECT_LT(few, 1.1 * receivers + 20);
  EXPECT_GT(few, 2 * all.task_us.mean);
}

TEST(NormalExchange, RefusesWhatItIsNot) {
  const hw::Machine m = hw::load_machine("dgx-h800");
  studies::DispatchCase setting = setting_of(12, 8);
  EXPECT_THROW(measured(m, ExchangeDirection::dispatch, setting), InputError);  // servers of 8
  setting = setting_of(8, 8);
  setting.sms = 7;
  EXPECT_THROW(measured(m, ExchangeDirection::dispatch, setting), InputError);
  setting.sms = 134;  // of 132
  EXPECT_THROW(measured(m, ExchangeDirection::dispatch, setting), InputError);
}

}  // namespace
}  // namespace cm384::testing::normal_exchange_test
