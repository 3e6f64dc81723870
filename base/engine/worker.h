// Workers, which modules that run side by side are given to, and what each of them has for itself.
//
// A module always belongs to the same worker, and only one of the host's threads acts for a worker at a time.
// What modules of different workers share is either constant while they run or a PerWorker.
#pragma once

#include <vector>

namespace cm384::sim {

inline constexpr unsigned kMostWorkers = 64;

// The worker this thread acts for; 0 is the thread that drives SystemC.
inline thread_local constinit unsigned current_worker = 0;
inline unsigned worker() {
  return current_worker;
}

// Acts for a worker until the end of the scope.
class WorkerScope {
 public:
  explicit WorkerScope(unsigned worker) : before_(current_worker) { current_worker = worker; }
  ~WorkerScope() { current_worker = before_; }
  WorkerScope(const WorkerScope&) = delete;
  WorkerScope& operator=(const WorkerScope&) = delete;

 private:
  unsigned before_;
};

// One T a worker, on lines of the host's cache of its own.
template <class T>
class PerWorker {
 public:
  explicit PerWorker(unsigned workers = 1) : slots_(workers) {}
  // Before the first use by a worker beyond 0.
  void set_workers(unsigned workers) { slots_.resize(workers); }
  unsigned workers() const { return static_cast<unsigned>(slots_.size()); }

  T& mine() { return slots_[worker()].value; }
  T& of(unsigned worker) { return slots_[worker].value; }
  const T& of(unsigned worker) const { return slots_[worker].value; }
  template <class Visit>
  void each(Visit&& visit) {
    for (Slot& slot : slots_) visit(slot.value);
  }
  template <class Visit>
  void each(Visit&& visit) const {
    for (const Slot& slot : slots_) visit(slot.value);
  }

 private:
  struct alignas(64) Slot {
    T value{};
  };
  std::vector<Slot> slots_;
};

}  // namespace cm384::sim
