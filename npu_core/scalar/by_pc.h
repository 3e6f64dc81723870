// What is counted by program counter: a table that grows with the code that runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace cm384::npu {

// Open addressing into entries that stand one behind another: thousands of cores have tables each. References
// hold until the next call of at().
template <class Counted>
class ByPc {
 public:
  Counted& at(std::uint64_t pc) {
    if (2 * entries_.size() >= slots_.size()) grow();
    std::uint32_t& slot = place(pc);
    if (slot == 0) {
      entries_.push_back({pc, {}});
      slot = static_cast<std::uint32_t>(entries_.size());
    }
    return entries_[slot - 1].counted;
  }
  // Calls visit(pc, counted) for each entry, in the order in which entries were made.
  template <class Visit>
  void each(const Visit& visit) const {
    for (const Entry& entry : entries_) visit(entry.pc, entry.counted);
  }
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    std::uint64_t pc;
    Counted counted;
  };
  static constexpr std::size_t kFirst = 64;

  std::uint32_t& place(std::uint64_t pc) {
    std::size_t at = static_cast<std::size_t>((pc >> 1) * 0x9e3779b97f4a7c15u >> 32) & (slots_.size() - 1);
    while (slots_[at] != 0 && entries_[slots_[at] - 1].pc != pc) at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }
  void grow() {
    slots_.assign(std::max(kFirst, 2 * slots_.size()), 0);
    for (std::uint32_t n = 0; n < entries_.size(); ++n) place(entries_[n].pc) = n + 1;
  }

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // number of an entry, from 1; 0: none
};

}  // namespace cm384::npu
