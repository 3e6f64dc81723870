// What the studies of kernels on one die's cube cores share: the machine, launches with what each of them
// took, options, and columns of rows.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "firmware/abi/gemm.h"
#include "npu_core/die/die.h"
#include "studies/session.h"

namespace cm384::studies {

// What a pipe of the cube cores did, as shares of the kernel's time, mean over the cores.
struct PipeShare {
  std::string name;
  double busy = 0;
  double waiting = 0;     // idle, at wait_flags
  std::string waits_for;  // the pipe it waited for longest
};

// One launch.
struct CubeReading {
  double task_us = 0, kernel_us = 0;
  double operations = 0;  // two a multiplication with its addition
  double hbm_bytes = 0;
  double l2_hit_rate = 0;
  std::vector<PipeShare> pipes;
  std::optional<bool> correct;  // payload mode full only
  std::string first_difference;

  // Takes what a comparison found; empty: equal.
  void compared(std::string difference);
};

// Die 0 of a machine of its own, and the groups of cores 0 .. blocks - 1 of it.
class CubeRun {
 public:
  // In payload mode full the vector cores' hazards are checked: two pipes at one place without a flag between
  // them end the run.
  CubeRun(const StudyContext& context, std::string what, int blocks, bool full);

  host::Runtime& runtime() { return session_.runtime(); }
  // Address of a block of arguments.
  template <class Arguments>
  std::uint64_t put(const Arguments& arguments) {
    const std::uint64_t block = runtime().allocate(0, sizeof arguments);
    runtime().put(block, arguments);
    return block;
  }
  // For the progress display: the launch to come makes so many operations, of INT8 or of BF16.
  void expect(double operations, bool int8);
  // Runs a kernel of firmware/kernels to its end and puts times, traffic and pipes of this launch alone into
  // `reading`. False, and nothing read, when the run was interrupted.
  bool launch(const char* kernel, std::uint64_t arguments, npu::KernelType type, CubeReading& reading);
  // Adds this run's counters. Called once, at its end.
  void count(SimulatorCounts& into) const { session_.count(into); }

 private:
  // Sums over the blocks' cube cores and of the die's memory, since construction.
  struct Totals {
    std::array<double, npu::kCubePipes> busy_us{}, wait_us{};
    std::array<npu::PipeWaits, npu::kCubePipes> waits{};
    std::uint64_t hbm_bytes = 0, l2_hits = 0, l2_misses = 0;
  };
  Totals totals();
  std::vector<PipeShare> shares(const Totals& from, const Totals& to, double kernel_us) const;

  Session session_;
  std::vector<std::uint16_t> blocks_;
  Totals before_;
};

// Peak of a die in operations per second.
double cube_peak(const hw::Machine& machine, cm384_gemm_type type);
// "MTE2: busy 93 %, waits for MTE1 4 %": the busiest pipe.
std::string bottleneck(const std::vector<PipeShare>& pipes);

// Options of all these studies.
struct CubeOptions {
  int cores = 24;
  bool full = false;
  bool kernel_time = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("cores", self.cores, Range{1, 64}, "AICs, each with its two AIVs");
    visit("payload", self.full, Either{"control", "full"},
          "full computes every value and compares it with the host's; control moves tags of payload");
    visit(
        "measure", self.kernel_time, Either{"task", "kernel"},
        "latency_us of the whole task as the vendor's profiler reads it, or from first to last instruction");
  }
};
// Throws InputError, in the name of `study`, if the die has fewer AICs.
void check_cores(const StudyContext& context, const CubeOptions& options, const char* study);

// Fields of the rows of all these studies, behind their own.
std::vector<Field> with_cube_fields(std::span<const Field> own);

// latency_us, of the task or of the kernel as --measure says.
double latency_us(const CubeOptions& options, const CubeReading& reading);
// Puts the columns that all these studies have behind those of `row`, and the row into `result`, which fails
// if the values are wrong.
void add_row(const StudyContext& context, const CubeOptions& options, StudyResult& result, Row row,
             const CubeReading& reading, cm384_gemm_type type);

}  // namespace cm384::studies
