// The time-ordered queue that each simulated module (a die, a sub-plane, the CPU sockets) owns.
//
// Modules run in windows: a module handles all its events of [t, t + window) in one activation, which is
// exact because nothing crosses from one module to another in less than the window (the shortest link latency
// of the machine). Ties in time are broken by (source module, sequence), so the order never depends on
// addresses or on which module happened to run first.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <vector>

#include "hw/units.h"

namespace cm384::sim {

// One entry: plain data, dispatched by a switch over `unit` and `what`, both given meaning by the owner of
// the queue.
struct Event {
  Time at;
  std::uint64_t order = 0;  // set by EventQueue: source module and sequence, breaks ties in time
  std::uint32_t unit = 0;   // which part of the module (a core, a port)
  std::uint32_t what = 0;   // which handler
  std::uint64_t argument = 0;
};

// Told when a queue gets an event earlier than all it held; a module re-arms its wake-up with it.
class WakeListener {
 public:
  virtual void wake_at(Time t) = 0;

 protected:
  ~WakeListener() = default;
};

// A binary heap for the open window and buckets for the windows after it. Push is O(1) outside the open
// window.
class EventQueue {
 public:
  // `source` numbers the owning module; it must be unique in a machine. `bucket` is the width of one bucket.
  explicit EventQueue(std::uint32_t source = 0, Time bucket = Time{65'536})
      : source_(source), bucket_ps_(bucket.ps), wheel_(kBuckets) {}

  std::uint32_t source() const { return source_; }
  void set_listener(WakeListener* listener) { listener_ = listener; }

  // Time of the event being handled, or of the last handled one.
  Time now() const { return now_; }

  // Adds an event of the owner itself. `at` must not lie before now().
  void push(Time at, std::uint32_t unit, std::uint32_t what, std::uint64_t argument = 0) {
    insert(Event{at, tie(source_, sequence_++), unit, what, argument});
  }
  // Adds an event sent by the module whose queue is `from`; ties sort by the sender.
  void push_from(EventQueue& from, Time at, std::uint32_t unit, std::uint32_t what,
                 std::uint64_t argument = 0) {
    insert(Event{at, tie(from.source_, from.sequence_++), unit, what, argument});
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  // Earliest time held; Time::never() when empty.
  Time next_time() {
    if (size_ == 0) return Time::never();
    open_next_bucket();
    return heap_.front().at;
  }

  // Hands every event before `end` to `handle(const Event&)`, in order; the handler may push.
  template <class Handler>
  void run_until(Time end, Handler&& handle) {
    while (size_ != 0) {
      open_next_bucket();
      if (heap_.front().at >= end) break;
      std::pop_heap(heap_.begin(), heap_.end(), Later{});
      const Event e = heap_.back();
      heap_.pop_back();
      --size_;
      now_ = e.at;
      ++handled_;
      handle(e);
    }
  }
  // Events handled since construction.
  std::uint64_t handled() const { return handled_; }

 private:
  static constexpr std::int64_t kBuckets = 256;  // a power of two
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at.ps != b.at.ps ? a.at.ps > b.at.ps : a.order > b.order;
    }
  };
  static std::uint64_t tie(std::uint32_t source, std::uint64_t sequence) {
    return (std::uint64_t{source} << 44) | (sequence & ((std::uint64_t{1} << 44) - 1));
  }

  void insert(const Event& e) {
    assert(e.at >= now_);
    const std::int64_t bucket = e.at.ps / bucket_ps_;
    if (bucket <= open_) {
      heap_.push_back(e);
      std::push_heap(heap_.begin(), heap_.end(), Later{});
    } else if (bucket < open_ + kBuckets) {
      wheel_[static_cast<std::size_t>(bucket & (kBuckets - 1))].push_back(e);
      ++in_wheel_;
    } else {
      far_.push_back(e);
      std::push_heap(far_.begin(), far_.end(), Later{});
    }
    ++size_;
    if (listener_ != nullptr) listener_->wake_at(e.at);
  }

  // Makes heap_ non-empty and holding the earliest event; requires size_ > 0.
  void open_next_bucket() {
    while (heap_.empty()) {
      if (in_wheel_ == 0) open_ = far_.front().at.ps / bucket_ps_ - 1;
      ++open_;
      while (!far_.empty() && far_.front().at.ps / bucket_ps_ < open_ + kBuckets) {
        std::pop_heap(far_.begin(), far_.end(), Later{});
        const Event e = far_.back();
        far_.pop_back();
        wheel_[static_cast<std::size_t>((e.at.ps / bucket_ps_) & (kBuckets - 1))].push_back(e);
        ++in_wheel_;
      }
      auto& bucket = wheel_[static_cast<std::size_t>(open_ & (kBuckets - 1))];
      if (bucket.empty()) continue;
      in_wheel_ -= bucket.size();
      heap_.swap(bucket);
      std::make_heap(heap_.begin(), heap_.end(), Later{});
    }
  }

  std::uint32_t source_;
  std::int64_t bucket_ps_;
  Time now_{};
  std::uint64_t sequence_ = 0;
  std::uint64_t handled_ = 0;
  std::size_t size_ = 0;
  std::int64_t open_ = 0;  // bucket whose events are in heap_; earlier buckets are empty
  std::vector<Event> heap_;
  std::vector<std::vector<Event>> wheel_;
  std::size_t in_wheel_ = 0;
  std::vector<Event> far_;  // beyond the wheel, a heap
  WakeListener* listener_ = nullptr;
};

}  // namespace cm384::sim
