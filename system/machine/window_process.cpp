#include "system/machine/window_process.h"

#include <algorithm>
#include <utility>

#include "system/machine/peer_exchange.h"

namespace cm384::supernode {
namespace {

sc_core::sc_time to_sc_time(Time t) {
  return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(t.ps));
}

}  // namespace

bool RunControl::out_of_patience(Time now) {
  // A core that spins or polls comes back much sooner.
  constexpr Time kLongestStep{10'000'000};
  if (std::exchange(idle_work.seen_progress, last_progress) != last_progress) idle_work.time = Time{};
  idle_work.time += std::min(now - idle_work.looked, std::max(kLongestStep, Time{patience.ps / 16}));
  idle_work.looked = now;
  return idle_work.time > patience;
}

void WindowModule::wake_at(Time t) {
  if (!running_ && process_ != nullptr) process_->wake(*this, t);
}

void WindowModule::drop_posted() {
  for (sim::EventQueue* queue : queues_) {
    bool any = false;
    queue->each_posted([&](sim::Event& event) {
      event.at = Time{};
      any = true;
    });
    if (any) queue->run_until(Time{1}, [](const sim::Event&) {});
  }
  process_->next_[number_] = Time::never();
}

Time WindowModule::next_time() const {
  Time next = Time::never();
  for (sim::EventQueue* queue : queues_) next = std::min(next, queue->next_time());
  return next;
}

std::uint64_t WindowModule::handled() const {
  std::uint64_t sum = 0;
  for (const sim::EventQueue* queue : queues_) sum += queue->handled();
  return sum;
}

WindowProcess::WindowProcess(const sc_core::sc_module_name& name, RunControl& control, const Time& phase)
    : sc_module(name),
      control_(control),
      phase_(phase),
      due_(control.workers.count()),
      handled_(control.workers.count()) {
  SC_HAS_PROCESS(WindowProcess);
  SC_METHOD(step);
  dont_initialize();
  sensitive << wake_;
}

void WindowProcess::add(WindowModule& module) {
  module.process_ = this;
  module.number_ = modules_.size();
  modules_.push_back(&module);
  next_.push_back(Time::never());
  failures_.emplace_back();
  counted_.push_back(0);
  for (sim::EventQueue* queue : module.queues_) {
    queue->set_workers(control_.workers.count());
    queue->set_listener(&module);
  }
}

Time WindowProcess::window_start(Time t) const {
  if (t < phase_) return phase_ - control_.window;
  return Time{t.ps - (t.ps - phase_.ps) % control_.window.ps};
}

void WindowProcess::wake(WindowModule& module, Time t) {
  if (control_.running) {
    control_.wakes.mine().push_back({&module, t});
  } else {
    note({&module, t});
  }
}

void WindowProcess::note(const RunControl::Wake& wake) {
  Time& next = next_[wake.module->number_];
  if (wake.at >= next) return;
  next = wake.at;
  if (control_.peers == nullptr) arm(wake.at);
}

void WindowProcess::agree_on_next(Time t) {
  agreed_ = t;
  arm(t);
}

void WindowProcess::arm_next() {
  arm(control_.peers == nullptr ? earliest() : agreed_);
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
  if (control_.out_of_patience(now)) control_.hung = true;
  if (control_.hung || (control_.interrupted != nullptr && *control_.interrupted != 0)) {
    arm_next();
    sc_core::sc_pause();
    return;
  }
  const Time begin = window_start(now);
  if (phase_ == Time{}) control_.reached = std::max(control_.reached, begin + control_.window);
  run_modules(begin, begin + control_.window);
  const auto failed = std::find_if(failures_.begin(), failures_.end(),
                                   [](const std::exception_ptr& thrown) { return thrown != nullptr; });
  if (failed != failures_.end()) {
    // SystemC would turn it into a report of its own; the run rethrows it as it is.
    control_.failure = std::exchange(*failed, nullptr);
    control_.failed_module = static_cast<std::uint64_t>(failed - failures_.begin());
  }
  if (control_.peers != nullptr) synchronize();
  arm_next();
  if (control_.failure) sc_core::sc_pause();
}

void WindowProcess::synchronize() {
  try {
    control_.peers->synchronize();
  } catch (...) {
    control_.failure = std::current_exception();
    control_.apart = true;
  }
}

void WindowProcess::run_modules(Time begin, Time end) {
  const auto workers = static_cast<unsigned>(due_.size());
  control_.running = true;
  if (control_.choice.what_if().asked()) of_window_.assign(modules_.size(), 0);
  if (control_.choice.threads() > 1 && last_handled_ >= control_.worth_sharing) {
    for (auto& due : due_) due.clear();
    for (std::size_t n = 0; n < modules_.size(); ++n) {
      if (next_[n] < end) due_[n % workers].push_back(n);
    }
    control_.side_by_side = true;
    ++control_.shared_windows;
    control_.workers.run([&](unsigned worker) {
      for (const std::size_t n : due_[worker]) run_module(n, begin, end);
    });
    control_.side_by_side = false;
  } else {
    for (std::size_t n = 0; n < modules_.size(); ++n) {
      if (next_[n] >= end) continue;
      const sim::WorkerScope scope(static_cast<unsigned>(n % workers));
      run_module(n, begin, end);
    }
  }
  control_.running = false;
  if (control_.choice.what_if().asked()) control_.choice.what_if().add_window(of_window_);
  last_handled_ = 0;
  handled_.each([this](std::uint64_t& events) { last_handled_ += std::exchange(events, 0); });
  control_.wakes.each([](std::vector<RunControl::Wake>& wakes) {
    for (const RunControl::Wake& wake : wakes) wake.module->process_->note(wake);
    wakes.clear();
  });
  if (!control_.settle) return;
  try {
    control_.settle();
  } catch (...) {  // of a listener; what a module threw came before
    if (failures_.back() == nullptr) failures_.back() = std::current_exception();
  }
}

void WindowProcess::run_module(std::size_t number, Time begin, Time end) {
  WindowModule& module = *modules_[number];
  module.running_ = true;
  try {
    module.run_window(begin, end);
  } catch (...) {
    failures_[number] = std::current_exception();
  }
  module.running_ = false;
  next_[number] = module.next_time();
  const std::uint64_t handled = module.handled();
  const std::uint64_t events = handled - std::exchange(counted_[number], handled);
  handled_.mine() += events;
  if (control_.choice.what_if().asked()) of_window_[number] = events;
}

}  // namespace cm384::supernode

// Debian's libsystemc brings a main() that refers to it; the command has its own main and starts the
// simulation itself. A program of SystemC's kind brings its own.
__attribute__((weak)) int sc_main(int, char**) {
  return 0;
}
