// A simulated module as SystemC sees it: one SC_METHOD, one sc_event, one time-ordered queue.
//
// The method handles all events of one window [t, t + window) at once. Windows are aligned to multiples of
// the window. This is exact as long as every effect of one module on another lies at least one window ahead
// of the sender's time: the window is the shortest latency between modules.
#pragma once

#include <csignal>
#include <exception>
#include <systemc>

#include "sim/event_queue.h"

namespace cm384::supernode {

// State that all processes of one machine share.
struct RunControl {
  Time window{};
  // Last time anything happened that counts as progress: a write to memory, a cross-core flag, a launch.
  Time last_progress{};
  Time patience = Time::never();
  bool hung = false;
  // Set from outside (a signal handler) to end the run at the next window.
  const volatile std::sig_atomic_t* interrupted = nullptr;
  // The first exception a module threw; SystemC must not see it.
  std::exception_ptr failure;
};

class WindowProcess : public sc_core::sc_module, public sim::WakeListener {
 public:
  WindowProcess(const sc_core::sc_module_name& name, sim::EventQueue& queue, RunControl& control);
  ~WindowProcess() override = default;
  void wake_at(Time t) final;

 protected:
  // Handles every event of the queue before `end`.
  virtual void run_window(Time end) = 0;

 private:
  void step();
  void arm(Time t);

  sim::EventQueue& queue_;
  RunControl& control_;
  sc_core::sc_event wake_;
  Time armed_ = Time::never();  // start of the window the event is notified for
  bool running_ = false;
};

}  // namespace cm384::supernode
