// Where a scalar unit's cycles go, by instruction. Attached to a core, it counts each block of straight-line
// code as a whole and writes down by themselves only the cycles that nobody knew when the block was decoded.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "npu_core/scalar/by_pc.h"
#include "npu_core/scalar/decode.h"

namespace cm384::npu {

class Program;

// What a scalar instruction waited for beyond the cycle in which it issues.
enum class ScalarStall : std::uint8_t {
  latency,     // results of earlier instructions, fetch cycles lost by branches
  fetch,       // instructions
  memory,      // the data cache's misses, atomics
  local,       // its own access to the UBuffer
  order,       // pipes that touch the same bytes of the UBuffer (npu_core/pipes/local_order.h)
  queue,       // a place in a pipe's queue
  flag,        // a flag of a pipe
  pipes,       // all pipes to be idle
  cross_core,  // a flag of another core
  poll,        // a write to what it polls; the turns in between are left out
  count
};
inline constexpr std::size_t kScalarStalls = static_cast<std::size_t>(ScalarStall::count);
const char* name_of(ScalarStall stall);
// What an instruction waits for where it waits.
ScalarStall stall_of(const Operation& op);

struct ScalarCycles {
  std::uint64_t instructions = 0;
  std::array<std::uint64_t, kScalarStalls> stalls{};  // cycles

  // Each instruction issues for a cycle.
  std::uint64_t cycles() const {
    std::uint64_t sum = instructions;
    for (const std::uint64_t stall : stalls) sum += stall;
    return sum;
  }
  ScalarCycles& operator+=(const ScalarCycles& other);
};

// What scalar units count, by program and instruction: their own, or what several count together, one at a
// time. Programs of one image are one.
class ScalarTables {
 public:
  struct Ran {
    std::uint64_t times = 0, edge_cycles = 0;
  };
  struct Counts {
    ByPc<Ran> blocks;
    ByPc<ScalarCycles> instructions;  // beyond what blocks say

    Counts& operator+=(const Counts& other);
  };
  // Blocks, decoded again to spread what they counted over their instructions; for tables of many programs.
  class Blocks {
   public:
    const Block& at(const Program& program, std::uint64_t pc);

   private:
    std::map<std::pair<const Program*, std::uint64_t>, std::shared_ptr<const Block>> known_;
  };

  // Number of a program's table, from 0 in the order in which they came.
  std::size_t number_of(const std::shared_ptr<Program>& program);
  const std::vector<std::shared_ptr<Program>>& programs() const { return programs_; }
  Counts& counts(std::size_t program) { return counts_[program]; }
  const Counts& counts(std::size_t program) const { return counts_[program]; }
  void clear() { std::ranges::fill(counts_, Counts{}); }

  // The counts by pc; their sum.
  static std::map<std::uint64_t, ScalarCycles> instructions(const Program& program, const Counts& counts,
                                                            Blocks& blocks);
  static ScalarCycles total(const Program& program, const Counts& counts, Blocks& blocks);

 private:
  std::vector<std::shared_ptr<Program>> programs_;
  std::vector<Counts> counts_;
};

// The profile of one core.
class ScalarProfile {
 public:
  // `tables` outlives it.
  explicit ScalarProfile(ScalarTables& tables) : tables_(tables) {}

  // A program starts; what it counts goes to its table.
  void begin(const std::shared_ptr<Program>& program);
  // Number of the program's table.
  std::size_t current() const { return current_; }

  // A block has run to its end, and the branch behind it cost `edge_cost`.
  void ran(const Block& block, std::int64_t edge_cost) {
    const auto edge_cycles = static_cast<std::uint64_t>(edge_cost);
    total_.instructions += block.instructions;
    total_.stalls[kLatency] += block.cost - block.instructions + edge_cycles;
    ScalarTables::Ran& ran = tables_.counts(current_).blocks.at(block.pc);
    ++ran.times;
    ran.edge_cycles += edge_cycles;
  }
  // A block was left early: its operations before number `end` have run.
  void ran_part(const Block& block, std::uint32_t end);
  void issued(std::uint64_t pc) {
    ++total_.instructions;
    ++at(pc).instructions;
  }
  void stalled(std::uint64_t pc, ScalarStall why, std::int64_t cycles) {
    if (cycles <= 0) return;
    const auto reason = static_cast<std::size_t>(why);
    total_.stalls[reason] += static_cast<std::uint64_t>(cycles);
    at(pc).stalls[reason] += static_cast<std::uint64_t>(cycles);
  }
  // So many cycles of the current access were a wait for the pipes; slow() gets them with the rest.
  void ordered(std::int64_t cycles) { ordered_ += cycles; }
  // An instruction took `cycles` longer than its block knows.
  void slow(std::uint64_t pc, ScalarStall why, std::int64_t cycles) {
    const std::int64_t ordered = std::exchange(ordered_, 0);
    stalled(pc, ScalarStall::order, ordered);
    stalled(pc, why, cycles - ordered);
  }
  // The scalar unit stops at an instruction, and goes on.
  void parked(std::uint64_t pc, ScalarStall why, std::int64_t cycle) {
    parked_pc_ = pc;
    parked_why_ = std::exchange(parked_by_order_, false) ? ScalarStall::order : why;
    parked_cycle_ = cycle;
  }
  void parked_by_order() { parked_by_order_ = true; }
  void polled() { parked_why_ = ScalarStall::poll; }
  void resumed(std::int64_t cycle) {
    if (parked_cycle_ >= 0) stalled(parked_pc_, parked_why_, cycle - std::exchange(parked_cycle_, -1));
  }

  // Discards what was counted before: it was warm-up. Does not clear the tables.
  void clear();
  // Programs in the order of their first starts here, and how often each was started: blocks of launches.
  struct Started {
    std::size_t program = 0;  // number of its table
    std::uint64_t times = 0;
  };
  const std::vector<Started>& started() const { return started_; }
  const ScalarCycles& total() const { return total_; }

 private:
  static constexpr auto kLatency = static_cast<std::size_t>(ScalarStall::latency);

  ScalarCycles& at(std::uint64_t pc) { return tables_.counts(current_).instructions.at(pc); }

  ScalarTables& tables_;
  std::vector<Started> started_;
  ScalarCycles total_;
  std::size_t current_ = 0;
  std::uint64_t parked_pc_ = 0;
  std::int64_t parked_cycle_ = -1;
  std::int64_t ordered_ = 0;
  ScalarStall parked_why_ = ScalarStall::latency;
  bool parked_by_order_ = false;
};

}  // namespace cm384::npu
