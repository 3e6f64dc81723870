// One run of a study from its command line: what `cm384 run` and `cm384 baseline` share.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "app/cli/command.h"
#include "app/cli/common_options.h"
#include "app/cli/ensemble_options.h"
#include "app/cli/watch_options.h"
#include "base/text/json.h"
#include "system/observe/energy.h"
#include "system/observe/explain/explanation.h"
#include "workloads/frame/options.h"

namespace cm384::cli {

struct FinishedRun {
  studies::StudyResult result;
  Json document;  // as in result.json
  std::vector<observe::Explanation> explanations;
  std::vector<std::string> energies;  // in text, one for each machine
  std::vector<std::string> lines;     // likewise, the hottest lines
};

// Options of every run.
struct RunOptions {
  MachineOptions machine;
  SeedOption seed;
  RowOptions rows;
  WatchOptions watch;
  std::string out, record, wave, profile;
  studies::Texts wave_links;
  int threads = 0, what_if_threads = 0;
  Time time_limit{};
  int gdb = 0;
  std::string gdb_at;
  EnsembleOptions on_ensemble;
  bool explain = false, explain_check = false;
  std::string energy;  // table; empty: not asked for
  int supernodes = 0;

  // To be called once they are parsed: an option that stands for a parameter of the machine becomes one.
  void settle();

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit);  // study_run.cpp
};

// A study's options with their defaults, as its help groups them: its own, those of every run.
class StudyCommandLine {
 public:
  explicit StudyCommandLine(const studies::Study& study);
  StudyCommandLine(const StudyCommandLine&) = delete;
  StudyCommandLine& operator=(const StudyCommandLine&) = delete;

  const studies::Study& study;
  std::unique_ptr<studies::StudyOptions> own;
  studies::FabricOptions fabric;
  RunOptions run;
  HelpOption help;
  std::vector<studies::OptionGroup> groups;
};

// Whether several processes of MPI can simulate the study's machine.
bool runs_over_processes(std::string_view study);

class StudyRun {
 public:
  // `arguments`: the study's name and its options. Throws InputError.
  StudyRun(std::span<const studies::Study> all, const Arguments& arguments);
  ~StudyRun();
  StudyRun(const StudyRun&) = delete;
  StudyRun& operator=(const StudyRun&) = delete;

  const studies::Study& study() const { return line_.study; }
  bool wants_help() const { return line_.help.help; }
  const RowOptions& rows() const { return line_.run.rows; }
  StudyCommandLine& line() { return line_; }
  const studies::Given& given() const { return given_; }

  // Opens every file that is asked for, then runs the study. `row_done` gets each row when it is final. If
  // the machine hangs or faults, hung() has its report and the rows are those before; of anything else that
  // ends the run after its first row, rethrow() has the error. Throws InputError, OutputError.
  FinishedRun run(const std::function<void(const studies::Row&)>& row_done = {});
  // Puts the files under their names, result.json first. Throws OutputError that names the first that failed.
  void write(const FinishedRun& finished);
  const std::optional<std::string>& hung() const { return hung_; }
  // Throws what has ended the run after its first row, MachineError of a machine that hangs included; to be
  // called when the rows are written.
  void rethrow() const;

 private:
  struct Outputs;

  void check_explain() const;
  // Runs again with the parameters changed of each gain that is to be checked.
  void check(std::vector<observe::Explanation>& explanations, const hw::Machine& machine);
  void add_energy(FinishedRun& finished, const hw::Machine& machine, const observe::EnergyTable& table) const;

  Arguments arguments_;  // of the command line, `run` included
  StudyCommandLine line_;
  studies::Given given_;
  std::unique_ptr<Outputs> outputs_;  // from run() on
  std::optional<std::string> hung_;
  std::exception_ptr failure_;
};

// The help of a study.
std::string help_of_study(const studies::Study& study);

// The study of this name. Throws InputError with a suggestion.
const studies::Study& find_study(std::span<const studies::Study> all, const std::string& name);

// 0, 1 if a check failed, 130 if it was interrupted.
int exit_code_of(const studies::StudyResult& result);

}  // namespace cm384::cli
