// `cm384 sweep --slurm`: its options, and what a task of it does.
#pragma once

#include <memory>
#include <string>

#include "base/text/units.h"
#include "lab/sweeps/slurm_runner.h"
#include "workloads/frame/options.h"

namespace cm384::cli {

struct SlurmSweepOptions {
  bool slurm = false;
  std::string partition, slurm_options, after, time_limit;
  int chunk = 0, cpus = 1;
  Time poll = 15_s;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using namespace studies;
    const Needs slurm{"slurm", {}};
    visit("slurm", self.slurm, "run the points as job arrays of Slurm, from a host that can submit jobs");
    visit("partition", self.partition, Form{"NAME"}, "of Slurm; default: Slurm's own", slurm);
    visit("cpus", self.cpus, Range{1, 1024}, "cores of a task, and threads of its runs", slurm);
    visit("chunk", self.chunk, Range{0, 1'000'000},
          "points that a task runs one after another; 0: some minutes' worth, from estimates", slurm);
    visit("time-limit", self.time_limit, Form{"TIME"},
          "of a task, as sbatch takes it (90, 1:30:00, 2-12); default: from estimates", slurm);
    visit("after", self.after, Form{"JOB"}, "a job of Slurm that has to succeed before points run", slurm);
    visit("slurm-options", self.slurm_options, Form{"WORDS"},
          "further options of sbatch, such as '--account=x --qos=y'", slurm);
    visit("poll", self.poll, Range{100_ms, 3600_s}, "time between polls of Slurm's queue", slurm);
  }
  // Checked; what other options say about it is left out. Throws InputError.
  sweeps::SlurmOptions checked() const;
};

// Where the tasks of a sweep find their points.
std::string spool_folder(const std::string& sweep_folder);

}  // namespace cm384::cli
