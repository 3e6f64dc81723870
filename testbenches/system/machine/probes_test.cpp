// Transactions as probes tell them, what each waited for as the log tells it, and that neither changes a
// time.
#include <gmock/gmock.h>

#include <map>

#include "firmware/abi/memory_map.h"
#include "firmware/abi/p2p.h"
#include "firmware/embedded.h"
#include "npu_core/causality/pipe_shapes.h"
#include "npu_core/causality/trace_log_reader.h"
#include "system/host/runtime.h"
#include "system/observe/trace_thread.h"

namespace cm384::supernode::probes_test {
namespace {

// Everything a machine's probes say.
struct Recorder {
  std::map<sim::TransactionId, npu::TransactionBegun> begun;
  std::vector<sim::TransactionId> order;
  std::map<sim::TransactionId, Time> completed;
  int launches_begun = 0, launches_ended = 0;
  std::uint64_t packets = 0;

  void attach(Supernode& machine) {
    machine.follow_transactions();
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

// What the log of a machine says of transactions.
class Causes final : private npu::CausalityListener {
 public:
  explicit Causes(Supernode& machine)
      : reader_(Clock(machine.parameters().die.clock), npu::vector_shape(machine.parameters().vector_core),
                npu::cube_shape(machine.parameters().cube_core), *this),
        log_([this](std::span<const std::uint64_t> words) { reader_.read(words); }) {
    machine.keep_log(log_);
  }

  const npu::TransactionBegun& begun(sim::TransactionId id) {
    log_.drain();
    return begun_.at(id);
  }
  // The last transaction that is no point within a die and of which `id` waited for the arrival; 0: none.
  sim::TransactionId arrival(sim::TransactionId id) {
    log_.drain();
    sim::TransactionId last = 0;
    for (const npu::Dependency& d : dependencies_.at(id)) {
      if (d.kind == npu::DependencyKind::arrival) last = std::max(last, d.on);
    }
    return last;
  }

 private:
  void transaction_begun(const npu::TransactionBegun& t) override {
    begun_.emplace(t.id, t);
    dependencies_[t.id].assign(t.dependencies.begin(), t.dependencies.end());
  }
  void transaction_completed(const npu::TransactionCompleted&) override {}
  void joined(const npu::JoinedAt&) override {}
  void host_point(const npu::HostPoint&) override {}

  std::map<sim::TransactionId, npu::TransactionBegun> begun_;
  std::map<sim::TransactionId, std::vector<npu::Dependency>> dependencies_;
  npu::TraceLogReader reader_;
  observe::TraceThread log_;  // the last: its thread uses the others
};

struct PingPong {
  hw::Machine parameters = hw::load_machine("cloudmatrix384");
  SupernodeOptions options;
  std::unique_ptr<Supernode> machine;
  std::vector<cm384_p2p_result> results;

  explicit PingPong(Recorder* recorder, std::unique_ptr<Causes>* causes = nullptr) {
    options.dies = {0, 16};
    machine = std::make_unique<Supernode>(parameters, options);
    if (recorder != nullptr) recorder->attach(*machine);
    if (causes != nullptr) *causes = std::make_unique<Causes>(*machine);
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
  std::unique_ptr<Causes> causes;
  const PingPong run(&r, &causes);
  // Backwards from the last flag that crossed.
  sim::TransactionId id = 0;
  for (const sim::TransactionId t : r.order) {
    if (Recorder::leaves(r.begun.at(t))) id = t;
  }
  int links = 0;
  for (; id != 0; ++links) {
    const npu::TransactionBegun& t = causes->begun(id);
    EXPECT_TRUE(Recorder::leaves(t));
    EXPECT_EQ(t.bytes, 32u);
    EXPECT_EQ(t.die, links % 2 == 0 ? 16 : 0);
    id = causes->arrival(id);
    if (id == 0) continue;
    const npu::TransactionBegun& cause = causes->begun(id);
    EXPECT_EQ(Recorder::target(cause), t.die);
    EXPECT_LT(cause.at, t.at);
  }
  EXPECT_EQ(links, 2 * 6);
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

}  // namespace
}  // namespace cm384::supernode::probes_test
