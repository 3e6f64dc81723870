// First in, first out; keeps its memory.
#pragma once

#include <cstddef>
#include <vector>

namespace cm384::npu {

template <class T>
class Fifo {
 public:
  bool empty() const { return first_ == items_.size(); }
  T& front() { return items_[first_]; }
  T& back() { return items_.back(); }
  void push_back(const T& item) { items_.push_back(item); }
  void pop_front() {
    if (++first_ == items_.size()) return clear();
    if (first_ < kMostGone) return;
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  void clear() {
    items_.clear();
    first_ = 0;
  }
  auto begin() { return items_.begin() + static_cast<std::ptrdiff_t>(first_); }
  auto end() { return items_.end(); }

 private:
  static constexpr std::size_t kMostGone = 64;
  std::vector<T> items_;
  std::size_t first_ = 0;
};

}  // namespace cm384::npu
