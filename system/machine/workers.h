// The host's threads that run the modules of one phase side by side (docs/time.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace cm384::supernode {

// Workers that modules are assigned to, for each thread: with more than one, a thread that is done early
// takes work from another.
inline constexpr unsigned kWorkersPerThread = 4;

// Cores of the host that this process may use.
unsigned host_cores();

// Workers 0 to count - 1, and the threads that act for them, the caller of run() among them. There are
// several workers per thread: each round the threads share the workers out among themselves, so that nobody
// waits for a thread that sleeps, or that the host has taken off its core, but for the worker it has begun to
// act for. Threads without work stay awake for some microseconds and then sleep: other processes need the
// core.
class Workers {
 public:
  // Threads beyond `count` are not made.
  Workers(unsigned count, unsigned threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  unsigned count() const { return static_cast<unsigned>(taken_.size()); }
  unsigned threads() const { return threads_; }
  // Calls job(w) once for every worker, side by side, and returns when all have returned. The job must not
  // throw.
  void run(const std::function<void(unsigned)>& job);

 private:
  // The round in which a worker was last claimed; each on its own line of the host's cache.
  struct alignas(64) Taken {
    std::atomic<std::uint32_t> round{0};
  };

  void start_helpers();
  void serve(unsigned thread);
  // Runs the job of all workers that no other thread has claimed in this round.
  void work(unsigned thread, std::uint32_t round);
  void act(unsigned worker, std::uint32_t round);

  unsigned threads_;
  std::vector<Taken> taken_;          // by worker
  std::vector<std::thread> helpers_;  // made by the first run()
  const std::function<void(unsigned)>* job_ = nullptr;
  std::atomic<bool> leaving_ = false;
  alignas(64) std::atomic<std::uint32_t> round_{0};
  alignas(64) std::atomic<std::uint32_t> left_{0};  // workers whose job has not returned
};

}  // namespace cm384::supernode
