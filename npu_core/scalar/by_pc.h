// What is counted by program counter: a table that grows with the code that runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace cm384::npu {

// Open addressing; pc 0 is none. References hold until the next call of at().
template <class Counted>
class ByPc {
 public:
  Counted& at(std::uint64_t pc) {
    if (2 * used_ >= entries_.size()) grow();
    Entry& found = place(entries_, pc);
    if (found.pc == 0) {
      found.pc = pc;
      ++used_;
    }
    return found.counted;
  }
  // Calls visit(pc, counted), in no order.
  template <class Visit>
  void each(const Visit& visit) const {
    for (const Entry& entry : entries_) {
      if (entry.pc != 0) visit(entry.pc, entry.counted);
    }
  }
  bool empty() const { return used_ == 0; }

 private:
  struct Entry {
    std::uint64_t pc = 0;
    Counted counted{};
  };
  static constexpr std::size_t kFirst = 64;

  static Entry& place(std::vector<Entry>& in, std::uint64_t pc) {
    std::size_t slot = static_cast<std::size_t>((pc >> 1) * 0x9e3779b97f4a7c15u >> 32) & (in.size() - 1);
    while (in[slot].pc != pc && in[slot].pc != 0) slot = (slot + 1) & (in.size() - 1);
    return in[slot];
  }
  void grow() {
    std::vector<Entry> larger(std::max(kFirst, 2 * entries_.size()));
    for (Entry& entry : entries_) {
      if (entry.pc != 0) place(larger, entry.pc) = std::move(entry);
    }
    entries_ = std::move(larger);
  }

  std::vector<Entry> entries_;
  std::size_t used_ = 0;
};

}  // namespace cm384::npu
