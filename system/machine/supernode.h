// The whole machine: dies, CPU sockets and sub-planes, wired as the machine description says.
#pragma once

#include <atomic>
#include <csignal>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/engine/payload.h"
#include "base/engine/statistics.h"
#include "hw/machine.h"
#include "npu_core/die/die.h"
#include "npu_core/memory/backing_store.h"
#include "system/machine/driver.h"
#include "system/machine/foreign_port.h"
#include "system/machine/probes.h"
#include "system/machine/thread_choice.h"
#include "ub_fabric/controller.h"
#include "ub_fabric/planes/rdma/interface.h"
#include "ub_fabric/sub_plane.h"

namespace cm384::supernode {

struct SupernodeOptions {
  std::vector<int> dies;     // that take part; others are idle and not built
  std::vector<int> sockets;  // CPU sockets that take part
  bool rdma = false;         // the RDMA plane takes part
  npu::DieOptions die;
  // A run ends when it has been at work for so long without progress: a write to memory, a copy from
  // elsewhere than the one before, a cross-core flag, a launch that begins. Time in which nothing happens at
  // all, before a launch or while the host computes, is no work.
  Time patience{5'000'000'000};
  // A run ends with a report when it has not ended by then, rounded up to 5 us.
  Time time_limit = Time::never();
  const volatile std::sig_atomic_t* interrupted = nullptr;
  // Modules run in windows of at most this length; what is simulated does not depend on it.
  Time window = Time::never();
  // Threads of the host that run modules side by side; what is simulated does not depend on it.
  unsigned threads = 1;
  std::string threads_why = "asked for";  // where that number is from, for the result
  // They share a window if the one before had so many events: to wake a thread for less takes longer.
  std::uint64_t worth_sharing = 256;
  // Called now and then while the machine runs, with simulated time and events so far.
  std::function<void(Time, std::uint64_t)> progress;
  // Called once a microsecond of simulated time, between two steps of the machine, which it must not change.
  std::function<void(Time)> sample;
  // Text that kernels print; empty: standard error, for results go to standard output.
  std::function<void(int die, int core, std::string_view text)> output;
};

struct SupernodeCounts {
  std::uint64_t instructions = 0;
  std::uint64_t packet_hops = 0;
  std::uint64_t memory_requests = 0;
  std::uint64_t events = 0;
  std::uint64_t lost_packets = 0;     // in parts that went out of order while the machine ran
  std::uint64_t resent_requests = 0;  // as they or their responses were lost there
};

// So many supernodes of this size can be simulated as one machine: packets name no more dies and sockets.
// More can be counted, allocated and reckoned with.
int most_supernodes(const hw::Topology& topology);

// One at a time in a process: it owns the SystemC simulation.
class Supernode final : private npu::DieListener {
 public:
  // Throws InputError where the machine's values do not fit together. `machine` must outlive the supernode.
  Supernode(const hw::Machine& machine, SupernodeOptions options);
  ~Supernode();
  Supernode(const Supernode&) = delete;
  Supernode& operator=(const Supernode&) = delete;

  const hw::Machine& parameters() const { return machine_; }
  // Those that take part, in order.
  std::vector<int> dies() const;
  const std::vector<int>& sockets() const { return options_.sockets; }
  // Throws InputError for one that does not take part, or is no Ascend die.
  npu::Die& die(int number) const;
  // Throws InputError for one that does not take part.
  npu::Accelerator& accelerator(int number) const;
  bool takes_part(int die) const;
  npu::BackingStore& socket_store(int number) const;
  // Its interface on the RDMA plane. Throws InputError where the plane does not take part.
  rdma::Interface& rdma_interface(int die) const;
  bool has_rdma() const;
  // Its Unified Bus controller: ports, counters, fault and observer hooks.
  ub::UbController& controller(int die) const;
  // Throws InputError for one that does not exist.
  ub::SubPlane& plane(int number) const;

  std::uint32_t launch(int die, npu::LaunchRequest request, Time at);
  const npu::LaunchRecord& record(int die, std::uint32_t number) const;
  // Earliest time at which a launch may be put.
  Time earliest() const;
  // Runs until all launches have finished. Throws MachineError when the machine hangs; false when
  // interrupted.
  bool run();
  // The same for so long, whatever has finished: for foreign models that work by themselves.
  bool run_for(Time length);

  SupernodeCounts counts() const;

  // Every counter of every part: "die3.aiv7.mte3.busy_ps". Declares a hundred thousand counters a hundred
  // dies; visit_statistics() gives them part by part (a die, a sub-plane, the sockets) for one pass.
  void declare_statistics(sim::Statistics& to) const;
  void visit_statistics(const std::function<void(const sim::Statistics&)>& visit) const;

