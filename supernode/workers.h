// The host's threads that run the modules of one phase side by side (docs/time.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace cm384::supernode {

// Cores of the host that this process may use.
unsigned host_cores();

// Workers 0 to count - 1. Worker 0 is the thread that calls run(); the others wait for work, awake for some
// 50 us and then asleep.
class Workers {
 public:
  explicit Workers(unsigned count) : count_(count) {}
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  unsigned count() const { return count_; }
  // Calls job(w) for every worker, side by side, and returns when all have. The job must not throw.
  void run(const std::function<void(unsigned)>& job);

 private:
  void serve(unsigned worker);

  unsigned count_;
  std::vector<std::thread> threads_;  // made by the first run()
  const std::function<void(unsigned)>* job_ = nullptr;
  bool leaving_ = false;
  alignas(64) std::atomic<std::uint32_t> round_{0};
  alignas(64) std::atomic<std::uint32_t> working_{0};
};

}  // namespace cm384::supernode
