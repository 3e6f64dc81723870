// Machines of others: their links, and the low-latency exchange of experts' messages on them, against closed
// forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/text/error.h"
#include "system/host/runtime.h"
#include "testbenches/system/machine/study_stand.h"
#include "workloads/fabric/p2p_sdma.h"
#include "workloads/moe/expert_messages_run.h"
#include "workloads/moe/moe_case.h"

namespace cm384::testing::messages_test {
namespace {

using studies::Carrier;
using studies::ExchangeDirection;

studies::SdmaReading copy(const std::string& preset, std::int64_t bytes,
                          const std::vector<std::string>& changes, bool rdma = false,
                          const char* distance = "intra-node") {
  supernode::StudyStand stand;
  stand.machine = hw::load_machine(preset, changes);
  studies::P2pPoint point;
  point.operation = "write";
  point.bytes = Bytes{bytes};
  point.rdma = rdma;
  point.distance = distance;
  studies::SimulatorCounts counts;
  return studies::measure_transfer(stand.context(), point, counts);
}

// A store goes in lines of 128 B, each with 28 B of header and 4 B of checksum in flits of 20 B: 160 B.
TEST(NvLink, ALargeCopyComesToTheLinksLessHeaders) {
  for (const auto& [preset, rate] :
       std::map<std::string, double>{{"dgx-h800", 200}, {"dgx-h100", 450}, {"gb200-nvl72", 900}}) {
    const double peak = rate * 128 / 160;
    EXPECT_NEAR(copy(preset, 64 << 20, {}).bandwidth_GBps, peak, 0.03 * peak) << preset;
  }
}

// One line: from the copy's turn to its acknowledgement, over one switch chip there and back.
TEST(NvLink, ALineTakesTheSumOfItsStages) {
  const hw::Machine m = hw::load_machine("dgx-h800");
  const hw::TransferEngine& e = m.transfer_engine;
  const hw::UbController& c = m.ub.controller;
  const auto passage = [&](std::int64_t wire_bytes) {
    return Time{wire_bytes * 20} + m.ub.link.endpoint_latency * 2 + m.ub.switch_chip.pipeline_latency;
  };
  const Time sum = e.start_latency + e.memory_read_latency + passage(160) + c.write_inbound_latency +
                   e.memory_write_latency + passage(20) + c.completion_latency;
  EXPECT_NEAR(copy("dgx-h800", 128, {}).latency_us, sum.us(), 0.002);
}

// The same rail of another server, one leaf; then, with servers at two leaves, over a spine.
TEST(Rail, AWriteToAnotherServerTakesTheSumOfItsStages) {
  const hw::Machine m = hw::load_machine("dgx-h800");
  const hw::TransferEngine& e = m.transfer_engine;
  const hw::Rdma& p = m.rdma;
  const auto way = [&](std::int64_t bytes, int switches) {
    return Time{bytes * 20} * (switches + 1) + p.link_latency * (switches + 1) + p.switch_latency * switches +
           p.receive_latency;
  };
  const auto sum = [&](int switches) {
    return e.start_latency + e.memory_read_latency + p.send_latency + way(p.header.count + 512, switches) +
           e.memory_write_latency + way(p.response_header.count, switches);
  };
  EXPECT_NEAR(copy("dgx-h800", 512, {}, true, "inter-supernode").latency_us, sum(1).us(), 0.001);
  // A spine's links are as fast as interfaces: as many spines as servers at a leaf.
  const std::vector<std::string> apart = {"rdma.dies_per_leaf=1", "rdma.spines=1"};
  EXPECT_NEAR(copy("dgx-h800", 512, apart, true, "inter-supernode").latency_us, sum(3).us(), 0.001);
  const double peak = 50.0 * 4096 / static_cast<double>(4096 + p.header.count);
  EXPECT_NEAR(copy("dgx-h800", 64 << 20, {}, true, "inter-supernode").bandwidth_GBps, peak, 0.02 * peak);
}

// Two copies of 64 KiB at the same time from die 0 to the same rail of the next server; how many packets.
constexpr std::uint64_t kBytesOfACopy = 65536;
int packets_of_two_copies(const std::string& mtu) {
  class Copies final : public supernode::Driver {
   public:
    explicit Copies(supernode::Supernode& machine) : machine_(machine), unit_(machine.attach(0, *this)) {
      machine.follow_transactions();
      machine.probes().transaction_completed.attach(this, [](void* self, const npu::TransactionCompleted&) {
        --static_cast<Copies*>(self)->machine_.unfinished();
      });
      machine.rdma_interface(0).request_sent.attach(
          this, [](void* self, Time) { ++static_cast<Copies*>(self)->packets; });
    }
    ~Copies() { machine_.probes().transaction_completed.detach(this); }
    void run(std::uint64_t to, std::uint64_t from) {
      to_ = to;
      from_ = from;
      machine_.unfinished() += 2;
      machine_.accelerator(0).queue().push(machine_.earliest(), unit_, 0);
      EXPECT_TRUE(machine_.run());
    }
    void handle(int, const sim::Event&) override {
      for (const std::uint64_t n : {0, 1})
        machine_.accelerator(0).transfer(
            {from_ + n * kBytesOfACopy, to_ + n * kBytesOfACopy, kBytesOfACopy, n + 1});
    }
    int packets = 0;

   private:
    supernode::Supernode& machine_;
    std::uint32_t unit_;
    std::uint64_t to_ = 0, from_ = 0;
  };
  const hw::Machine m = hw::load_machine("dgx-h800", {"rdma.mtu=" + mtu});
  supernode::SupernodeOptions options;
  const int peer = m.topology.one_supernode().dies();
  options.dies = {0, peer};
  options.rdma = true;
  supernode::Supernode machine(m, options);
  host::Runtime runtime(machine);
  const std::uint64_t to = runtime.allocate(peer, 2 * kBytesOfACopy),
                      from = runtime.allocate(0, 2 * kBytesOfACopy);
  runtime.mark_payload(from, 2 * kBytesOfACopy);
  Copies copies(machine);
  copies.run(runtime.reached_from(0, to), from);
  return copies.packets;
}

// Engines take turns packet by packet, whatever a packet holds. The first one leaves with what is ready.
TEST(Rail, CopiesThatTakeTurnsFillPackets) {
  for (const auto& [mtu, bytes] :
       std::map<std::string, int>{{"512B", 512}, {"2KiB", 2048}, {"8KiB", 8192}, {"16KiB", 16384}}) {
    const int full = 2 * 65536 / bytes, packets = packets_of_two_copies(mtu);
    EXPECT_GE(packets, full) << mtu;
    EXPECT_LE(packets, full + 3) << mtu;
  }
}

reference::DispatchCase layer_of(int ranks, int batch, int experts, int top_k, int hidden) {
  studies::DispatchCase setting;
  setting.ranks = ranks;
  setting.batch = batch;
  setting.experts = experts;
  setting.top_k = top_k;
  setting.hidden = hidden;
  return studies::make_moe_case(1, setting);
}

std::vector<int> first(int ranks) {
  std::vector<int> dies(static_cast<std::size_t>(ranks));
  std::iota(dies.begin(), dies.end(), 0);
  return dies;
}

// What DeepEP's low-latency kernels send, by their own documentation.
TEST(ExpertMessages, AreThoseOfDeepEp) {
  EXPECT_EQ(studies::message_bytes(ExchangeDirection::dispatch, 7168), 7408u);
  EXPECT_EQ(studies::message_bytes(ExchangeDirection::combine, 7168), 14336u);
  const hw::Machine m = hw::load_machine("dgx-h800");
  const reference::DispatchCase layer = layer_of(16, 128, 256, 8, 7168);
  // Counted from the experts alone: 16 stand on each rank in order, 8 ranks share a server.
  std::map<Carrier, std::uint64_t> expected;
  for (std::size_t rank = 0; rank < 16; ++rank) {
    for (const std::int32_t expert : layer.expert_ids[rank]) {
      const auto target = static_cast<std::size_t>(expert / 16);
      ++expected[target == rank ? Carrier::memory : target / 8 == rank / 8 ? Carrier::bus : Carrier::rdma];
    }
  }
  for (const ExchangeDirection direction : {ExchangeDirection::dispatch, ExchangeDirection::combine}) {
    const studies::ExpertExchange exchange = studies::make_exchange(layer, m, direction, first(16));
    std::uint64_t sent = 0;
    for (const Carrier carrier : {Carrier::memory, Carrier::bus, Carrier::rdma}) {
      EXPECT_EQ(exchange.count(carrier), expected[carrier]);
      sent += exchange.count(carrier);
    }
    EXPECT_EQ(sent, 16u * 128 * 8);
    EXPECT_EQ(exchange.pairs.size(), 256u * 16);  // a flag for each expert and source
  }
  // Every rank sends a message for each of its tokens' experts.
  for (const auto& of_rank :
       studies::make_exchange(layer, m, ExchangeDirection::dispatch, first(16)).messages)
    EXPECT_EQ(of_rank.size(), 128u * 8);
}

double mean_us(const hw::Machine& machine, ExchangeDirection direction, studies::DispatchCase setting) {
  supernode::StudyStand stand;
  stand.machine = machine;
  setting.warmup = 0;
  studies::SimulatorCounts counts;
  return studies::measure_messages(stand.context(), setting, direction, counts).task_us.mean;
}

// One token with two experts, one on each of two ranks in servers of their own: one message by memory, one by
// RDMA, their flags.
TEST(ExpertMessages, OneTokenOverARailTakesTheSumOfItsStages) {
  const hw::Machine m = hw::load_machine("dgx-h800", {"topology.dies_per_node=1", "rdma.spines=32"});
  const hw::Processor& u = m.processor;
  const hw::TransferEngine& e = m.transfer_engine;
  const hw::Rdma& p = m.rdma;
  studies::DispatchCase one;
  one.ranks = 2;
  one.batch = 1;
  one.top_k = 2;
  one.experts = 2;
  one.hidden = 64;
  const auto wire = [](std::int64_t bytes) { return Time{bytes * 20}; };  // at 50 GB/s
  const auto unit = [](std::int64_t bytes) { return Time{(bytes * 1'000'000 + 59'999) / 60'000}; };
  // A flag of 4 B from its post until a unit acts on it, `before` bytes on the wire right ahead of it.
  const auto flag = [&](std::int64_t before) {
    return e.start_latency + e.memory_read_latency + p.send_latency + wire(before) * 2 +
           wire(4 + p.header.count) * (before == 0 ? 2 : 1) + p.link_latency * 2 + p.switch_latency +
           p.receive_latency + u.poll_latency;
  };
  // Dispatch counts the tokens of each expert first, which takes longer than its one message.
  const std::int64_t sent = 64 + 4 + 16;
  ASSERT_GT(u.barrier_latency, e.memory_read_latency + unit(128 + sent) + u.post_latency + wire(sent + 42));
  const Time dispatch =
      u.launch_latency + u.barrier_latency + flag(0) + e.memory_read_latency + unit(2 * sent) + u.end_latency;
  EXPECT_NEAR(mean_us(m, ExchangeDirection::dispatch, one), dispatch.us(), 0.002);
  // Combine's flag follows its message at once, and waits for it at the leaf.
  const Time posted = u.launch_latency + e.memory_read_latency + unit(256) + u.post_latency;
  const Time combine = posted + flag(128 + p.header.count) + u.barrier_latency + e.memory_read_latency +
                       unit(3 * 128) + u.end_latency;
  EXPECT_NEAR(mean_us(m, ExchangeDirection::combine, one), combine.us(), 0.002);
  // The same of ranks in two of the machine's own servers: both are on the first rail.
  const hw::Machine servers = hw::load_machine("dgx-h800");
  one.placement = "0,8";
  EXPECT_NEAR(mean_us(servers, ExchangeDirection::dispatch, one), dispatch.us(), 0.002);
  EXPECT_NEAR(mean_us(servers, ExchangeDirection::combine, one), combine.us(), 0.002);
  one.placement = "0,1";  // of one server: by its switch
  EXPECT_GT(std::abs(mean_us(servers, ExchangeDirection::combine, one) - combine.us()), 0.05);
}

// What the interface or the links bind grows with the share of tokens that leave the server.
TEST(ExpertMessages, TimesFollowTheBytesThatLeave) {
  const hw::Machine m = hw::load_machine("dgx-h800");
  studies::DispatchCase setting;
  double before = 0;
  for (const int ranks : {16, 32}) {
    setting.ranks = ranks;
    const double bytes = (1.0 - 8.0 / ranks) * 128 * 8 * 7408;
    const double wire = bytes / 50e3 * (4096 + 3312 + 84) / 7408;  // us; a message takes two packets
    const double time = mean_us(m, ExchangeDirection::dispatch, setting);
    EXPECT_GT(time, wire);
    EXPECT_LT(time, wire * 1.1 + 20);  // receivers are not loaded evenly; the rest of the kernel
    EXPECT_GT(time, before);
    before = time;
  }
}

TEST(ExpertMessages, RefuseMoreRanksThanTheMachineHas) {
  studies::DispatchCase setting;
  setting.ranks = 257;
  setting.experts = 512;
  EXPECT_THROW(mean_us(hw::load_machine("dgx-h800"), ExchangeDirection::dispatch, setting), InputError);
}

}  // namespace
}  // namespace cm384::testing::messages_test
