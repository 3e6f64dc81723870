#include "supernode/workers.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <csignal>

#include "sim/worker.h"

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

// Returns once `word` is no longer `old`. Rounds follow each other within microseconds, and to sleep and wake
// takes longer than that; where threads are more than the host's cores, the others get their turn.
void await_change(const std::atomic<std::uint32_t>& word, std::uint32_t old) {
  constexpr int kPauses = 4000, kYields = 40;
  for (int n = 0; n < kPauses + kYields; ++n) {
    if (word.load(std::memory_order_acquire) != old) return;
    n < kPauses ? pause() : std::this_thread::yield();
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

Workers::~Workers() {
  leaving_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::run(const std::function<void(unsigned)>& job) {
  if (threads_.empty() && count_ > 1) {
    // Signals are for the thread that drives the run.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned w = 1; w < count_; ++w) threads_.emplace_back([this, w] { serve(w); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  job_ = &job;
  working_.store(count_ - 1, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  {
    const sim::WorkerScope scope(0);
    job(0);
  }
  for (;;) {
    const std::uint32_t left = working_.load(std::memory_order_acquire);
    if (left == 0) return;
    await_change(working_, left);
  }
}

void Workers::serve(unsigned worker) {
  const sim::WorkerScope scope(worker);
  for (std::uint32_t round = 0;; ++round) {
    await_change(round_, round);
    if (leaving_) return;
    (*job_)(worker);
    if (working_.fetch_sub(1, std::memory_order_acq_rel) == 1) working_.notify_one();
  }
}

}  // namespace cm384::supernode
