// Runs a small operator on die 0: as single launches or as kernels of a captured graph, each with operands of
// its own, which no cache holds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "workloads/frame/session.h"
#include "workloads/operators/collective.h"
#include "workloads/operators/collectives/copy_collective.h"
#include "workloads/operators/operator.h"

namespace cm384::studies {

struct OpSetting {
  int groups = 24;  // of an AIC and its two AIVs, from the first on
  bool graph = false;
  int iterations = 1, warmup = 1;
  bool full = false;  // payload mode
};

// Means over the iterations.
struct OpReading {
  double task_us = 0, kernel_us = 0;
  double pace_us = 0;  // from the begin of the first to the end of the last, over how many there are
  double hbm_bytes = 0;
  std::size_t blocks = 0;
  std::string bottleneck;
  std::string algorithm;        // of a collective
  std::optional<bool> correct;  // payload mode full only
  std::string first_difference;
};

// Over ranks, one per die, from die 0 on; means over ranks and iterations.
struct CollectiveRun {
  int ranks = 2, cores = 48;  // AIVs of each die
  std::function<std::unique_ptr<operators::Collective>()> make;
  std::string algorithm{};
};
std::optional<OpReading> run_collective(const StudyContext& context, const std::string& what,
                                        const OpSetting& setting, const CollectiveRun& collective,
                                        SimulatorCounts& counts);

// A collective by copies of SDMA engines: operators/collectives/copy_collective.h. A task is a run of a rank.
struct CopyRun {
  reference::CollectiveCase collective;
  operators::CopySetting setting;
};
std::optional<OpReading> run_copy_collective(const StudyContext& context, const std::string& what,
                                             const OpSetting& setting, const CopyRun& copies,
                                             SimulatorCounts& counts);

using MakeOperator = std::function<std::unique_ptr<operators::KernelOperator>()>;
// Warm-up launches come first, by themselves: the kernel's code is in L2 then. The iterations follow one
// after another in a stream. Empty: interrupted.
std::optional<OpReading> run_operator_alone(const StudyContext& context, const std::string& what,
                                            const OpSetting& setting, const MakeOperator& make,
                                            SimulatorCounts& counts);

}  // namespace cm384::studies
