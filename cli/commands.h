// The commands of cm384. Each takes what follows its name, writes results to standard output, and returns an
// exit code; InputError and MachineError go up to run_command_line().
#pragma once

#include <csignal>
#include <span>
#include <string>
#include <vector>

#include "report/junit.h"
#include "studies/study.h"
#include "studies/validation.h"

namespace cm384::cli {

using Arguments = std::vector<std::string>;

int run_command(std::span<const studies::Study> all, const Arguments& arguments);
int validate_command(std::span<const studies::Predictor> predictors, const Arguments& arguments);
int machine_command(const Arguments& arguments);
int trace_command(const Arguments& arguments);
int trace_replay_command(const Arguments& arguments);
int trace_generate_command(const Arguments& arguments);
int compare_command(const Arguments& arguments);
int report_command(const Arguments& arguments);
int baseline_command(std::span<const studies::Study> all, const Arguments& arguments);

// Writes `--junit FILE`. Throws InputError where that fails.
void write_junit(const std::string& path, const std::vector<report::JunitSuite>& suites);

// The whole command line, without the program's name. Reports errors on standard error and maps them to exit
// codes.
int run_command_line(std::span<const studies::Study> all, std::span<const studies::Predictor> predictors,
                     const Arguments& arguments);

// Not 0 after SIGINT or SIGTERM; a second signal ends the program at once.
const volatile std::sig_atomic_t& interrupted();
void watch_signals();

}  // namespace cm384::cli
