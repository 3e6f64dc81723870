// The time-ordered queue that each simulated module (a die, a sub-plane, the CPU sockets) owns.
//
// Modules run in windows: a module handles all its events of [t, t + window) in one activation, which is
// exact because nothing that others do meanwhile falls into it (docs/time.md). Ties in time are broken by
// (source module, sequence), so the order never depends on addresses or on which module happened to run
// first.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/engine/prefetch.h"
#include "base/engine/worker.h"
#include "base/text/units.h"

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

// Three tiers: the open bucket, sorted; a wheel of 512 buckets after it, unsorted lists of chunks; and a
// heap of what lies beyond the wheel. A push into the wheel is O(1), empty buckets are skipped by bit masks,
// and sorting sees only the few events of one bucket.
class EventQueue {
 public:
  // `source` numbers the owning module; it must be unique in a machine and below 2^20 - 1. `bucket` is the
  // width of one bucket, rounded down to a power of two: best is about what thirty events take, results do
  // not depend on it.
  explicit EventQueue(std::uint32_t source = 0, Time bucket = Time{8192})
      : source_(source),
        shift_(static_cast<int>(
                   std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(bucket.ps, 1)))) -
               1),
        heads_(kBuckets) {
    assert(source < (1u << (64 - kSequenceBits)) - 1);
  }

  std::uint32_t source() const { return source_; }
  void set_listener(WakeListener* listener) {
    listener_ = listener;
    notify_next();
  }

  // Time of the event being handled, or of the last handled one.
  Time now() const { return now_; }

  // Adds an event of the owner itself. `at` must not lie before now().
  void push(Time at, std::uint32_t unit, std::uint32_t what, std::uint64_t argument = 0) {
    insert(Event{at, tie(source_, sequence_++), unit, what, argument});
  }
  // Adds an event sent by the module whose queue is `from`; ties sort by the sender. It is posted here and
  // sorted in when the owner runs, which it must not do now: the sender then touches no memory of the queue.
  // Senders of different workers may post concurrently; a listener is then notified for each worker.
  void push_from(EventQueue& from, Time at, std::uint32_t unit, std::uint32_t what,
                 std::uint64_t argument = 0) {
    const Event e{at, tie(from.source_, from.sequence_++), unit, what, argument};
    if (&from == this) {
      insert(e);
      return;
    }
    post(e);
  }
  // Before events of workers beyond 0.
  void set_workers(unsigned workers) {
    more_ = std::make_unique<Inbox[]>(workers - 1);
    others_ = workers - 1;
  }

  // Adds an event that comes after all others of its time, those of one time in the order of `key` (below
  // 2^44). For events which, depending on which module ran first, the owner or the other module would add:
  // their place is the same either way. post_late() is the other module's call.
  void push_late(Time at, std::uint64_t key, std::uint32_t unit, std::uint32_t what,
                 std::uint64_t argument = 0) {
    insert(Event{at, late(key), unit, what, argument});
  }
  void post_late(Time at, std::uint64_t key, std::uint32_t unit, std::uint32_t what,
                 std::uint64_t argument = 0) {
    post(Event{at, late(key), unit, what, argument});
  }

  // Visits the events that other modules have posted since the owner last ran; a visitor may post an event
  // anew, at the same time. Called while neither they nor the owner run.
  template <class Visit>
  void each_posted(Visit&& visit) {
    for (Event& e : inbox_.events) visit(e);
    for (unsigned n = 0; n < others_; ++n) {
      for (Event& e : more_[n].events) visit(e);
    }
  }

  bool empty() const { return size() == 0; }
  std::size_t size() const {
    std::size_t sum = size_ + inbox_.events.size();
    for (unsigned n = 0; n < others_; ++n) sum += more_[n].events.size();
    return sum;
  }
  // Earliest time held; Time::never() when empty.
  Time next_time() {
    collect();
    if (size_ == 0) return Time::never();
    return front().at;
  }

  // Prefetches the queue itself, in two stages before survey(): 0 the heads of its lists, 1 their events
  // before `end`.
  void prefetch(Time end, int stage) {
    if (stage == 0) {
      sim::prefetch(this, sizeof *this);
      return;
    }
    collect();
    const std::int64_t last = std::min(bucket_of(end), open_ + kBuckets - 1);
    for (std::int64_t bucket = open_ + 1; bucket <= last; ++bucket) {
      ask_for(static_cast<std::size_t>(bucket & kMask));
    }
  }
  // Shows every event before `end`, in no order: for asking the host's cache early for what they will touch.
  template <class Visit>
  void survey(Time end, Visit&& visit) {
    collect();
    for (const Event& e : sorted_) visit(e);
    for (const Event& e : late_) visit(e);
    const std::int64_t last = std::min(bucket_of(end), open_ + kBuckets - 1);
    for (std::int64_t bucket = open_ + 1; bucket <= last; ++bucket) {
      for_each_chunk(static_cast<std::size_t>(bucket & kMask), [&](std::uint32_t n, std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) visit(chunks_[n].events[i]);
      });
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
    told_ = kRunning;       // nothing is earlier
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
      // Of a bucket just opened the first few at once: their misses overlap.
      for (; shown < kAhead && shown < sorted_.size(); ++shown) prefetch(sorted_[sorted_.size() - 1 - shown]);
      handle(e);
    }
    notify_next();
  }
  // Events handled since construction.
  std::uint64_t handled() const { return handled_; }

 private:
  static constexpr std::int64_t kBuckets = 512;
  static constexpr std::int64_t kMask = kBuckets - 1;
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::size_t kAhead = 6;
  static constexpr int kSequenceBits = 44;
  static constexpr Time kRunning{std::numeric_limits<std::int64_t>::min()};

  static bool before(const Event& a, const Event& b) {
    return a.at.ps != b.at.ps ? a.at.ps < b.at.ps : a.order < b.order;
  }
  struct Later {
    bool operator()(const Event& a, const Event& b) const { return before(b, a); }
  };
  static std::uint64_t tie(std::uint32_t source, std::uint64_t sequence) {
    return (std::uint64_t{source} << kSequenceBits) | sequence;
  }
  static std::uint64_t late(std::uint64_t key) {
    assert(key < (std::uint64_t{1} << kSequenceBits));
    return ~((std::uint64_t{1} << kSequenceBits) - 1) | key;
  }
  std::int64_t bucket_of(Time t) const { return t.ps >> shift_; }

  void insert(const Event& e) {
    place(e);
    if (e.at >= told_) return;
    told_ = e.at;
    if (listener_ != nullptr) listener_->wake_at(e.at);
  }

  void place(const Event& e) {
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
  }

  // What other modules have sent since the owner last ran, from one worker.
  struct alignas(64) Inbox {
    Time told = Time::never();  // as told_, by senders of this worker
    std::vector<Event> events;
  };
  void post(const Event& e) {
    assert(told_ != kRunning);
    Inbox& inbox = worker() == 0 ? inbox_ : more_[worker() - 1];
    inbox.events.push_back(e);
    if (e.at >= inbox.told) return;
    inbox.told = e.at;
    if (listener_ != nullptr) listener_->wake_at(e.at);
  }
  void notify_next() {
    told_ = next_time();
    inbox_.told = told_;
    for (unsigned n = 0; n < others_; ++n) more_[n].told = told_;
    if (listener_ != nullptr && size_ != 0) listener_->wake_at(told_);
  }

  // Sorts in what other modules have sent.
  void collect() {
    collect(inbox_.events);
    for (unsigned n = 0; n < others_; ++n) collect(more_[n].events);
  }
  void collect(std::vector<Event>& posted) {
    constexpr std::size_t kFirst = 64;  // after these the host sees by itself what is read
    if (!posted.empty()) sim::prefetch(posted.data(), std::min(posted.size(), kFirst) * sizeof(Event));
    for (std::size_t n = 0; n < posted.size(); ++n) {
      place(posted[n]);
      told_ = std::min(told_, posted[n].at);  // by post()
    }
    posted.clear();
  }

  void link(std::int64_t bucket, const Event& e) {
    const auto slot = static_cast<std::size_t>(bucket & kMask);
    Head& head = heads_[slot];
    if (head.chunk == kNone || head.count == kChunk) {
      std::uint32_t chunk = 0;
      if (free_.empty()) {
        chunk = static_cast<std::uint32_t>(chunks_.size());
        chunks_.emplace_back();
        next_.push_back(kNone);
      } else {
        chunk = free_.back();
        free_.pop_back();
        if (!free_.empty()) __builtin_prefetch(&chunks_[free_.back()], 1);
      }
      next_[chunk] = head.chunk;
      head = {chunk, 0};
    }
    chunks_[head.chunk].events[head.count++] = e;
    used_[slot >> 6] |= std::uint64_t{1} << (slot & 63);
  }

  // The earliest event; requires size_ > 0.
  const Event& front() {
    if (sorted_.empty()) {
      if (late_.empty()) {
        open_next();
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

  // Fills sorted_ from the next bucket that holds something; requires size_ > 0 and an empty open bucket.
  void open_next() {
    open_ = std::any_of(used_.begin(), used_.end(), [](std::uint64_t word) { return word != 0; })
                ? next_used()
                : bucket_of(far_.front().at);
    while (!far_.empty() && bucket_of(far_.front().at) <= open_) {
      std::pop_heap(far_.begin(), far_.end(), Later{});
      sorted_.push_back(far_.back());
      far_.pop_back();
    }
    const auto slot = static_cast<std::size_t>(open_ & kMask);
    ask_for((slot + 1) & kMask);
    for_each_chunk(slot, [this](std::uint32_t n, std::uint32_t count) {
      const auto first = chunks_[n].events.begin();
      sorted_.insert(sorted_.end(), first, first + count);
      free_.push_back(n);
    });
    heads_[slot] = {};
    used_[slot >> 6] &= ~(std::uint64_t{1} << (slot & 63));
    while (!far_.empty() && bucket_of(far_.front().at) < open_ + kBuckets) {
      std::pop_heap(far_.begin(), far_.end(), Later{});
      link(bucket_of(far_.back().at), far_.back());
      far_.pop_back();
    }
    if (sorted_.size() > 1) std::sort(sorted_.begin(), sorted_.end(), Later{});
  }

  template <class Visit>
  void for_each_chunk(std::size_t slot, Visit&& visit) const {
    const Head& head = heads_[slot];
    if (head.chunk == kNone) return;
    visit(head.chunk, head.count);
    for (std::uint32_t n = next_[head.chunk]; n != kNone; n = next_[n]) visit(n, kChunk);
  }

  // Asks the cache for the events of a bucket.
  void ask_for(std::size_t slot) const {
    for_each_chunk(slot, [this](std::uint32_t n, std::uint32_t count) {
      sim::prefetch(&chunks_[n], count * sizeof(Event));
    });
  }

  // The first bucket after open_ that the wheel holds; requires one.
  std::int64_t next_used() const {
    const auto from = static_cast<std::uint64_t>((open_ + 1) & kMask);
    std::uint64_t word = from >> 6;
    std::uint64_t bits = used_[word] >> (from & 63) << (from & 63);
    while (bits == 0) {
      word = (word + 1) % used_.size();
      bits = used_[word];
    }
    const std::uint64_t slot = (word << 6) + static_cast<std::uint64_t>(std::countr_zero(bits));
    return open_ + 1 + static_cast<std::int64_t>((slot - from) & static_cast<std::uint64_t>(kMask));
  }

  // What push_from() touches stands together.
  Inbox inbox_;  // of worker 0
  WakeListener* listener_ = nullptr;
  Time told_ = Time::never();  // the listener knows of nothing later than this; kRunning in run_until()
  std::unique_ptr<Inbox[]> more_;
  unsigned others_ = 0;  // in more_

  std::uint32_t source_;
  int shift_;  // log2 of a bucket's width in ps
  Time now_{};
  std::uint64_t sequence_ = 0;
  std::uint64_t handled_ = 0;
  std::size_t size_ = 0;
  std::int64_t open_ = 0;      // the open bucket; the wheel holds the 511 after it
  std::vector<Event> sorted_;  // latest first
  std::vector<Event> late_;    // pushed into the open bucket or before it: a heap
  // Events of the wheel: chunks of one bucket each, so that they stand together in the host's memory.
  static constexpr std::uint32_t kChunk = 8;
  struct alignas(64) Chunk {
    std::array<Event, kChunk> events;
  };
  // Of a bucket: the chunk that is being filled and what it holds; those behind it are full.
  struct Head {
    std::uint32_t chunk = kNone;
    std::uint32_t count = 0;
  };
  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> next_;                  // of each chunk, the one of its bucket behind it
  std::vector<std::uint32_t> free_;                  // chunks, the last freed last
  std::vector<Head> heads_;                          // by bucket
  std::array<std::uint64_t, kBuckets / 64> used_{};  // buckets that hold something
  std::vector<Event> far_;                           // beyond the wheel: a heap
};

}  // namespace cm384::sim
