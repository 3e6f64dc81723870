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

// References stay valid until release.
template <class Record>
class Slab {
 public:
  void set_workers(unsigned workers) { lists_.set_workers(workers); }

  // As it was left by the one before, or fresh.
  std::uint32_t allocate() {
    List& list = lists_.mine();
    if (list.free.empty()) grow(list.free);
    const std::uint32_t index = list.free.back();
    list.free.pop_back();
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

 private:
  static constexpr std::uint32_t kPage = 1024;
  static constexpr std::uint32_t kPages = 1u << 16;
  struct List {
    std::vector<std::uint32_t> free;  // the last released last
    std::ptrdiff_t taken = 0;
  };
  void grow(std::vector<std::uint32_t>& free) {
    const std::lock_guard lock(*growing_);
    if (used_ == kPages) throw MachineError("more records in flight than a slab holds");
    pages_[used_] = std::make_unique<Record[]>(kPage);
    for (std::uint32_t n = kPage; n-- > 0;) free.push_back(used_ * kPage + n);
    ++used_;
  }

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
  void push(Slab<Record>& slab, std::uint32_t index) {
    slab[index].next = kNoRecord;
    (empty() ? head : slab[tail].next) = index;
    tail = index;
  }
  std::uint32_t pop(Slab<Record>& slab) {
    const std::uint32_t index = head;
    head = slab[index].next;
    return index;
  }
};

}  // namespace cm384::sim
