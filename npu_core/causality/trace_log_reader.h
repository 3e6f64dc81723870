// Reads a trace log and drives the dies' causality, which finds out what each transaction waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "npu_core/causality/die_causality.h"
#include "npu_core/causality/trace_log.h"

namespace cm384::npu {

// Replays one entry of a core's kinds (up to `polled` and `poll_turn`) to an observer.
void read_core_entry(const TraceEntry& entry, const std::uint64_t* words, PipeObserver& core);

class TraceLogReader {
 public:
  // Clock and core shapes are the same for all dies.
  TraceLogReader(const Clock& clock, const CoreShape& vector, const CoreShape& cube,
                 CausalityListener& listener)
      : clock_(clock), vector_(vector), cube_(cube), listener_(listener) {}

  // Whole entries, in the order in which they were written.
  void read(std::span<const std::uint64_t> words);

 private:
  void of_die(const TraceEntry& entry, const std::uint64_t* words, DieCausality& die);
  static void of_devices(const TraceEntry& entry, const std::uint64_t* words, DieCausality& die);
  static void barrier(const TraceEntry& entry, const std::uint64_t* words, DieCausality& die);

  Clock clock_;
  CoreShape vector_, cube_;
  CausalityListener& listener_;
  std::vector<std::unique_ptr<DieCausality>> dies_;  // by number; made when first met
};

}  // namespace cm384::npu
