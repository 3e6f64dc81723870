#include "system/observe/trace_thread.h"

#include <utility>

namespace cm384::observe {

TraceThread::TraceThread(std::function<void(std::span<const std::uint64_t>)> play)
    : play_(std::move(play)), thread_([this] { work(); }) {}

TraceThread::~TraceThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    waiting_.clear();
  }
  given_.notify_one();
  thread_.join();
}

void TraceThread::rethrow(std::unique_lock<std::mutex>& lock) {
  if (!failure_) return;
  const std::exception_ptr failure = std::exchange(failure_, nullptr);
  lock.unlock();
  std::rethrow_exception(failure);
}

npu::TraceLog::Chunk TraceThread::exchange(Chunk full, std::size_t words) {
  std::unique_lock lock(mutex_);
  taken_.wait(lock, [this] { return waiting_.size() < kMostWaiting || failure_; });
  rethrow(lock);
  if (full) {
    waiting_.push_back({std::move(full), words});
    given_.notify_one();
  }
  if (empty_.empty()) return std::make_unique_for_overwrite<std::uint64_t[]>(kChunkWords);
  Chunk chunk = std::move(empty_.back());
  empty_.pop_back();
  return chunk;
}

void TraceThread::drain() {
  turn();
  std::unique_lock lock(mutex_);
  taken_.wait(lock, [this] { return (waiting_.empty() && !playing_) || failure_; });
  rethrow(lock);
}

void TraceThread::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    given_.wait(lock, [this] { return !waiting_.empty() || ends_; });
    if (ends_) return;
    Full full = std::move(waiting_.front());
    waiting_.pop_front();
    playing_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      play_({full.chunk.get(), full.words});
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    playing_ = false;
    empty_.push_back(std::move(full.chunk));
    if (failure) {
      failure_ = failure;
      waiting_.clear();
    }
    taken_.notify_one();
  }
}

}  // namespace cm384::observe
