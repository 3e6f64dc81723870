// Transactions as probes tell them: what each depends on, and that telling changes nothing.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "firmware/abi/dispatch.h"
#include "firmware/abi/memory_map.h"
#include "firmware/abi/p2p.h"
#include "firmware/embedded.h"
#include "host/runtime.h"
#include "studies/dispatch.h"
#include "testbenches/supernode/study_stand.h"

namespace cm384::supernode {
namespace {

// Everything a machine's probes say.
struct Recorder {
  std::map<sim::TransactionId, npu::TransactionBegun> begun;
  std::vector<sim::TransactionId> order;
  std::map<sim::TransactionId, Time> completed;
  int launches_begun = 0, launches_ended = 0;
  std::uint64_t packets = 0;

  void attach(Supernode& machine) {
    machine.trace_transactions();
    machine.trace_links();
    Probes& probes = machine.probes();
    probes.transaction_begun.attach(this, [](void* self, const npu::TransactionBegun& t) {
      auto& r = *static_cast<Recorder*>(self);
      EXPECT_TRUE(r.begun.emplace(t.id, t).second) << "an id is used twice";
      r.order.push_back(t.id);
    });
    probes.transaction_completed.attach(this, [](void* self, const npu::TransactionCompleted& t) {
      EXPECT_TRUE(static_cast<Recorder*>(self)->completed.emplace(t.id, t.at).second) << "completed twice";
    });
    probes.launch_begun.attach(this, [](void* self, int, const npu::LaunchRecord&) {
      ++static_cast<Recorder*>(self)->launches_begun;
    });
    probes.launch_ended.attach(this, [](void* self, int, const npu::LaunchRecord&) {
      ++static_cast<Recorder*>(self)->launches_ended;
    });
    probes.link_packet.attach(this, [](void* self, const LinkPacket& p) {
      EXPECT_LT(p.start, p.tail) << p.link.text();
      ++static_cast<Recorder*>(self)->packets;
    });
  }
  static int target(const npu::TransactionBegun& t) { return static_cast<int>(cm384_gm_unit(t.address)); }
  static bool leaves(const npu::TransactionBegun& t) { return target(t) != t.die; }
};

struct PingPong {
  hw::Machine parameters = hw::load_machine("cloudmatrix384");
  SupernodeOptions options;
  std::unique_ptr<Supernode> machine;
  std::vector<cm384_p2p_result> results;

  explicit PingPong(Recorder* recorder) {
    options.dies = {0, 16};
    machine = std::make_unique<Supernode>(parameters, options);
    if (recorder != nullptr) recorder->attach(*machine);
    host::Runtime runtime(*machine);
    cm384_p2p ping{};
    ping.mode = CM384_P2P_PING;
    ping.buffers = 1;
    ping.chunk_bytes = 512;
    ping.rounds = 6;
    ping.bytes = ping.target_stride = 512;
    ping.target = runtime.allocate(16, 512);
    ping.target_flag = runtime.allocate(16, 512);
    ping.own_flag = runtime.allocate(0, 512);
    ping.results = runtime.allocate(0, CM384_P2P_RESULT_STRIDE);
    cm384_p2p echo = ping;
    echo.mode = CM384_P2P_ECHO;
    std::swap(echo.target_flag, echo.own_flag);
    echo.results = runtime.allocate(16, CM384_P2P_RESULT_STRIDE);
    const auto program = runtime.load(npu::ElfImage::from_memory(firmware::kernel_image("p2p"), "p2p"));
    for (const auto& [die, arguments] : {std::pair{0, ping}, std::pair{16, echo}}) {
      const std::uint64_t block = runtime.allocate(die, sizeof arguments);
      runtime.put(block, arguments);
      runtime.launch(die, program, block, runtime.first_cores(1), runtime.earliest_start());
    }
    runtime.wait();
    results = runtime.get<cm384_p2p_result>(ping.results, 1);
  }
};

TEST(Probes, APingPongIsAChainThatAlternatesBetweenTheDies) {
  Recorder r;
  const PingPong run(&r);
  // Backwards from the last flag that crossed.
  sim::TransactionId id = 0;
  for (const sim::TransactionId t : r.order) {
    if (Recorder::leaves(r.begun.at(t))) id = t;
  }
  int links = 0;
  for (; id != 0; ++links) {
    const npu::TransactionBegun& t = r.begun.at(id);
    EXPECT_TRUE(Recorder::leaves(t));
    EXPECT_EQ(t.bytes, 32u);
    EXPECT_EQ(t.die, links % 2 == 0 ? 16 : 0);
    if (t.depends_on != 0) {
      const npu::TransactionBegun& cause = r.begun.at(t.depends_on);
      EXPECT_EQ(Recorder::target(cause), t.die);
      EXPECT_LT(cause.at, t.at);
    }
    if (t.die == 0) {  // the flag follows the data, which the kernel has waited for
      const npu::TransactionBegun& data = r.begun.at(t.previous);
      EXPECT_EQ(data.bytes, 512u);
      EXPECT_EQ(data.depends_on, t.depends_on);
      EXPECT_LE(r.completed.at(t.previous), t.at);
    }
    id = t.depends_on;
  }
  EXPECT_EQ(links, 2 * 6);
}

// The die's socket driven by hand: core 1 sees a foreign write and tells core 2 through memory.
TEST(Probes, WhatACoreWritesCarriesOnWhatItHadSeen) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  SupernodeOptions options;
  options.dies = {0};
  Supernode machine(parameters, options);
  Recorder r;
  r.attach(machine);
  npu::Die& die = machine.die(0);
  std::byte bytes[32] = {};
  sim::TagMask tags = 0;
  const auto cause = [&](std::uint16_t core) {
    return r.begun.at(die.new_transaction(core, {0x40, 32, sim::Operation::write})).depends_on;
  };
  const auto touch = [&](std::uint16_t core, std::uint64_t offset, bool write) {
    die.access(npu::LocalAccess{offset, 32, core, write, true, Time{}}, bytes, tags);
  };
  sim::Request foreign;
  foreign.address = 4096;
  foreign.transaction = 77;
  foreign.bytes = 32;
  foreign.operation = sim::Operation::write;
  foreign.payload.tags = sim::all_tags(32);
  sim::Outcome outcome{};
  die.access(foreign, outcome);

