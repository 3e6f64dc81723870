// What studies share: a machine built for a run, its counters, built-in kernels.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "npu_core/scalar/gdb_stub.h"
#include "system/host/runtime.h"
#include "system/machine/faults.h"
#include "system/machine/rtl_chips.h"
#include "system/machine/supernode.h"
#include "system/observe/machine_profile.h"
#include "system/observe/memory_check.h"
#include "workloads/frame/study.h"

namespace cm384::studies {

struct SessionOptions {
  std::vector<int> dies;
  std::vector<int> sockets;
  bool rdma = false;  // with the RDMA plane
  npu::DieOptions die;
  Time patience = 5_ms;  // a run without progress for so long ends with a report
  // This run's part of the study's work, for the progress display.
  double progress_from = 0, progress_to = 1;
  std::function<void(int die, int core, std::string_view text)> output;
  std::string what;  // this run is, for the file of statistics
  bool check_memory =
      false;  // find stores to memory that nobody allocated, and of two cores to the same bytes
};

// A supernode and its runtime for one run of a study.
class Session {
 public:
  Session(const StudyContext& context, const SessionOptions& options);

  // A run that did not get to its end, because the machine hung: what observers saw is kept.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  supernode::Supernode& machine() { return machine_; }
  host::Runtime& runtime() { return runtime_; }
  // A kernel of firmware/kernels.
  std::shared_ptr<npu::Program> built_in(std::string_view name);
  // What a kernel's phases are called, from 0, by the name of its image without folder and ending.
  void name_phases(std::string_view kernel, std::span<const std::string_view> phases);
  // For the profile: launches that get this block of arguments are a stage of their kernel's.
  void name_stage(std::uint64_t arguments, std::string stage);
  // Share of this session's work that is done, 0 to 1.
  void done(double fraction);
  // For the progress display alone: the next part is `share` of the work and takes about so long. Later parts
  // are taken to last as long as the one before.
  void expect(double share, Time about);
  // What ran before was warm-up: the profile counts from here.
  void begin_counted();
  // What check_memory has found: notes of the result, which has not passed then.
  void add_findings(StudyResult& into) const;
  // Adds this run's counters, to the files of statistics and the profile too. Called once, at its end.
  void count(SimulatorCounts& into) const;

 private:
  const StudyContext& context_;
  mutable bool counted_ = false;
  std::string what_;
  // How far the work is: what is done, and in the part under way by the time the part before took.
  struct Pace {
    double done = 0, step = 0;
    Time begun, took;
    double at(Time simulated) const;  // negative once the part takes longer: nothing is known then
  };
  Pace pace_;
  std::unique_ptr<npu::GdbStub> debugger_;  // of core 0 of the first die, with --gdb
  supernode::RtlChips rtl_;                 // outlives the machine
  supernode::Supernode machine_;
  std::unique_ptr<observe::MachineProfile> profile_;  // with --out
  supernode::Faults faults_;
  host::Runtime runtime_;
  std::unique_ptr<observe::MemoryCheck> memory_check_;
};

}  // namespace cm384::studies
