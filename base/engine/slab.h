// Records of one type, named by 32-bit indices: one slab a machine, from which each worker has a list of free
// ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/engine/worker.h"
#include "base/text/error.h"

namespace cm384::sim {

inline constexpr std::uint32_t kNoRecord = 0xffffffff;

// `kPage` records are made at a time, up to `kMost`. References stay valid until release.
template <class Record, std::uint32_t kPage = 1u << 10, std::uint32_t kMost = 1u << 26>
class Slab {
 public:
  // `full`: what the error says where no more can be made.
  explicit Slab(const char* full = "more records in flight than a slab holds") : full_(full) {}
  void set_workers(unsigned workers) { lists_.set_workers(workers); }

  // As it was left by the one before, the last released first, or fresh. Throws MachineError where there are
  // as many as may be.
  std::uint32_t allocate() {
    List& list = lists_.mine();
    std::vector<std::uint32_t>& free = list.free;
    if (free.empty()) {
      if (list.fresh == list.end) grow(list);
      ++list.taken;
      return list.fresh++;
    }
    const std::uint32_t index = free.back();
    free.pop_back();
    if (free.size() >= kAhead) __builtin_prefetch(&(*this)[free[free.size() - kAhead]], 1);
    ++list.taken;
    return index;
  }
  void release(std::uint32_t index) {
    List& list = lists_.mine();
    list.free.push_back(index);
    --list.taken;
  }
  Record& operator[](std::uint32_t index) { return pages_[index / kPage][index % kPage]; }
  const Record& operator[](std::uint32_t index) const { return pages_[index / kPage][index % kPage]; }
  std::size_t in_use() const {
    std::ptrdiff_t sum = 0;
    lists_.each([&](const List& list) { sum += list.taken; });
    return static_cast<std::size_t>(sum);
  }
  // Records go from those who send to those who receive: gives the worker with the shortest list half of what
  // the one with the longest has more. While no worker runs.
  void balance() {
    constexpr std::size_t kSlack = 1024;
    List* longest = &lists_.of(0);
    List* shortest = longest;
    lists_.each([&](List& list) {
      if (list.free.size() > longest->free.size()) longest = &list;
      if (list.free.size() < shortest->free.size()) shortest = &list;
    });
    const std::size_t more = longest->free.size() - shortest->free.size();
    if (more < kSlack) return;
    const auto half = longest->free.end() - static_cast<std::ptrdiff_t>(more / 2);
    shortest->free.insert(shortest->free.end(), half, longest->free.end());
    longest->free.erase(half, longest->free.end());
  }

 private:
  static_assert(kMost % kPage == 0);
  static constexpr std::uint32_t kPages = kMost / kPage;
  static constexpr std::size_t kAhead = 4;  // allocations that the host's cache is asked ahead for
  struct List {
    std::vector<std::uint32_t> free;   // the last released last
    std::uint32_t fresh = 0, end = 0;  // never handed out yet
    std::ptrdiff_t taken = 0;
  };
  void grow(List& list) {
    const std::lock_guard lock(*growing_);
    if (used_ == kPages) throw MachineError(full_);
    pages_[used_] = std::make_unique_for_overwrite<Record[]>(kPage);
    list.fresh = used_++ * kPage;
    list.end = list.fresh + kPage;
  }

  const char* full_;
  PerWorker<List> lists_;
  std::unique_ptr<std::mutex> growing_ = std::make_unique<std::mutex>();
  std::uint32_t used_ = 0;  // pages
  // Never moves: others read it while one grows.
  std::unique_ptr<std::unique_ptr<Record[]>[]> pages_ = std::make_unique<std::unique_ptr<Record[]>[]>(kPages);
};

// First in, first out, linked through the records' `next`; a record stands in one list at a time.
template <class Record>
struct SlabQueue {
  std::uint32_t head = kNoRecord, tail = kNoRecord;

  bool empty() const { return head == kNoRecord; }
  template <std::uint32_t kPage, std::uint32_t kMost>
  void push(Slab<Record, kPage, kMost>& slab, std::uint32_t index) {
    slab[index].next = kNoRecord;
    (empty() ? head : slab[tail].next) = index;
    tail = index;
  }
  template <std::uint32_t kPage, std::uint32_t kMost>
  std::uint32_t pop(Slab<Record, kPage, kMost>& slab) {
    const std::uint32_t index = head;
    head = slab[index].next;
    return index;
  }
};

}  // namespace cm384::sim
