// A simulated module as SystemC sees it: one SC_METHOD, one sc_event, one or more time-ordered queues.
//
// The method handles all events of one window [phase + k window, phase + (k + 1) window) at once. Dies and
// CPU sockets, the outer modules, have phase 0; sub-planes one of their own. Nothing goes from a die to a die
// but through a sub-plane, or from a sub-plane to another but through a die, so this is exact as long as
// every effect of an outer module on a sub-plane lies at least the phase ahead of its cause, and every effect
// the other way at least the rest of the window.
#pragma once

#include <csignal>
#include <exception>
#include <systemc>
#include <vector>

#include "sim/event_queue.h"

namespace cm384::supernode {

// State that all processes of one machine share.
struct RunControl {
  Time window{};
  Time plane_phase{};  // of sub-planes
  Time reached{};      // end of the last window that a die or socket has run
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
  // `queues`: all the module has. `phase`: 0 or that of sub-planes, in `control`, and below the window.
  WindowProcess(const sc_core::sc_module_name& name, std::vector<sim::EventQueue*> queues,
                RunControl& control, const Time& phase);
  ~WindowProcess() override = default;
  void wake_at(Time t) final;

 protected:
  // Handles every event of the queues before `end`; all before `begin` are handled.
  virtual void run_window(Time begin, Time end) = 0;

 private:
  void step();
  void arm(Time t);
  Time next_time() const;
  // Start of the window that `t` lies in; negative in the first one of a phase.
  Time window_start(Time t) const;

  std::vector<sim::EventQueue*> queues_;
  RunControl& control_;
  const Time& phase_;
  sc_core::sc_event wake_;
  Time armed_ = Time::never();  // start of the window the event is notified for
  bool running_ = false;
};

}  // namespace cm384::supernode
