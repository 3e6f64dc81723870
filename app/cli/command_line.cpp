#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/help.h"
#include "base/engine/peers.h"
#include "base/text/error.h"
#include "base/text/json.h"
#include "base/text/nearest_name.h"
#include "base/text/output_file.h"
#include "base/text/run_files.h"
#include "workloads/frame/build_info.h"

namespace cm384::cli {
namespace {

volatile std::sig_atomic_t interrupted_flag = 0;

// Whether anybody looks at the flag, so that a signal need not end the program itself.
volatile std::sig_atomic_t polled = 0;

// Of several processes that simulate one machine, the first speaks for all, also before they know each other.
volatile std::sig_atomic_t speaks = 1;

// The exit code, once its reason was printed; before: none. A launcher ends the others as soon as one has
// ended with an error, so a signal that comes later says nothing new.
constexpr std::sig_atomic_t kNotTold = -1;
volatile std::sig_atomic_t told = kNotTold;

extern "C" void on_signal(int) {
  if (told != kNotTold) _exit(static_cast<int>(told));
  if (polled != 0 && interrupted_flag == 0) {
    interrupted_flag = 1;
    return;
  }
  remove_unfinished_outputs();
  constexpr std::string_view kMessage = "cm384: interrupted\n";
  if (speaks != 0 && write(STDERR_FILENO, kMessage.data(), kMessage.size()) < 0) _exit(kInterrupted);
  _exit(kInterrupted);
}

// A handler and not SIG_IGN, which programs that are started would inherit.
extern "C" void on_refused_output(int) {}

void print_version() {
  const studies::BuildInfo& build = studies::build_info();
  fmt::print("cm384 {} {} ({}, {})\n", build.version, build.commit, build.compiler, build.build_type);
}

// How many of the arguments the name of a command is; 0: they are not this command's.
std::size_t words_of(const Command& command, const Arguments& arguments) {
  std::size_t words = 0;
  for (std::string_view rest = command.name; !rest.empty(); ++words) {
    const std::size_t blank = rest.find(' ');
    if (words >= arguments.size() || arguments[words] != rest.substr(0, blank)) return 0;
    rest.remove_prefix(blank == std::string_view::npos ? rest.size() : blank + 1);
  }
  return words;
}

bool is_help(const std::string& word) {
  return word == "--help" || word == "-h" || word == "help";
}

// The words that may come next after `prefix` ("", "trace ", "trace generate ").
std::vector<std::string> next_words(const Program& program, const std::string& prefix) {
  std::vector<std::string> words;
  for (const Command* command : commands_of(program)) {
    if (!command->name.starts_with(prefix)) continue;
    const std::string word(
        command->name.substr(prefix.size(), command->name.find(' ', prefix.size()) - prefix.size()));
    if (words.empty() || words.back() != word) words.push_back(word);
  }
  return words;
}

int dispatch(const Program& program, const Arguments& arguments) {
  if (arguments.empty()) {
    fmt::print("{}", usage_of(program));
    throw InputError("no command given");
  }
  if (is_help(arguments.front())) {
    fmt::print("{}", usage_of(program));
    return kDone;
  }
  if (arguments.front() == "--version") {
    print_version();
    return kDone;
  }
  for (const Command* command : commands_of(program)) {
    const std::size_t words = words_of(*command, arguments);
    if (words == 0) continue;
    const auto at = arguments.begin() + static_cast<std::ptrdiff_t>(words);
    Program running = program;
    running.arguments = arguments;
    return command->run(*command, running, Arguments(at, arguments.end()));
  }
  // A group of commands, or a word that is none.
  std::string prefix, typed;
  for (const std::string& word : arguments) {
    const std::vector<std::string> words = next_words(program, prefix);
    typed = prefix + word;
    if (std::ranges::find(words, word) != words.end()) {
      prefix += word + ' ';
      continue;
    }
    if (is_help(word)) {
      fmt::print("{}", usage_of_prefix(program, prefix));
      return kDone;
    }
    throw InputError(fmt::format("{}: no such command{}; allowed: {}", typed, hw::suggestion(word, words),
                                 fmt::join(words, ", ")));
  }
  fmt::print("{}", usage_of_prefix(program, prefix));
  throw InputError(
      fmt::format("{}: incomplete; allowed next: {}", typed, fmt::join(next_words(program, prefix), ", ")));
}

int doctor(const Program&, const NoOptions&, const studies::Given&) {
  print_version();
  fmt::print(
      "This program runs by itself. `./dev doctor` in the source tree says what building it, and building\n"
      "firmware for it, still needs, and which command installs that.\n");
  const std::string why = sim::why_no_mpi();
  fmt::print("MPI: {}\n",
             why.empty() ? "`mpirun -n N cm384 run ...` simulates one machine in N processes" : why);
  return kDone;
}

// Input is quoted in messages: what it says may not break the line or reach the terminal as a command.
std::string printable(std::string message) {
  std::ranges::replace_if(
      message, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return message;
}

bool is_utf8(const std::string& text) {
  try {
    return !Json(text).dump().empty();
  } catch (const Json::type_error&) {
    return false;
  }
}

// Results quote the arguments, and JSON knows no other text.
void check_text(const Arguments& arguments) {
  for (const std::string& word : arguments) {
    if (!is_utf8(word)) throw InputError(fmt::format("'{}': is not UTF-8; allowed: names in UTF-8", word));
  }
}

// The first reason for which standard output took no more; 0: none.
int output_error = 0;

// What was printed has to have gone out. Throws OutputError.
void check_standard_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 && output_error == 0) output_error = errno != 0 ? errno : EIO;
  if (output_error == 0 && std::ferror(stdout) != 0) output_error = EIO;
  if (output_error != 0)
    throw OutputError(
        fmt::format("standard output: cannot be written: {}", std::generic_category().message(output_error)));
}

// Where messages go: standard error, also of a process that is not the first of several and prints nothing
// else.
std::FILE* errors = stderr;

// Those that mpirun has started, for a study; the first prints.
void join_peers(const Arguments& arguments) {
  sim::join_peers(interrupted_flag);
  if (!sim::peers().several()) return;
  if (sim::peers().self() != 0) {
    errors = fdopen(dup(STDERR_FILENO), "w");
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
  }
  if (arguments.empty() || arguments.front() != "run")
    throw InputError(
        "mpirun: several processes simulate one machine of `cm384 run`; allowed: mpirun ... cm384 run STUDY");
}

}  // namespace

