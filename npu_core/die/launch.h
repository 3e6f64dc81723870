// A kernel launch as a die sees it: which program, on which cores, and what became of it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "hw/units.h"
#include "sim/transaction.h"

namespace cm384::npu {

class Program;

inline constexpr int kPhases = 32;

struct LaunchRequest {
  std::shared_ptr<Program> program;
  std::uint64_t arguments = 0;       // GM address that the kernel gets
  std::vector<std::uint16_t> cores;  // core of block 0, 1, ...
};

// Times of one finished launch on one die.
struct LaunchRecord {
  std::uint32_t launch = 0;  // number of the launch on this die
  Time task_start;           // the die was told
  Time first_instruction;    // of the first block
  Time last_retired;         // of the last block
  Time task_end;             // with teardown
  // Time between a core's phase marks, summed over cores: entry p runs from mark p to the core's next mark or
  // end.
  std::array<Time, kPhases> phase_total{};
  std::uint32_t blocks = 0;
};

// An MTE instruction on its way, and what it waited for. Told when its first request leaves.
struct TransactionBegun {
  sim::TransactionId id = 0;
  // Data from outside: the last foreign transaction whose data the core had asked for before. What other
  // cores of the die wrote carries on what they had seen. 0: none.
  sim::TransactionId depends_on = 0;
  // The core's own: the last one that was complete. 0: none.
  sim::TransactionId previous = 0;
  std::uint64_t address = 0;  // global, of the first byte
  std::uint64_t bytes = 0;    // of the instruction
  int die = 0;
  std::uint16_t core = 0;
  sim::Operation operation = sim::Operation::read;
  Time at;
};

struct TransactionCompleted {
  sim::TransactionId id = 0;
  int die = 0;
  std::uint16_t core = 0;
  Time at;  // may lie ahead: memory of the own die knows it when the last request leaves
};

// Kernel output and launch ends, told at event time.
class DieListener {
 public:
  virtual void launch_started(int /*die*/, const LaunchRecord& /*record*/) {}
  virtual void launch_finished(int die, const LaunchRecord& record) = 0;
  // Only of a die that traces.
  virtual void transaction_begun(const TransactionBegun&) {}
  virtual void transaction_completed(const TransactionCompleted&) {}
  // Text a kernel printed.
  virtual void kernel_output(int die, int core, std::string_view text) = 0;

 protected:
  ~DieListener() = default;
};

}  // namespace cm384::npu
