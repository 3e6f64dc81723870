// A pipe instruction on its way from the scalar unit to the pipes (firmware/abi/isa.h gives the operands).
#pragma once

#include <cstddef>
#include <cstdint>

namespace cm384::npu {

// Engines of a core that move data, in the order of their events: MTE2, MTE3 and, of a cube core alone, the
// fixpipe.
inline constexpr std::size_t kEngines = 3;
inline constexpr std::uint8_t kFixEngine = 2;

struct PipeInstruction {
  std::uint64_t a = 0, b = 0, c = 0;   // rs1, rs2, rs3
  std::uint32_t pc = 0;                // for reports; private memory ends below 4 GiB
  std::uint8_t instruction_class = 0;  // cm384_class
  std::uint8_t operation = 0;          // rd field
  std::uint8_t type = 0;               // funct2
  bool tainted_scalar = false;         // payload mode control: the scalar in b was computed from payload
};

// What the scalar unit learns when it hands something over at core cycle c.
struct IssueAnswer {
  // Parked: the scalar unit stops here and executes the same instruction again when it is woken.
  bool parked = false;
  // Otherwise it goes on at this cycle (at least c).
  std::int64_t release_cycle = 0;

  static IssueAnswer park() { return {true, 0}; }
  static IssueAnswer at(std::int64_t cycle) { return {false, cycle}; }
};

}  // namespace cm384::npu
