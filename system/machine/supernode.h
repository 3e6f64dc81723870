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
#include "system/machine/ownership.h"
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
  unsigned what_if_threads = 0;           // so many threads are reckoned with; 0: none
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
  // Numbers of the dies that take part, in order.
  std::vector<int> dies() const;
  const std::vector<int>& sockets() const { return options_.sockets; }
  // Throws InputError for a die that does not take part, or that is no Ascend die.
  npu::Die& die(int number) const;
  // Throws InputError for one that does not take part.
  npu::Accelerator& accelerator(int number) const;
  bool takes_part(int die) const;
  npu::BackingStore& socket_store(int number) const;
  // Its interface on the RDMA plane. Throws InputError where the plane does not take part.
  rdma::Interface& rdma_interface(int die) const;
  bool has_rdma() const;
  // The Unified Bus controller of a die: ports, counters, fault and observer hooks.
  ub::UbController& controller(int die) const;
  // Throws InputError for one that does not exist.
  ub::SubPlane& plane(int number) const;

  std::uint32_t launch(int die, npu::LaunchRequest request, Time at);
  const npu::LaunchRecord& record(int die, std::uint32_t number) const;
  // Earliest time at which a launch may start.
  Time earliest() const;
  // Runs until all launches have finished. Throws MachineError when the machine hangs; false when
  // interrupted.
  bool run();
  // Runs for `length`, whatever has finished: for foreign models that act by themselves.
  bool run_for(Time length);

  SupernodeCounts counts() const;

  // Every counter of every part: "die3.aiv7.mte3.busy_ps". Declares a hundred thousand counters a hundred
  // dies; visit_statistics() gives them part by part (a die, a sub-plane, the sockets) for one pass.
  void declare_statistics(sim::Statistics& to) const;
  void visit_statistics(const std::function<void(const sim::Statistics&)>& visit) const;

  // Attaches a driver to a die and gives the unit of its events there; before the machine runs or between two
  // of its windows. The driver outlives the runs.
  std::uint32_t attach(int die, Driver& driver);
  // Number of unfinished launches and of unfinished work of drivers: run() continues while it is not 0.
  // Drivers count their own.
  std::atomic<std::size_t>& unfinished() { return unfinished_; }
  // The least time from a cause on one die to its effect on another one by the Unified Bus.
  Time lookahead() const;
  // An observer or driver of several modules (a replay, a debugger, host threads that synchronise) declares
  // that it needs one order of their events, with a noun for the result: "a replay". From the next window on
  // modules run one after another on one thread. Throws InputError where several processes simulate the
  // machine, unless an order among the dies of each will do.
  enum class OrderOf { machine, process };
  void need_order(std::string_view whoever, OrderOf order = OrderOf::machine);
  // Number of workers that modules are assigned to, whatever thread runs them (base/engine/worker.h).
  unsigned workers() const;
  // The worker that runs the events of a die that takes part.
  unsigned worker_of_die(int die) const;
  // How many threads run modules, and why so many (thread_choice.h).
  const ThreadChoice& thread_choice() const;
  // Windows whose modules ran side by side; those with little to do are run by one thread.
  std::uint64_t shared_windows() const;
  // Replaces the table of a sub-plane's chips and links by one with other parts out of order. Before the
  // first launch. Throws InputError where its detours take more lanes than there are.
  void set_network(int plane, std::shared_ptr<const ub::Network> network);
  // Schedules such changes while the machine runs: all changes of a sub-plane in the order of their times; a
  // link that loses part of its physical lanes. Before the first launch. Throws InputError also where one of
  // the sub-plane's switch chips is another model.
  void change_networks(int plane, const std::vector<ub::NetworkChange>& changes);
  void narrow(int plane, unsigned link, double width, Time at);
  // From now on everything that passes between modules is serialised to bytes and back between windows;
  // results are the same, the run is slower. Before the first launch.
  void serialise_crossings();
  // Number of records that were serialised, and their bytes.
  std::pair<std::uint64_t, std::uint64_t> crossings() const;
  // Puts another model in the place of a switch chip. Before the first launch.
  void install(int plane, unsigned chip, ub::SwitchChip& model);

  // Foreign models at its edges (supernode_foreign.cpp); doors/ is what a user sees of them.
  ForeignPorts& foreign() { return foreign_; }
  // Which of several processes simulates which of its parts.
  const Ownership& owners() const;

  // What listeners attach to; see probes.h.
  Probes& probes() { return probes_; }
  // From now on writes into the log everything that decides what each transaction waited for. Before the
  // first launch. `requests`: every request of a core to memory too, for an explanation.
  void keep_log(npu::TraceLog& log, bool requests = false);
  // From now on reports transactions and the arrivals of their requests to the probes.
  // `side_by_side`: listeners accept calls from several threads, for each die from one at a time.
  void follow_transactions(bool side_by_side = false);
  // From now on reports every packet on every link, or on the chosen ones, to the probes. Replaces other link
  // observers; a second call does nothing.
  void trace_links(const std::function<bool(const LinkName&)>& chosen = {});
  void visit_links(const std::function<void(const LinkName&)>& visit) const;
  // Packets in flight on the Unified Bus, by the index that a hop names.
  const ub::PacketPool& packets() const;

 private:
  friend class ForeignPorts;
  struct Parts;
  using LinkVisitor = std::function<void(const LinkName&, const std::function<void(ub::LinkObserver*)>&)>;
  void each_link(const LinkVisitor& visit) const;

  void launch_started(int die, const npu::LaunchRecord& record) override;
  void launch_finished(int die, const npu::LaunchRecord& record) override;
  void task_finished(int die, const npu::TaskRecord& record) override;
  void transaction_begun(const npu::TransactionBegun& transaction) override;
  void transaction_completed(const npu::TransactionCompleted& transaction) override;
  void transaction_arrived(sim::TransactionId id, int target, std::uint32_t bytes, Time at) override;
  // Decides how long windows are, and when those of fabric modules begin.
  void set_lookahead();
  // supernode_wiring.cpp
  void add_accelerators();
  template <class Part>
  void add_packages(const std::function<std::unique_ptr<Part>(int number, Time& last_progress)>& make);
  void connect(npu::Accelerator& accelerator);
  // Of the Unified Bus: those of dies and sockets, then those of foreign models.
  std::vector<ub::UbController*> all_controllers() const;
  void add_sockets(const ub::Parameters& fabric);
  // One function for each die, sub-plane and for the sockets, which declares its counters.
  std::vector<std::function<void(sim::Statistics&)>> declarations() const;
  void kernel_output(int die, int core, std::string_view text) override;
  npu::BackingStore* memory_of(std::uint64_t address) override;
  void log_idle() const;
  // Between windows: merges what workers have collected separately.
  void settle();
  void exchange_crossings();
  // Calls `call` now or, where modules run side by side, after the window in the order of a single thread.
  template <class Call>
  void call_in_order(int die, Call&& call);
  // Runs the machine for `length`, or less when it stops by itself.
  void advance(Time length);
  // As advance(), but rethrows the error that stopped the machine; false when interrupted.
  bool step(Time length);
  Time next_step(Time slice) const;
  // Throws MachineError. `step`: how far the run is about to go.
  void check_for_stuck_cores(Time step);
  // For hang reports: what has not finished, and what each core waits for.
  std::string report_unfinished() const;
  [[noreturn]] void report_hang(const std::string& why) const;
  // Before a step: whether the run has used up its time. Throws sim::TimeLimitReached.
  void check_time_limit(Time slice, Time step) const;

  const hw::Machine& machine_;
  SupernodeOptions options_;
  std::unique_ptr<Parts> parts_;
  ForeignPorts foreign_{*this};
  std::vector<std::vector<npu::LaunchRecord>> records_;  // by die and launch
  std::atomic<std::size_t> unfinished_ = 0;
  Time to_plane_, from_plane_;  // at least, from an accelerator to a module of a fabric and back
  Time last_stuck_check_{};
  Probes probes_;
};

}  // namespace cm384::supernode
