// Simulated modules as SystemC sees them: one SC_METHOD a phase, which runs the windows of its modules.
//
// A module handles all events of one window [phase + k window, phase + (k + 1) window) at once. Dies and
// CPU sockets, the outer modules, have phase 0; sub-planes one of their own. Nothing goes from a die to a die
// but through a sub-plane, or from a sub-plane to another but through a die, so this is exact as long as
// every effect of an outer module on a sub-plane lies at least the phase ahead of its cause, and every effect
// the other way at least the rest of the window. For the same reason the modules of a phase may run side by
// side on several of the host's threads.
#pragma once

#include <algorithm>
#include <csignal>
#include <exception>
#include <functional>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "base/engine/event_queue.h"
#include "base/engine/worker.h"
#include "system/machine/thread_choice.h"
#include "system/machine/workers.h"
#include "ub_fabric/crossing.h"

namespace cm384::supernode {

class PeerExchange;
class WindowModule;

// When the windows of outer modules begin.
inline constexpr Time kOuterPhase{};

// State that both phases of one machine share.
struct RunControl {
  // `threads`: asked for, and where that number is from. `what_if_threads`: reckoned with; 0: none.
  RunControl(unsigned count, unsigned threads, std::string threads_why, unsigned what_if_threads)
      : workers(count, threads),
        choice(threads, workers.threads(), std::move(threads_why), what_if_threads),
        wakes(count) {}

  Time window{};
  Time plane_phase{};  // of sub-planes
  Time reached{};      // end of the last window that a die or socket has run
  // Last time anything happened that counts as progress: a write to memory, a cross-core flag, a launch.
  Time last_progress{};
  Time patience = Time::never();
  bool hung = false;
  // At the start of each window: whether the machine has been at work for longer than its patience without
  // progress. What is yet to come is no progress. Of a stretch in which nothing happens at all little counts
  // as work: it may well end with a launch.
  bool out_of_patience(Time now);
  // Set from outside (a signal handler) to end the run at the next window.
  const volatile std::sig_atomic_t* interrupted = nullptr;
  // The first exception a module threw, by the order of modules; SystemC must not see it.
  std::exception_ptr failure;
  std::uint64_t failed_module = 0;  // who threw it, by its number in its phase
  bool apart = false;               // it is no failure of which the other processes know

  Workers workers;
  std::uint64_t worth_sharing = 0;  // events of a window
  ThreadChoice choice;              // how many of the workers' threads run modules
  std::function<void()> settle;     // called between windows, while no module runs
  PeerExchange* peers = nullptr;    // where other processes own modules of the same machine

  struct Wake {
    WindowModule* module;
    Time at;
  };
  struct IdleWork {
    Time looked;         // time of the last window's start
    Time seen_progress;  // last_progress then
    Time time;           // at work since
  };
  IdleWork idle_work;

  bool running = false;                       // modules are at work
  bool side_by_side = false;                  // on more threads than one
  std::uint64_t shared_windows = 0;           // windows of a phase that ran so
  sim::PerWorker<std::vector<Wake>> wakes{};  // told meanwhile
};

class WindowProcess;

class WindowModule : public sim::WakeListener {
 public:
  // `queues`: all the module has.
  explicit WindowModule(std::vector<sim::EventQueue*> queues) : queues_(std::move(queues)) {}
  virtual ~WindowModule() = default;
  WindowModule(const WindowModule&) = delete;
  WindowModule& operator=(const WindowModule&) = delete;

  void wake_at(Time t) final;
  WindowProcess* process() const { return process_; }
  // All queues of the module.
  const std::vector<sim::EventQueue*>& queues() const { return queues_; }
  // Discards what other modules have posted, of a module that runs in another process.
  void drop_posted();

  // From hold_credits() on, which is called before the first window, what other modules post for it goes
  // through `crossings`.
  virtual void hold_credits() = 0;
  virtual void exchange(ub::Crossings& crossings) = 0;

 protected:
  // Handles every event of its queues before `end`; those before `begin` are already handled.
  virtual void run_window(Time begin, Time end) = 0;

 private:
  friend class WindowProcess;
  Time next_time() const;
  std::uint64_t handled() const;

  std::vector<sim::EventQueue*> queues_;
  WindowProcess* process_ = nullptr;
  std::size_t number_ = 0;
  bool running_ = false;
};

// What has one queue and run_until(), and hold_credits() and exchange() where crossings are asked for: a
// sub-plane, the CPU sockets.
template <class Module>
class SingleModule final : public WindowModule {
 public:
  explicit SingleModule(Module& module) : WindowModule({&module.queue()}), module_(module) {}
  void hold_credits() override {
    if constexpr (kCrosses) module_.hold_credits();
  }
  void exchange(ub::Crossings& crossings) override {
    if constexpr (kCrosses) module_.exchange(crossings);
  }

 private:
  static constexpr bool kCrosses = requires(Module & module, ub::Crossings& crossings) {
    module.exchange(crossings);
  };
  void run_window(Time, Time end) override { module_.run_until(end); }
  Module& module_;
};

class WindowProcess final : public sc_core::sc_module {
 public:
  // `phase`: 0 or that of sub-planes, in `control`, and below the window.
  WindowProcess(const sc_core::sc_module_name& name, RunControl& control, const Time& phase);
  // Modules are given to workers in turn. They must outlive the process.
  void add(WindowModule& module);

  // Time of the earliest event of its modules that this process knows of.
  Time earliest() const { return *std::min_element(next_.begin(), next_.end()); }
  // Start of the window that `t` lies in; negative in the first one of a phase.
  Time window_start(Time t) const;
  // The same of all processes; the next window is that in which it lies.
  void agree_on_next(Time t);

 private:
  friend class WindowModule;
  void step();
  void synchronize();
  void run_modules(Time begin, Time end);
  void run_module(std::size_t number, Time begin, Time end);
  void wake(WindowModule& module, Time t);
  void note(const RunControl::Wake& wake);
  void arm(Time t);
  // For what comes next; where there are others, once all have met.
  void arm_next();

  RunControl& control_;
  const Time& phase_;
  std::vector<WindowModule*> modules_;
  // By module: its earliest event, what it threw, the events it has handled.
  std::vector<Time> next_;
  std::vector<std::exception_ptr> failures_;
  std::vector<std::uint64_t> counted_;
  std::vector<std::uint64_t> of_window_;  // by module: events of this window, where threads are reckoned with
  std::vector<std::vector<std::size_t>> due_;  // by worker: modules of this window
  sim::PerWorker<std::uint64_t> handled_;      // events of this window
  std::uint64_t last_handled_ = 0;             // events of the window before
  sc_core::sc_event wake_;
  Time armed_ = Time::never();   // start of the window the event is notified for
  Time agreed_ = Time::never();  // earliest event of all processes
};

}  // namespace cm384::supernode
