#include "supernode/window_process.h"

namespace cm384::supernode {
namespace {

sc_core::sc_time to_sc_time(Time t) {
  return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(t.ps));
}

}  // namespace

WindowProcess::WindowProcess(const sc_core::sc_module_name& name, sim::EventQueue& queue, RunControl& control)
    : sc_module(name), queue_(queue), control_(control) {
  SC_HAS_PROCESS(WindowProcess);
  SC_METHOD(step);
  dont_initialize();
  sensitive << wake_;
  queue_.set_listener(this);
}

void WindowProcess::wake_at(Time t) {
  if (!running_) arm(t);
}

void WindowProcess::arm(Time t) {
  if (t == Time::never()) return;
  const Time now{static_cast<std::int64_t>(sc_core::sc_time_stamp().value())};
  Time start{t.ps - t.ps % control_.window.ps};
  if (start < now) start = now;
  if (start >= armed_) return;
  armed_ = start;
  wake_.notify(to_sc_time(start - now));
}

void WindowProcess::step() {
  const Time now{static_cast<std::int64_t>(sc_core::sc_time_stamp().value())};
  armed_ = Time::never();
  if (control_.failure || control_.hung) return;
  if (now - control_.last_progress > control_.patience) control_.hung = true;
  if (control_.hung || (control_.interrupted != nullptr && *control_.interrupted != 0)) {
    arm(queue_.next_time());
    sc_core::sc_pause();
    return;
  }
  running_ = true;
  try {
    run_window(Time{now.ps - now.ps % control_.window.ps} + control_.window);
  } catch (...) {
    // SystemC would turn it into a report of its own; the run rethrows it as it is.
    control_.failure = std::current_exception();
    sc_core::sc_pause();
  }
  running_ = false;
  arm(queue_.next_time());
}

}  // namespace cm384::supernode
