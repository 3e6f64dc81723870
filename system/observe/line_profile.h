// Where kernels' time goes, by source line and by instruction (`--profile`): what each core's scalar unit and
// pipes did, summed over the dies. It looks on from inside each core, by itself, so that modules may run side
// by side.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "npu_core/scalar/scalar_profile.h"
#include "system/machine/supernode.h"

namespace cm384::observe {

// Lanes as the vendor's tools name a core's pipes; the scalar unit has three.
enum class WorkLane : std::uint8_t {
  scalar,
  scalar_memory,
  flow,
  vector,
  cube,
  mte1,
  mte2,
  mte3,
  fixpipe,
  count
};
inline constexpr std::size_t kWorkLanes = static_cast<std::size_t>(WorkLane::count);
const char* name_of(WorkLane lane);
inline bool is_scalar(WorkLane lane) {
  return lane <= WorkLane::flow;
}

// What a pipe did for an instruction. Units that work by cycles count these, engines that copy count time.
struct PipeWork {
  std::uint64_t instructions = 0;
  std::uint64_t busy_cycles = 0;
  std::uint64_t busy_ps = 0;          // from an instruction's turn to issue to its last request
  std::uint64_t conflict_cycles = 0;  // for banks of the UBuffer, part of busy_cycles
  std::uint64_t flag_cycles = 0, barrier_cycles = 0;  // it stood at a wait
  std::uint64_t order_cycles = 0;  // a vector instruction waited for an earlier one (auto-sync)
  std::uint64_t bytes = 0;         // moved from or to memory
  std::uint64_t operations = 0;    // elements of vector instructions; multiplications and additions of cubes
  std::uint64_t lanes = 0;         // elements that the repeats of vector instructions have room for
  std::uint64_t repeats = 0;

  std::uint64_t waits() const { return flag_cycles + barrier_cycles; }
  PipeWork& operator+=(const PipeWork& other);
};

// An instruction, or a part of it: what its scalar unit did, or what its pipe did.
struct InstructionWork {
  std::uint64_t pc = 0;
  std::string name, detail;
  WorkLane lane = WorkLane::scalar;
  npu::ScalarCycles scalar;  // of the lanes of the scalar unit
  PipeWork pipe;             // of the others
  std::string function, file, path;
  int line = 0;  // 0: not known

  std::uint64_t count() const { return is_scalar(lane) ? scalar.instructions : pipe.instructions; }
};

// A kernel's instructions, by pc, then lane.
struct KernelWork {
  std::string kernel;  // name of its image
  std::uint64_t blocks = 0;
  std::uint64_t cube_cycles = 0, cube_bytes = 0;  // of those on cube cores: scalar units' time, bytes moved
  std::vector<InstructionWork> instructions;
};

// What a core did in all.
struct CoreWork {
  int die = 0, core = 0;
  std::string name;  // "core3.veccore1"
  npu::ScalarCycles scalar;
  std::array<PipeWork, kWorkLanes> pipes;
};

struct LineReport {
  double cycle_ps = 0;
  double hbm_bytes_per_s = 0;  // of a die
  int vector_cores = 0, cube_cores = 0;
  double cube_operations_per_cycle = 0;  // of a cube core, BF16
  std::vector<KernelWork> kernels;       // over all dies and cores
  // By number of a core, over all dies: those that ran something.
  struct OfCore {
    std::string name;
    std::vector<KernelWork> kernels;
  };
  std::vector<OfCore> by_core;
  std::vector<CoreWork> cores;  // by die and core
};

class LineProfile {
 public:
  // Before the machine's first launch. Its cores must be there; it outlives the profile's use.
  explicit LineProfile(supernode::Supernode& machine);
  ~LineProfile();
  LineProfile(const LineProfile&) = delete;
  LineProfile& operator=(const LineProfile&) = delete;

  // Discards what was counted before: it was warm-up.
  void begin_counted();
  LineReport report() const;

 private:
  class CoreWatch;
  struct Tables;
  supernode::Supernode& machine_;
  std::vector<std::vector<std::unique_ptr<Tables>>> tables_;  // by worker, by number of a core
  std::vector<std::unique_ptr<CoreWatch>> watches_;
};

}  // namespace cm384::observe
