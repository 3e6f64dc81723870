#include "system/machine/threads_what_if.h"

#include <algorithm>

#include "system/machine/workers.h"

namespace cm384::supernode {

ThreadsWhatIf::ThreadsWhatIf(unsigned threads) : workers_(threads * kWorkersPerThread), threads_(threads) {}

// A thread that has finished a worker takes the next one: in order, each goes to whom has least to do so far.
void ThreadsWhatIf::add_window(std::span<const std::uint64_t> events_of_modules) {
  std::ranges::fill(workers_, 0);
  std::ranges::fill(threads_, 0);
  for (std::size_t n = 0; n < events_of_modules.size(); ++n)
    workers_[n % workers_.size()] += events_of_modules[n];
  for (const std::uint64_t events : workers_) {
    events_ += events;
    *std::ranges::min_element(threads_) += events;
  }
  longest_ += std::ranges::max(threads_);
}

}  // namespace cm384::supernode