constinit const Command kDoctorCommand = make_command<NoOptions, doctor>(
    "doctor", "", "what is missing on this machine, and the command that installs it");

std::vector<const Command*> commands_of(const Program& program) {
  std::vector<const Command*> all;
  for (const CommandGroup& group : program.commands)
    all.insert(all.end(), group.commands.begin(), group.commands.end());
  return all;
}

void print_now(std::string_view text) {
  errno = 0;
  const bool good =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!good && output_error == 0) output_error = errno != 0 ? errno : EIO;
}

const volatile std::sig_atomic_t& interrupted() {
  polled = 1;
  return sim::peers().several() ? sim::peers().interrupted() : interrupted_flag;
}

void watch_signals() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (const char* rank = std::getenv(name); rank != nullptr && std::string_view(rank) != "0") speaks = 0;
  }
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (std::signal(signal, on_signal) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, on_refused_output);
}

void open_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest number that is free is this one. What is written to a file that is open to be read fails.
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDONLY);
  }
}

namespace {

struct Outcome {
  int code = kDone;
  std::string message;  // for standard error; empty: none
  bool lost = false;    // another process that simulates the machine has ended
};

Outcome outcome_of(const Program& program, const Arguments& arguments) {
  try {
    check_text(arguments);
    const RunFiles files;
    join_peers(arguments);
    const int code = dispatch(program, arguments);
    check_standard_output();
    return {code, {}};
  } catch (const InputError& error) {
    return {kBadInput, printable(error.what())};
  } catch (const OutputError& error) {
    return {kOutputFailed, printable(error.what())};
  } catch (const MachineError& error) {
    return {kMachineHung, error.what()};
  } catch (const sim::PeerLost& error) {
    return {kInternalError, error.what(), true};
  } catch (const std::filesystem::filesystem_error& error) {
    const std::string path = error.path1().string();
    return {kBadInput, printable(fmt::format("{}: {}", path, error.code().message()))};
  } catch (const std::system_error& error) {
    // fmt throws this where standard output takes no more.
    if (std::ferror(stdout) == 0) return {kInternalError, fmt::format("internal error: {}", error.what())};
    return {kOutputFailed, fmt::format("standard output: cannot be written: {}", error.code().message())};
  } catch (const std::bad_alloc&) {
    return {kBadInput, "needs more memory than this process can get; allowed: a smaller case"};
  } catch (const std::length_error&) {
    return {kBadInput, "needs more memory than this process can get; allowed: a smaller case"};
  } catch (const std::exception& error) {
    return {kInternalError, fmt::format("internal error: {}", error.what())};
  }
}

}  // namespace

int run_command_line(const Program& program, const Arguments& arguments) {
  const Outcome outcome = outcome_of(program, arguments);
  sim::peers().end(outcome.code, outcome.lost, [&] {
    std::fflush(stdout);
    if (outcome.message.empty()) return;
    const std::string line = fmt::format("cm384: {}\n", outcome.message);
    std::fwrite(line.data(), 1, line.size(), errors);
    std::fflush(errors);
    told = outcome.code;
  });
  return outcome.code;
}

}  // namespace cm384::cli
