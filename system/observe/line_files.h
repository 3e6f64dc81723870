// What a profile by source line says: files, a few lines of text, JSON for results and reports.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/text/json.h"
#include "system/observe/line_profile.h"

namespace cm384::observe {

// A source line: its instructions together.
struct LineWork {
  std::string file, path, function;
  int line = 0;
  std::uint64_t count = 0;  // of the instruction that was executed most often
  npu::ScalarCycles scalar;
  std::array<PipeWork, kWorkLanes> pipes;
};

// The lines of a kernel, by path and line.
std::vector<LineWork> lines_of(const KernelWork& kernel);

// Cycles that a pipe worked, and that it worked or stood at a wait.
double busy_cycles(const PipeWork& work, double cycle_ps);
double held_cycles(const PipeWork& work, double cycle_ps);
// Cycles that an instruction, or a line's instructions together, held the scalar unit or a pipe.
double held_cycles(const InstructionWork& work, double cycle_ps);
double held_cycles(const LineWork& work, double cycle_ps);

// One entry of `lines` in result.json: kernels with their lines, the hottest first, and their sources.
Json to_json(const LineReport& report);
// The hottest lines of each kernel.
std::string text_of(const LineReport& report);
// code_exe.csv and instr_exe.csv as the vendor's simulator names their columns, lines.csv and
// instructions.csv with all that is counted, all over dies and cores; cores.csv by die and core;
// coreN.veccoreM/ and coreN.cubecore0/ with the first two of a core, over the dies; lines.json. Throws
// OutputError.
void write_lines(const LineReport& report, const std::string& folder);

}  // namespace cm384::observe
