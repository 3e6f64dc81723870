#include "system/machine/workers.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <csignal>

#include "base/engine/worker.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace cm384::supernode {
namespace {

void pause() {
#if defined(__SSE2__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// Returns once `word` is no longer `old`. On an idle host rounds follow each other within microseconds, less
// than it takes to sleep and wake; where they do not, the core is another's.
void await_change(const std::atomic<std::uint32_t>& word, std::uint32_t old) {
  constexpr int kPauses = 500;  // some 20 us
  for (int n = 0; n < kPauses; ++n) {
    if (word.load(std::memory_order_acquire) != old) return;
    pause();
  }
  word.wait(old, std::memory_order_acquire);
}

}  // namespace

unsigned host_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&allowed)));
}

Workers::Workers(unsigned count, unsigned threads)
    : threads_(std::clamp(threads, 1u, count)), taken_(count) {}

Workers::~Workers() {
  leaving_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Workers::start_helpers() {
  // Signals are for the thread that drives the run.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (unsigned thread = 1; thread < threads_; ++thread)
    helpers_.emplace_back([this, thread] { serve(thread); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Workers::run(const std::function<void(unsigned)>& job) {
  if (helpers_.empty() && threads_ > 1) start_helpers();
  job_ = &job;
  left_.store(count(), std::memory_order_relaxed);
  const std::uint32_t round = round_.fetch_add(1, std::memory_order_release) + 1;
  if (threads_ > 1) round_.notify_all();
  work(0, round);
  for (;;) {
    const std::uint32_t left = left_.load(std::memory_order_acquire);
    if (left == 0) return;
    await_change(left_, left);
  }
}

// Its own workers first: what they touched last may still be in its core's cache. Then the others', from the
// end, where their thread comes last.
void Workers::work(unsigned thread, std::uint32_t round) {
  for (unsigned worker = thread; worker < count(); worker += threads_) act(worker, round);
  for (unsigned worker = count(); worker-- > 0;) act(worker, round);
}

// In each round every worker is taken once. A thread that comes late for a round finds them taken in it or in
// a later one, and leaves them alone.
void Workers::act(unsigned worker, std::uint32_t round) {
  std::uint32_t before = round - 1;
  std::atomic<std::uint32_t>& taken = taken_[worker].round;
  if (taken.load(std::memory_order_relaxed) != before) return;
  if (!taken.compare_exchange_strong(before, round, std::memory_order_acq_rel)) return;
  {
    const sim::WorkerScope scope(worker);
    (*job_)(worker);
  }
  if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
}

void Workers::serve(unsigned thread) {
  for (std::uint32_t round = 0;;) {
    await_change(round_, round);
    round = round_.load(std::memory_order_acquire);
    if (leaving_) return;
    work(thread, round);
  }
}

}  // namespace cm384::supernode
