// What a run would gain from more threads than the host has: the events of each window, shared out among
// threads as Workers shares them (`--threads-what-if`).
//
// An event counts as one unit of work whatever it does, and waking threads costs nothing here, so this is a
// bound that the modules' sizes set: no host is faster.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cm384::supernode {

class ThreadsWhatIf {
 public:
  // 0 threads: counts nothing.
  explicit ThreadsWhatIf(unsigned threads);

  bool asked() const { return !threads_.empty(); }
  unsigned threads() const { return static_cast<unsigned>(threads_.size()); }
  // One window of a phase: events by module, in the order in which modules are assigned to workers.
  void add_window(std::span<const std::uint64_t> events_of_modules);

  // Of all windows so far.
  std::uint64_t events() const { return events_; }
  // Those of the busiest thread of each window, added up: the run takes at least as long as these do.
  std::uint64_t longest() const { return longest_; }

 private:
  std::vector<std::uint64_t> workers_, threads_;  // events of this window
  std::uint64_t events_ = 0, longest_ = 0;
};

}  // namespace cm384::supernode
