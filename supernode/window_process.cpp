#include "supernode/window_process.h"

#include <algorithm>

namespace cm384::supernode {
namespace {

sc_core::sc_time to_sc_time(Time t) {
  return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(t.ps));
}

}  // namespace

WindowProcess::WindowProcess(const sc_core::sc_module_name& name, std::vector<sim::EventQueue*> queues,
                             RunControl& control, const Time& phase)
    : sc_module(name), queues_(std::move(queues)), control_(control), phase_(phase) {
  SC_HAS_PROCESS(WindowProcess);
  SC_METHOD(step);
  dont_initialize();
  sensitive << wake_;
  for (sim::EventQueue* queue : queues_) queue->set_listener(this);
}

void WindowProcess::wake_at(Time t) {
  if (!running_) arm(t);
}

Time WindowProcess::next_time() const {
  Time next = Time::never();
  for (sim::EventQueue* queue : queues_) next = std::min(next, queue->next_time());
  return next;
}

Time WindowProcess::window_start(Time t) const {
  if (t < phase_) return phase_ - control_.window;
  return Time{t.ps - (t.ps - phase_.ps) % control_.window.ps};
}

void WindowProcess::arm(Time t) {
  if (t == Time::never()) return;
  const Time now{static_cast<std::int64_t>(sc_core::sc_time_stamp().value())};
  const Time start = std::max(window_start(t), now);
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
    arm(next_time());
    sc_core::sc_pause();
    return;
  }
  running_ = true;
  try {
    const Time begin = window_start(now);
    if (phase_ == Time{}) control_.reached = std::max(control_.reached, begin + control_.window);
    run_window(begin, begin + control_.window);
  } catch (...) {
    // SystemC would turn it into a report of its own; the run rethrows it as it is.
    control_.failure = std::current_exception();
    sc_core::sc_pause();
  }
  running_ = false;
  arm(next_time());
}

}  // namespace cm384::supernode
