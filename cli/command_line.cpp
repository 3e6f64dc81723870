#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "hw/error.h"
#include "hw/nearest_name.h"
#include "studies/build_info.h"

namespace cm384::cli {
namespace {

volatile std::sig_atomic_t interrupted_flag = 0;

extern "C" void on_signal(int signal) {
  interrupted_flag = 1;
  std::signal(signal, SIG_DFL);
}

constexpr std::string_view kUsage =
    "cm384 run STUDY [study options] [--machine PRESET|FILE] [--set key=value]... [--seed N] [--out DIR]\n"
    "cm384 validate            predicted against published, figure by figure\n"
    "cm384 machine list|show|check|reference|statistics [PRESET|FILE]\n"
    "cm384 compare A B         what moved from one result to another, and whether it may\n"
    "cm384 baseline check|update DIR   runs against their golden results, or these made anew\n"
    "cm384 trace info|check|convert|cut|generate|replay ...   traces of traffic and of routing\n"
    "cm384 report DIR          pictures and tables of a finished run, in one HTML page\n"
    "cm384 sweep FILE          many runs over a grid (not built yet)\n"
    "cm384 doctor              what is missing on this machine, and the command that mends it\n"
    "cm384 --version\n"
    "\n"
    "Quantities carry units (7.5KiB, 28GB/s, 47.5ns, 1.85GHz). Every command knows --help. Results go to\n"
    "standard output, progress to standard error. Exit codes: 0 done, 1 a check failed, 2 bad input, 3 the\n"
    "simulated machine hung, 4 an internal error, 5 an output could not be written, 130 interrupted.\n";

void print_usage(std::span<const studies::Study> all) {
  fmt::print("{}\nStudies:\n", kUsage);
  for (const studies::Study& study : all) fmt::print("  {:<12}{}\n", study.name, study.summary);
}

void print_version() {
  const studies::BuildInfo& build = studies::build_info();
  fmt::print("cm384 {} {} ({}, {})\n", build.version, build.commit, build.compiler, build.build_type);
}

int dispatch(std::span<const studies::Study> all, std::span<const studies::Predictor> predictors,
             const Arguments& arguments) {
  if (arguments.empty()) {
    print_usage(all);
    throw InputError("names no command");
  }
  const std::string& command = arguments.front();
  const Arguments rest(arguments.begin() + 1, arguments.end());
  if (command == "run") return run_command(all, rest);
  if (command == "validate") return validate_command(predictors, rest);
  if (command == "machine") return machine_command(rest);
  if (command == "trace") return trace_command(rest);
  if (command == "compare") return compare_command(rest);
  if (command == "report") return report_command(rest);
  if (command == "baseline") return baseline_command(all, rest);
  if (command == "--help" || command == "-h" || command == "help") {
    print_usage(all);
    return kDone;
  }
  if (command == "--version") {
    print_version();
    return kDone;
  }
  if (command == "doctor") {
    print_version();
    fmt::print(
        "This program runs by itself. `./dev doctor` in the source tree says what building it, and building\n"
        "firmware for it, still needs, and which command installs that.\n");
    return kDone;
  }
  if (command == "sweep") {
    throw InputError(fmt::format("{}: not built yet", command));
  }
  const std::vector<std::string> commands = {"run",   "validate", "machine", "compare", "baseline",
                                             "trace", "report",   "sweep",   "doctor"};
  throw InputError(fmt::format("{}: no such command{}; allowed: {}", command,
                               hw::suggestion(command, commands), fmt::join(commands, ", ")));
}

// Input is quoted in messages: what it says may not break the line or reach the terminal as a command.
std::string printable(std::string message) {
  std::ranges::replace_if(
      message, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return message;
}

}  // namespace

const volatile std::sig_atomic_t& interrupted() {
  return interrupted_flag;
}

void watch_signals() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

int run_command_line(std::span<const studies::Study> all, std::span<const studies::Predictor> predictors,
                     const Arguments& arguments) {
  const auto report = [](std::string_view message) {
    std::fflush(stdout);
    fmt::print(stderr, "cm384: {}\n", message);
  };
  try {
    return dispatch(all, predictors, arguments);
  } catch (const InputError& error) {
    report(printable(error.what()));
    return kBadInput;
  } catch (const OutputError& error) {
    report(printable(error.what()));
    return kOutputFailed;
  } catch (const MachineError& error) {
    report(error.what());
    return kMachineHung;
  } catch (const std::exception& error) {
    report(fmt::format("internal error: {}", error.what()));
    return kInternalError;
  }
}

}  // namespace cm384::cli
