// Where a scalar unit's cycles go, by instruction. Attached to a core, it counts each block of straight-line
// code as a whole and writes down by themselves only the cycles that nobody knew when the block was decoded.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "npu_core/scalar/by_pc.h"

namespace cm384::npu {

struct Block;
struct Operation;
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

class ScalarProfile {
 public:
  // A program starts; what it counts goes to its own table.
  void begin(const std::shared_ptr<Program>& program);
  // Number of the program's table, from 0, in the order of their first starts.
  std::size_t current() const { return current_; }

  // A block has run to its end, and the way on cost so much.
  void ran(std::uint64_t block, std::int64_t edge_cost) {
    Ran& ran = tables_[current_].counts.blocks.at(block);
    ++ran.times;
    ran.edge_cycles += static_cast<std::uint64_t>(edge_cost);
  }
  // Of a block that was left early: its operations before number `end`.
  void ran_part(const Block& block, std::uint32_t end);
  void issued(std::uint64_t pc) { ++at(pc).instructions; }
  void stalled(std::uint64_t pc, ScalarStall why, std::int64_t cycles) {
    if (cycles > 0) at(pc).stalls[static_cast<std::size_t>(why)] += static_cast<std::uint64_t>(cycles);
  }
  // Of the access in hand, so much was a wait for the pipes; it is part of what slow() is told.
  void ordered(std::int64_t cycles) { ordered_ += cycles; }
  // An instruction took so much longer than a block knows.
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

  // What was counted before was warm-up.
  void clear();
  const std::vector<std::shared_ptr<Program>>& programs() const { return programs_; }
  // How often it was started: blocks of launches.
  std::uint64_t starts(std::size_t program) const { return tables_[program].starts; }
  // Blocks, decoded again to spread what they counted over their instructions; for profiles of many cores.
  class Blocks {
   public:
    const Block& at(const Program& program, std::uint64_t pc);

   private:
    std::map<std::pair<const Program*, std::uint64_t>, std::shared_ptr<const Block>> known_;
  };
  struct Ran {
    std::uint64_t times = 0, edge_cycles = 0;
  };
  // Of one program, on one core or summed over many.
  struct Counts {
    ByPc<Ran> blocks;
    ByPc<ScalarCycles> instructions;  // beyond what blocks say

    Counts& operator+=(const Counts& other);
  };
  const Counts& counts(std::size_t program) const { return tables_[program].counts; }
  // By pc; and all of it.
  static std::map<std::uint64_t, ScalarCycles> instructions(const Program& program, const Counts& counts,
                                                            Blocks& blocks);
  static ScalarCycles total(const Program& program, const Counts& counts, Blocks& blocks);

 private:
  struct Table {
    Counts counts;
    std::uint64_t starts = 0;
  };

  ScalarCycles& at(std::uint64_t pc) { return tables_[current_].counts.instructions.at(pc); }

  std::vector<std::shared_ptr<Program>> programs_;
  std::vector<Table> tables_;
  std::size_t current_ = 0;
  std::uint64_t parked_pc_ = 0;
  std::int64_t parked_cycle_ = -1;
  std::int64_t ordered_ = 0;
  ScalarStall parked_why_ = ScalarStall::latency;
  bool parked_by_order_ = false;
};

}  // namespace cm384::npu
