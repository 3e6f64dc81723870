// What the rules that hold for a program (npu::KernelRules) have caused: waits, lines written back, hazards;
// of all cores and launches. May be called from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "npu_core/pipes/hazard_checker.h"
#include "npu_core/pipes/local_order.h"

namespace cm384::npu {

class KernelLog final : public HazardListener {
 public:
  void add(const OrderWaits& waits) {
    const std::lock_guard lock(writing_);
    for (const auto& [at, wait] : waits) {
      waits_[at].count += wait.count;
      waits_[at].cycles += wait.cycles;
    }
  }
  void add_written_lines(std::uint64_t lines) {
    const std::lock_guard lock(writing_);
    written_lines_ += lines;
  }
  void hazard(const Hazard& found) override {
    const std::lock_guard lock(writing_);
    hazards_.push_back(found);
  }

  // Once nothing runs any more.
  const OrderWaits& waits() const { return waits_; }
  // Lines of global memory that blocks ended with dirty and that were written back.
  std::uint64_t written_lines() const { return written_lines_; }
  // Hazards of all blocks, in no order.
  const std::vector<Hazard>& hazards() const { return hazards_; }

 private:
  std::mutex writing_;
  OrderWaits waits_;
  std::vector<Hazard> hazards_;
  std::uint64_t written_lines_ = 0;
};

}  // namespace cm384::npu