  EXPECT_EQ(cause(1), 0u);
  touch(1, 4096, false);
  EXPECT_EQ(cause(1), 77u);
  touch(1, 8192, true);
  EXPECT_EQ(cause(2), 0u);
  touch(2, 8192, false);
  EXPECT_EQ(cause(2), 77u);
  touch(3, 4096 + 64, true);  // has seen nothing: the rest of the line is still the foreign one's
  touch(4, 4096, false);
  EXPECT_EQ(cause(3), 0u);
  EXPECT_EQ(cause(4), 77u);

  const auto previous = [&] {
    return r.begun.at(die.new_transaction(5, {0x40, 32, sim::Operation::read})).previous;
  };
  EXPECT_EQ(previous(), 0u);
  die.transaction_completed(5, 100, Time{0});
  die.transaction_completed(5, 101, Time{1});  // lies ahead
  EXPECT_EQ(previous(), 100u);
}

TEST(Probes, EveryTransactionCompletesOnce) {
  Recorder r;
  const PingPong run(&r);
  EXPECT_EQ(r.completed.size(), r.begun.size());
  for (const auto& [id, at] : r.completed) EXPECT_GT(at, r.begun.at(id).at);
  EXPECT_EQ(r.launches_begun, 2);
  EXPECT_EQ(r.launches_ended, 2);
  EXPECT_EQ(r.packets, run.machine->counts().packet_hops);
}

TEST(Probes, ChangeNoTime) {
  Recorder r;
  const PingPong traced(&r), plain(nullptr);
  EXPECT_EQ(traced.results[0].end_cycle, plain.results[0].end_cycle);
  EXPECT_EQ(traced.results[0].sum_cycles, plain.results[0].sum_cycles);
  EXPECT_EQ(traced.machine->counts().events, plain.machine->counts().events);
}

TEST(Probes, CopyOutOfDispatchDependsOnTheStatusOfPeers) {
  constexpr int kRanks = 4, kHidden = 64;
  StudyStand stand;
  Recorder r;
  studies::DispatchCase setting;
  setting.ranks = kRanks;
  setting.batch = 16;
  setting.top_k = 2;
  setting.experts = 8;
  setting.hidden = kHidden;
  setting.cores = 4;
  setting.warmup = 0;
  setting.iterations = 1;
  setting.prepare = [&r](Supernode& machine) { r.attach(machine); };
  studies::SimulatorCounts counts;
  studies::measure_dispatch(stand.context(), setting, counts);

  // The first row that each core copies out of its rank's window: nothing else reads so many bytes.
  std::set<std::pair<int, int>> seen;
  std::map<int, std::set<int>> peers;
  for (const sim::TransactionId id : r.order) {
    const npu::TransactionBegun& t = r.begun.at(id);
    if (t.operation != sim::Operation::read || Recorder::leaves(t) ||
        t.bytes != cm384_dispatch_transfer_bytes(kHidden) || !seen.emplace(t.die, t.core).second)
      continue;
    ASSERT_NE(t.depends_on, 0u) << "die " << t.die << " core " << t.core;
    const npu::TransactionBegun& status = r.begun.at(t.depends_on);
    EXPECT_EQ(status.bytes, CM384_STATUS_ENTRY_BYTES);
    EXPECT_EQ(Recorder::target(status), t.die);
    EXPECT_NE(status.die, t.die);
    EXPECT_LT(status.at, t.at);
    peers[t.die].insert(status.die);
    // A peer's status in turn stands behind rows that its core had sent.
    EXPECT_NE(status.previous, 0u);
  }
  EXPECT_EQ(peers.size(), static_cast<std::size_t>(kRanks));
}

}  // namespace
}  // namespace cm384::supernode
