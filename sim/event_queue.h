// The time-ordered queue that each simulated module (a die, a sub-plane, the CPU sockets) owns.
//
// Modules run in windows: a module handles all its events of [t, t + window) in one activation, which is
// exact because nothing crosses from one module to another in less than the window (the shortest link latency
// of the machine). Ties in time are broken by (source module, sequence), so the order never depends on
// addresses or on which module happened to run first.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <limits>
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

// Told when a queue gets an event earlier than all it held, and at the end of run_until() what the earliest
// event left is; a module re-arms its wake-up with it. Not told while run_until() is at work.
class WakeListener {
 public:
  virtual void wake_at(Time t) = 0;

 protected:
  ~WakeListener() = default;
};

// Three tiers: the open group of buckets, sorted; a wheel of 4096 buckets after it, unsorted lists over one
// slab; and a heap of what lies beyond the wheel. A push into the wheel is O(1), empty buckets are skipped by
// bit masks, and sorting sees only the few events of one group.
class EventQueue {
 public:
  // `source` numbers the owning module; it must be unique in a machine and below 2^20 - 1. `bucket` is the
  // width of one bucket, rounded down to a power of two: about the mean distance between events is best,
  // results do not depend on it.
  explicit EventQueue(std::uint32_t source = 0, Time bucket = Time{1024})
      : source_(source),
        shift_(static_cast<int>(
                   std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(bucket.ps, 1)))) -
               1),
        head_(kBuckets, kNone) {
    assert(source < (1u << (64 - kSequenceBits)) - 1);
  }

  std::uint32_t source() const { return source_; }
  void set_listener(WakeListener* listener) {
    listener_ = listener;
    told_ = next_time();
    if (listener_ != nullptr && size_ != 0) listener_->wake_at(told_);
  }

  // Time of the event being handled, or of the last handled one.
  Time now() const { return now_; }

  // Adds an event of the owner itself. `at` must not lie before now().
  void push(Time at, std::uint32_t unit, std::uint32_t what, std::uint64_t argument = 0) {
    insert(Event{at, tie(source_, sequence_++), unit, what, argument});
  }
  // Adds an event sent by the module whose queue is `from`; ties sort by the sender. It is put down here and
  // sorted in when the owner runs: the sender's memory accesses are elsewhere.
  void push_from(EventQueue& from, Time at, std::uint32_t unit, std::uint32_t what,
                 std::uint64_t argument = 0) {
    const Event e{at, tie(from.source_, from.sequence_++), unit, what, argument};
    if (told_ == kRunning) {
      insert(e);
      return;
    }
    posted_.push_back(e);
    tell(at);
  }

  // Adds an event that comes after all others of its time, those of one time in the order of `key` (below
  // 2^44). For events which, depending on which module ran first, the owner or the other module would add:
  // their place is the same either way.
  void push_late(Time at, std::uint64_t key, std::uint32_t unit, std::uint32_t what,
                 std::uint64_t argument = 0) {
    assert(key < (std::uint64_t{1} << kSequenceBits));
    insert(Event{at, ~((std::uint64_t{1} << kSequenceBits) - 1) | key, unit, what, argument});
  }

  bool empty() const { return size() == 0; }
  std::size_t size() const { return size_ + posted_.size(); }
  // Earliest time held; Time::never() when empty.
  Time next_time() {
    collect();
    if (size_ == 0) return Time::never();
    return front().at;
  }

  // Shows every event before `end`, in no order: for asking the host's cache early for what they will touch.
  template <class Visit>
  void survey(Time end, Visit&& visit) {
    collect();
    for (const Event& e : sorted_) visit(e);
    for (const Event& e : late_) visit(e);
    const std::int64_t last = std::min(bucket_of(end), open_ + kBuckets - 1);
    for (std::int64_t bucket = open_ + 1; bucket <= last; ++bucket) {
      for (std::uint32_t n = head_[static_cast<std::size_t>(bucket & kMask)]; n != kNone; n = slab_[n].next)
        visit(slab_[n].event);
    }
  }

  // Hands every event before `end` to `handle(const Event&)`, in order; the handler may push.
  template <class Handler>
  void run_until(Time end, Handler&& handle) {
    run_until(end, handle, [](const Event&) {});
  }
  // The same; `prefetch(const Event&)` is shown most events a few places before their turn, to ask the cache
  // for what they will touch. It must change nothing.
  template <class Handler, class Prefetch>
  void run_until(Time end, Handler&& handle, Prefetch&& prefetch) {
    collect();
    told_ = kRunning;
    std::size_t shown = 0;  // of the events next in turn in sorted_
    while (size_ != 0) {
      const Event& first = front();
      if (first.at >= end) break;
      const Event e = first;
      const std::size_t held = sorted_.size();
      pop();
      if (shown != 0 && sorted_.size() != held) --shown;
      now_ = e.at;
      ++handled_;
      // Of a group just opened the first few at once: their misses overlap.
      for (; shown < kAhead && shown < sorted_.size(); ++shown) prefetch(sorted_[sorted_.size() - 1 - shown]);
      handle(e);
    }
    told_ = next_time();
    if (listener_ != nullptr && size_ != 0) listener_->wake_at(told_);
  }
  // Events handled since construction.
  std::uint64_t handled() const { return handled_; }

 private:
  static constexpr std::int64_t kBuckets = 4096;  // 64 words of 64 bits, summed up in one word
  static constexpr std::int64_t kMask = kBuckets - 1;
  static constexpr std::int64_t kGroup = 8;  // neighbouring buckets that are opened together, a power of two
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::size_t kAhead = 4;
  static constexpr int kSequenceBits = 44;
  static constexpr Time kRunning{std::numeric_limits<std::int64_t>::min()};

  struct Node {
    Event event;
    std::uint32_t next = kNone;
  };
  static bool before(const Event& a, const Event& b) {
    return a.at.ps != b.at.ps ? a.at.ps < b.at.ps : a.order < b.order;
  }
  struct Later {
    bool operator()(const Event& a, const Event& b) const { return before(b, a); }
  };
  static std::uint64_t tie(std::uint32_t source, std::uint64_t sequence) {
    return (std::uint64_t{source} << kSequenceBits) | sequence;
  }
  std::int64_t bucket_of(Time t) const { return t.ps >> shift_; }

  void insert(const Event& e) {
    assert(e.at >= now_);
    const std::int64_t bucket = bucket_of(e.at);
    if (bucket <= open_) {
      late_.push_back(e);
      std::push_heap(late_.begin(), late_.end(), Later{});
    } else if (bucket < open_ + kBuckets) {
      link(bucket, e);
    } else {
      far_.push_back(e);
      std::push_heap(far_.begin(), far_.end(), Later{});
    }
    ++size_;
    tell(e.at);
  }

  void tell(Time at) {
    if (at >= told_) return;
    told_ = at;
    if (listener_ != nullptr) listener_->wake_at(at);
  }

  // Sorts in what other modules have sent.
  void collect() {
    for (const Event& e : posted_) insert(e);
    posted_.clear();
  }

  void link(std::int64_t bucket, const Event& e) {
    const auto slot = static_cast<std::size_t>(bucket & kMask);
    std::uint32_t node = free_;
    if (node == kNone) {
      node = static_cast<std::uint32_t>(slab_.size());
      slab_.emplace_back();
    } else {
      free_ = slab_[node].next;
      if (free_ != kNone) __builtin_prefetch(&slab_[free_], 1);  // for the next push
    }
    slab_[node].event = e;
    slab_[node].next = head_[slot];
    head_[slot] = node;
    used_[slot >> 6] |= std::uint64_t{1} << (slot & 63);
    used_words_ |= std::uint64_t{1} << (slot >> 6);
  }

  // The earliest event; requires size_ > 0.
  const Event& front() {
    if (sorted_.empty()) {
      if (late_.empty()) {
        open_next_group();
      } else {
        return late_.front();
      }
    }
    if (!late_.empty() && before(late_.front(), sorted_.back())) return late_.front();
    return sorted_.back();
  }

  // Removes what front() returned.
  void pop() {
    if (sorted_.empty() || (!late_.empty() && before(late_.front(), sorted_.back()))) {
      std::pop_heap(late_.begin(), late_.end(), Later{});
      late_.pop_back();
    } else {
      sorted_.pop_back();
    }
    --size_;
  }

  // Fills sorted_ from the next bucket that holds something, and those after it in its group; requires
  // size_ > 0 and an empty open group.
  void open_next_group() {
    const std::int64_t first = used_words_ == 0 ? bucket_of(far_.front().at) : next_used();
    open_ = first | (kGroup - 1);
    while (!far_.empty() && bucket_of(far_.front().at) <= open_) {
      std::pop_heap(far_.begin(), far_.end(), Later{});
      sorted_.push_back(far_.back());
      far_.pop_back();
    }
    empty_group(static_cast<std::size_t>(first & kMask));
    while (!far_.empty() && bucket_of(far_.front().at) < open_ + kBuckets) {
      std::pop_heap(far_.begin(), far_.end(), Later{});
      link(bucket_of(far_.back().at), far_.back());
      far_.pop_back();
    }
    if (sorted_.size() > 1) std::sort(sorted_.begin(), sorted_.end(), Later{});
  }

  // Moves the lists of slot `first` and those after it in its group to sorted_, in turn: each list waits for
  // the memory of its next node, all of them at the same time.
  void empty_group(std::size_t first) {
    std::array<std::uint32_t, kGroup> nodes;
    std::size_t lists = 0;
    const std::size_t end = (first | (kGroup - 1)) + 1;
    for (std::size_t slot = first; slot < end; ++slot) {
      if (head_[slot] == kNone) continue;
      __builtin_prefetch(&slab_[head_[slot]]);
      nodes[lists++] = head_[slot];
      head_[slot] = kNone;
      used_[slot >> 6] &= ~(std::uint64_t{1} << (slot & 63));
    }
    if (used_[first >> 6] == 0) used_words_ &= ~(std::uint64_t{1} << (first >> 6));
    while (lists != 0) {
      for (std::size_t k = 0; k < lists;) {
        Node& n = slab_[nodes[k]];
        const std::uint32_t next = n.next;
        sorted_.push_back(n.event);
        n.next = free_;
        free_ = nodes[k];
        if (next == kNone) {
          nodes[k] = nodes[--lists];
        } else {
          __builtin_prefetch(&slab_[next]);
          nodes[k++] = next;
        }
      }
    }
  }

  // The first bucket after open_ that the wheel holds; requires one.
  std::int64_t next_used() const {
    const auto from = static_cast<std::uint64_t>((open_ + 1) & kMask);
    const std::uint64_t rest = used_[from >> 6] >> (from & 63);
    if (rest != 0) return open_ + 1 + std::countr_zero(rest);
    // The words after that of `from`, turned so that it comes last: in it only slots before `from` are left.
    const int turn = static_cast<int>((from >> 6) + 1) & 63;
    const std::uint64_t turned = std::rotr(used_words_, turn);
    const auto word = static_cast<std::uint64_t>((std::countr_zero(turned) + turn) & 63);
    const std::uint64_t slot = (word << 6) + static_cast<std::uint64_t>(std::countr_zero(used_[word]));
    return open_ + 1 + static_cast<std::int64_t>((slot - from) & static_cast<std::uint64_t>(kMask));
  }

  // What push_from() touches stands together.
  Time told_ = Time::never();  // the listener knows of nothing later than this; kRunning in run_until()
  WakeListener* listener_ = nullptr;
  std::vector<Event> posted_;  // by other modules since the owner last ran

  std::uint32_t source_;
  int shift_;  // log2 of a bucket's width in ps
  Time now_{};
  std::uint64_t sequence_ = 0;
  std::uint64_t handled_ = 0;
  std::size_t size_ = 0;
  std::int64_t open_ = 0;      // last bucket of the open group; the wheel holds the 4095 after it
  std::vector<Event> sorted_;  // latest first
  std::vector<Event> late_;    // pushed into the open group or before it: a heap
  std::vector<Node> slab_;
  std::uint32_t free_ = kNone;                       // first free node of slab_
  std::vector<std::uint32_t> head_;                  // first node of each bucket
  std::array<std::uint64_t, kBuckets / 64> used_{};  // buckets that hold something
  std::uint64_t used_words_ = 0;                     // words of used_ that are not 0
  std::vector<Event> far_;                           // beyond the wheel: a heap
};

}  // namespace cm384::sim
