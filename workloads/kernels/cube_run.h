// What the studies of kernels on one die's cube cores share: the machine, launches with what each of them
// took, options, and columns of rows.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "firmware/abi/gemm.h"
#include "npu_core/die/die.h"
#include "system/host/recording_file.h"
#include "workloads/frame/session.h"
#include "workloads/operators/operator.h"

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
  std::vector<reference::StageAccuracy> accuracy;  // where inputs were drawn for it

  // Takes what a comparison found; empty: equal.
  void compared(std::string difference);
};

// How such a study runs its operators.
struct CubeSetting {
  int blocks = 24;  // groups of an AIC and its AIVs, from the first on
  bool full = false;
  operators::Grade grade = operators::Grade::firmware;
  std::string recording;  // file for grade replay; empty: none
  bool graph = false;     // launched from a captured graph
};

// The operators of a run.
struct Stages {
  std::vector<std::unique_ptr<operators::KernelOperator>> placed;  // in this order
  std::vector<operators::KernelOperator*> run;                     // one after another
};

// Die 0 of a machine of its own, and the groups of cores 0 .. blocks - 1 of it.
class CubeRun {
 public:
  using Make = std::function<Stages()>;

  // In payload mode full the vector cores' hazards are checked: two pipes at one place without a flag between
  // them end the run. For grade replay `make` is called twice: what the operators' firmware moves comes from
  // the file, or it is recorded first, on a machine of its own, and the file written.
  CubeRun(const StudyContext& context, std::string what, const CubeSetting& setting, const Make& make);

  const Stages& stages() const { return stages_; }
  // Runs the stages to their end: what each of them alone took, in the order of Stages::run; those that did
  // not end, because the run was interrupted, are left out. Called once.
  std::vector<CubeReading> measure(SimulatorCounts& counts);

 private:
  // Sums over the blocks' cube cores and of the die's memory, since construction.
  struct Totals {
    std::array<double, npu::kCubePipes> busy_us{}, wait_us{};
    std::array<npu::PipeWaits, npu::kCubePipes> waits{};
    std::uint64_t hbm_bytes = 0, l2_hits = 0, l2_misses = 0;
  };
  bool run(operators::KernelOperator& stage, CubeReading& reading);
  void expect(const operators::Work& work);
  Totals totals();
  std::vector<PipeShare> shares(const Totals& from, const Totals& to, double kernel_us) const;

  CubeSetting setting_;
  host::Recordings recordings_;
  Session session_;
  host::DeviceMemory memory_;
  Stages stages_;
  Totals before_;
};

// Of the stages' firmware, one after another on groups 0 .. blocks - 1 of a machine of its own; fewer where
// the run was interrupted.
host::Recordings record_stages(const StudyContext& context, const CubeSetting& setting,
                               const CubeRun::Make& make);

// Peak of a die in operations per second.
double cube_peak(const hw::Machine& machine, cm384_gemm_type type);
// "MTE2: busy 93 %, waits for MTE1 4 %": the busiest pipe of the kernel, or "launch: 60 %" of the latency
// where launch and teardown take longer; "several (--explain); " before it where it takes less than half.
// `kernel_share`: of the latency.
std::string bottleneck(const std::vector<PipeShare>& pipes, double kernel_share);

// Options of all these studies.
struct CubeOptions {
  int cores = 0;
  bool full = false;
  bool kernel_time = false;
  std::string grade = "firmware";
  std::string recording;
  bool graph = false;
  bool grade_given = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("cores", self.cores, Range{0, 64}, "AICs, each with its two AIVs; 0: all of the die");
    visit("payload", self.full, Either{"control", "full"},
          "full computes every value and compares it with the host's; control moves tags of payload");
    visit("launch", self.graph, Either{"single", "graph"},
          "single: set-up begins when the task has its turn; graph: it was set up while the task before ran");
    visit(
        "measure", self.kernel_time, Either{"task", "kernel"},
        "latency_us of the whole task as the vendor's profiler reads it, or from first to last instruction");
    visit(
        "grade", self.grade, OneOf{{"firmware", "replay", "formula"}},
        "firmware executes the kernel's instructions; replay moves what they moved once, by the same memory "
        "model; formula is a duration in closed form from peak rates, and what accelerators without cores "
        "have");
    visit("recording", self.recording, Form{"FILE"},
          "what replay moves: read if the file is there, otherwise recorded from firmware and written",
          Needs{"grade", {"replay"}});
  }
  void follow(const Given& given) { grade_given = given.contains("grade"); }
  void settle(const hw::Machine& machine) {
    if (machine.accelerator.has_cores()) return all_if_zero(cores, machine.die.groups());
    if (!grade_given) grade = "formula";
  }
};
// Options of the studies that show how exact their arithmetic is.
struct AccuracyOptions {
  bool wanted = false;
  std::string drawn = "normal";

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("accuracy", self.wanted,
          "compare with double precision and with BF16 arithmetic as well: inputs are real numbers, rounded "
          "and "
          "quantised, in place of evenly drawn bits",
          Needs{"payload", {"full"}});
    visit("draw", self.drawn, Form{"normal|laplace|outliers:N:FACTOR", reference::check_draw},
          "distribution of the activations; outliers: a normal one, and N channels multiplied. Weights are "
          "normal",
          Needs{"accuracy", {}});
  }
  std::optional<reference::Draw> draw() const {
    if (!wanted) return {};
    return reference::parse_draw(drawn);
  }
};
// How rows name what was drawn, and what came out.
extern const std::span<const Field> kAccuracyFields;
// Puts these into a row, and a sentence on each stage into the result's notes.
void add_accuracy(const AccuracyOptions& options, const std::vector<reference::StageAccuracy>& stages,
                  StudyResult& result, Row& row);

// Which cores of a die no group of an AIC and two AIVs has, for people; empty: none.
std::string cores_without_group(const hw::Die& die);
// Throws InputError, in the name of `study`, if the die has fewer AICs, or where a grade cannot give what is
// asked for.
CubeSetting cube_setting(const StudyContext& context, const CubeOptions& options, const char* study);

// Without cores: throws InputError where an option means nothing, or another grade is asked for.
void check_without_cores(const StudyContext& context, const CubeOptions& options, const char* study);

// Fields of the rows of all these studies, behind their own.
std::vector<Field> with_cube_fields(std::span<const Field> own, std::span<const Field> more = {});

// latency_us, of the task or of the kernel as --measure says.
double latency_us(const CubeOptions& options, const CubeReading& reading);
// Puts the columns that all these studies have behind those of `row`, and the row into `result`, which fails
// if the values are wrong.
void add_row(const StudyContext& context, const CubeOptions& options, StudyResult& result, Row row,
             const CubeReading& reading, cm384_gemm_type type);

}  // namespace cm384::studies