  // Attaches a driver to a die and gives the unit of its events there; before the machine runs or between two
  // of its windows. The driver outlives the runs.
  std::uint32_t attach(int die, Driver& driver);
  // What has begun and not finished: run() goes on while there is any. Launches count themselves, drivers
  // what they have to do.
  std::atomic<std::size_t>& unfinished() { return unfinished_; }
  // Nothing gets from a die to another by the Unified Bus in less.
  Time lookahead() const;
  // Whoever looks on at several modules or joins in from them (an observer, a replay, a debugger, calls of
  // host threads that meet) declares that it needs one order of what they do, by a noun for the result: "a
  // replay". From the next window on they run one after another on one thread. Throws InputError where
  // several processes simulate the machine, unless an order among the dies of each will do.
  enum class OrderOf { machine, process };
  void need_order(std::string_view whoever, OrderOf order = OrderOf::machine);
  // That modules are given to, whatever thread acts for them (base/engine/worker.h).
  unsigned workers() const;
  // Whose events one of them runs, of a die that is there.
  unsigned worker_of_die(int die) const;
  // How many threads run modules, and why so many (thread_choice.h).
  const ThreadChoice& thread_choice() const;
  // Windows whose modules ran side by side; those with little to do are run by one thread.
  std::uint64_t shared_windows() const;
  // Another table of a sub-plane's chips and links, with other parts out of order. Before the first launch.
  // Throws InputError where its detours take more lanes than there are.
  void set_network(int plane, std::shared_ptr<const ub::Network> network);
  // The same while the machine runs: all changes of a sub-plane, in the order of their times, and part of a
  // link's physical lanes failing. Before the first launch. Throws InputError also where one of the
  // sub-plane's switch chips is another model.
  void change_networks(int plane, const std::vector<ub::NetworkChange>& changes);
  void narrow(int plane, unsigned link, double width, Time at);
  // From now on all that passes between modules goes into bytes and back between windows; results are the
  // same, the run is slower. Before the first launch.
  void serialise_crossings();
  // Records that did, and their bytes.
  std::pair<std::uint64_t, std::uint64_t> crossings() const;
  // Puts another model in the place of a switch chip. Before the first launch.
  void install(int plane, unsigned chip, ub::SwitchChip& model);

  // --- foreign models (supernode_foreign.cpp); doors/ is what a user sees of them.

  // Throws InputError for an endpoint that does not exist or takes part, and once the machine has run.
  ForeignSurroundings foreign_surroundings(int endpoint);
  // Joins a port to all sub-planes. It must outlive the runs, or leave().
  void join(ForeignPort& port);
  void leave(ForeignPort& port);
  // All of them handle their events at least so long before SystemC's time has come to them; less than a
  // link's latency. Windows are as much longer.
  void set_foreign_lookahead(Time ahead);
  // That modules run in.
  Time window() const;
  // What a packet takes at least from a sub-plane to an endpoint.
  Time link_lookahead() const { return from_plane_; }
  // Ends the run, which throws this.
  void fail(std::exception_ptr failure);
  // Something happened that counts as progress.
  void progressed(Time at);

  // What listeners attach to; see probes.h.
  Probes& probes() { return probes_; }
  // From now on all that is needed to find out what each transaction waited for is written into the log.
  // Before the first launch.
  // `requests`: every request of a core to memory too, for an explanation.
  void keep_log(npu::TraceLog& log, bool requests = false);
  // From now on transactions are told, and when their requests arrive.
  // `side_by_side`: who hears of them may be told by several threads, of each die by one at a time.
  void follow_transactions(bool side_by_side = false);
  // From now on every packet on every link, or on those chosen, is told. Takes the place of other link
  // observers; a second call does nothing.
  void trace_links(const std::function<bool(const LinkName&)>& chosen = {});
  void visit_links(const std::function<void(const LinkName&)>& visit) const;
  // Those under way on the Unified Bus, by the index that a hop names.
  const ub::PacketPool& packets() const;

 private:
  struct Parts;
  using LinkVisitor = std::function<void(const LinkName&, const std::function<void(ub::LinkObserver*)>&)>;
  void each_link(const LinkVisitor& visit) const;

  void launch_started(int die, const npu::LaunchRecord& record) override;
  void launch_finished(int die, const npu::LaunchRecord& record) override;
  void task_finished(int die, const npu::TaskRecord& record) override;
  void transaction_begun(const npu::TransactionBegun& transaction) override;
  void transaction_completed(const npu::TransactionCompleted& transaction) override;
  void transaction_arrived(sim::TransactionId id, int target, std::uint32_t bytes, Time at) override;
  // How long the windows are, and when those of fabrics' modules begin.
  void set_lookahead();
  // supernode_wiring.cpp
  void add_accelerators();
  template <class Part>
  void add_packages(const std::function<std::unique_ptr<Part>(int number, Time& last_progress)>& make);
  void connect(npu::Accelerator& accelerator);
  // Of the Unified Bus: those of dies and sockets, then those of foreign models.
  std::vector<ub::UbController*> all_controllers() const;
  void add_sockets(const ub::Parameters& fabric);
  // A registry function for each die, sub-plane, and the sockets.
  std::vector<std::function<void(sim::Statistics&)>> declarations() const;
  void kernel_output(int die, int core, std::string_view text) override;
  npu::BackingStore* memory_of(std::uint64_t address) override;
  void log_idle() const;
  // Between windows: takes together what workers have by themselves.
  void settle();
  void exchange_crossings();
  // Calls `call` now, or where modules run side by side, once they have run: then in the order in which one
  // thread would have.
  template <class Call>
  void call_in_order(int die, Call&& call);
  void look_at_foreign();
  // Lets the machine run for so long, less when it stops by itself.
  void advance(Time length);
  // The same, and throws what stopped it; false when interrupted.
  bool step(Time length);
  Time next_step(Time slice) const;
  // Throws MachineError. `step`: how far the run is about to go.
  void look_for_stuck_cores(Time step);
  // What has not finished, and what each core waits for.
  std::string report_unfinished() const;
  [[noreturn]] void report_hang(const std::string& why) const;
  // Before a step: whether the run has used up its time. Throws sim::TimeLimitReached.
  void check_time_limit(Time slice, Time step) const;

  const hw::Machine& machine_;
  SupernodeOptions options_;
  std::unique_ptr<Parts> parts_;
  std::vector<std::vector<npu::LaunchRecord>> records_;  // by die and launch
  std::atomic<std::size_t> unfinished_ = 0;
  Time to_plane_, from_plane_;  // at least, from an accelerator to a module of a fabric and back
  Time looked_for_stuck_{};
  Probes probes_;
};

}  // namespace cm384::supernode
