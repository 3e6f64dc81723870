// FusedDispatch by AIV-Direct over many ranks: one launch of kernel `dispatch` a rank and iteration.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hw/units.h"
#include "npu_core/die/launch.h"
#include "studies/confidence.h"
#include "studies/study.h"

namespace cm384::supernode {
class Supernode;
}

namespace cm384::studies {

// One row of `run dispatch`.
struct DispatchCase {
  int ranks = 8;
  int batch = 128;    // tokens a rank
  int top_k = 8;      // routed experts a token
  int experts = 256;  // logical routed experts
  int hidden = 7168;
  int shared_copies = -1;  // ranks that hold the shared expert; -1: 32 at EP320, none elsewhere
  int cores = 48;          // AIVs a rank
  bool full_mesh = false;  // the kernel whose flags stand inside the rows' blocks
  int warmup = 1;          // iterations not counted
  int iterations = 3;
  bool full = false;  // payload mode: move every byte, compare what arrived with the host's reference
  bool elide_polls = true;
  bool check_hazards = false;
  std::string placement = "linear";
  std::string routing = "uniform";  // uniform, zipf:S, trace:FILE
  bool drop_repeats = false;
  Time start_skew{};             // ranks start at times drawn from [0, start_skew]
  bool reverse_modules = false;  // dies become modules in the opposite order, which must change nothing
  // Called with the machine before its first launch: where faults and observers are attached.
  std::function<void(supernode::Supernode&)> prepare;
};

struct DispatchReading {
  Summary task_us;  // over ranks and counted iterations
  Summary kernel_us;
  std::vector<double> phase_us;           // mean of a core's time in each phase of the kernel
  std::optional<bool> correct;            // payload mode full only
  std::string first_difference;           // where `correct` is false
  std::vector<npu::LaunchRecord> tasks;   // of counted iterations, in each one of all ranks in order
  std::uint64_t skipped_polls = 0;        // turns of polling loops that poll elision left out
  int batch = 0, top_k = 0, experts = 0;  // effective; a trace sets the last two
};

// Runs the case on a machine of its own, counters added to `counts`. [progress_from, progress_to] is its part
// of the study's work.
DispatchReading measure_dispatch(const StudyContext& context, const DispatchCase& setting,
                                 SimulatorCounts& counts, double progress_from = 0, double progress_to = 1);

}  // namespace cm384::studies
