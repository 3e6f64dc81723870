// Plays a machine's trace log in a thread of its own while the simulation goes on. What comes out depends on
// the order of the log alone.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "npu_core/causality/trace_log.h"

namespace cm384::observe {

class TraceThread final : public npu::TraceLog {
 public:
  // `play` is called in the other thread, with whole entries in order.
  explicit TraceThread(std::function<void(std::span<const std::uint64_t>)> play);
  ~TraceThread() override;  // drops what has not been played
  TraceThread(const TraceThread&) = delete;
  TraceThread& operator=(const TraceThread&) = delete;

  // Returns once all that was written has been played; what it does is then seen by the caller. Throws what
  // `play` threw, as writing does.
  void drain();

 private:
  // Chunks of half a megabyte that wait; the simulation waits where there are more.
  static constexpr std::size_t kMostWaiting = 16;
  struct Full {
    Chunk chunk;
    std::size_t words = 0;
  };

  Chunk exchange(Chunk full, std::size_t words) override;
  void work();
  void rethrow(std::unique_lock<std::mutex>& lock);

  std::function<void(std::span<const std::uint64_t>)> play_;
  std::mutex mutex_;
  std::condition_variable given_, taken_;
  std::deque<Full> waiting_;
  std::vector<Chunk> empty_;
  bool playing_ = false, ends_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // the last: it uses the others
};

}  // namespace cm384::observe
