#include "lab/runs/run_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/text/error.h"
#include "base/text/json.h"
#include "lab/runs/host.h"

namespace cm384::runs {
namespace {

namespace fs = std::filesystem;

std::string whole_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return file ? text.str() : "";
}

// In memory, of a process and those that it has started.
double pages_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/statm", process));
  double pages = 0;
  file >> pages >> pages;
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", process));
  for (pid_t child = 0; children >> child;) pages += pages_of(child);
  return pages;
}

// A launcher ends what it has started when it is asked to end, and is given this long for it.
bool ended_by_launcher(pid_t launcher) {
  constexpr double kLauncherPatience_s = 5;
  kill(launcher, SIGTERM);
  for (const double begin = seconds(); seconds() < begin + kLauncherPatience_s; usleep(10'000)) {
    if (waitpid(launcher, nullptr, WNOHANG) == launcher) return true;
  }
  return false;
}

// The last thing that the command said was wrong.
std::string last_message(const std::string& errors) {
  static constexpr std::string_view kPrefix = "cm384: ";
  std::string message;
  std::istringstream lines(errors);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kPrefix)) message = line.substr(kPrefix.size());
  }
  return message;
}

}  // namespace

std::vector<std::string> mpirun(int processes) {
  if (processes == 1) return {};
  std::vector<std::string> words{"mpirun", "--quiet", "--oversubscribe"};
  if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  words.insert(words.end(), {"-n", std::to_string(processes)});
  return words;
}

std::vector<std::string> srun(int processes) {
  if (processes == 1) return {};
  return {"srun",      "--quiet",      "--mpi=pmix",           "--nodes=1", "--overcommit",
          "--overlap", "--input=none", "--kill-on-bad-exit=1", "--ntasks",  std::to_string(processes)};
}

RunProcess::RunProcess(const std::string& program, fs::path folder, const std::vector<std::string>& arguments,
                       const std::vector<std::string>& launcher, Leaves leaves)
    : folder_(std::move(folder)), launched_(!launcher.empty()), leaves_(leaves), begin_(seconds()) {
  std::error_code failure;
  fs::create_directories(folder_, failure);
  if (failure) throw OutputError(fmt::format("{}: cannot be made: {}", folder_.string(), failure.message()));
  std::vector<std::string> words = launcher;
  // A launcher would be /proc/self/exe itself.
  words.push_back(launched_ && fs::is_symlink(program) ? fs::read_symlink(program).string() : program);
  words.emplace_back("run");
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.insert(words.end(), {"--out", folder_.string()});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string errors = (folder_ / "errors").string();
  const std::string output = leaves == Leaves::folder ? (folder_ / "output").string() : "/dev/null";
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    // A group of its own: an interrupt at the terminal is for the sweep, which ends its points itself.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    const int nothing = open("/dev/null", O_RDWR);
    const int log = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    const int rows = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(nothing, STDIN_FILENO);
    dup2(rows >= 0 ? rows : nothing, STDOUT_FILENO);
    dup2(log >= 0 ? log : nothing, STDERR_FILENO);
    execvp(argv.front(), argv.data());
    dprintf(STDERR_FILENO, "cm384: %s: %s\n", argv.front(), strerror(errno));
    _exit(127);
  }
  if (pid_ < 0) {
    const int reason = errno;
    fs::remove_all(folder_, failure);
    throw OutputError(
        fmt::format("a process cannot be started: {}", std::generic_category().message(reason)));
  }
}

RunProcess::~RunProcess() {
  if (pid_ > 0) {
    if (!launched_ || !ended_by_launcher(pid_)) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  std::error_code ignored;
  if (leaves_ == Leaves::nothing) fs::remove_all(folder_, ignored);
}

void RunProcess::interrupt() const {
  if (pid_ > 0) kill(pid_, SIGTERM);
}

void RunProcess::kill_now() const {
  if (pid_ > 0) kill(pid_, SIGKILL);
}

std::optional<Outcome> RunProcess::poll() {
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  return outcome_of(status);
}

double RunProcess::resident_MB() const {
  return pages_of(pid_) * static_cast<double>(sysconf(_SC_PAGESIZE)) * 1e-6;
}

double RunProcess::age_s() const {
  return seconds() - begin_;
}

Outcome RunProcess::outcome_of(int status) const {
  Outcome outcome;
  outcome.document = whole_file(folder_ / "result.json");
  outcome.profile = whole_file(folder_ / "profile.json");
  const std::string said = last_message(whole_file(folder_ / "errors"));
  if (WIFSIGNALED(status)) {
    outcome.exit_code = 128 + WTERMSIG(status);
    outcome.reason = fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else {
    outcome.exit_code = WEXITSTATUS(status);
    if (outcome.exit_code == 1) {
      outcome.reason = said.empty() ? "a check failed" : said;
    } else if (outcome.exit_code != 0) {
      outcome.reason = said.empty() ? fmt::format("ended with exit code {}", outcome.exit_code) : said;
    }
  }
  if (!outcome.document.empty()) {
    const Json document = Json::parse(outcome.document, nullptr, false);
    if (document.is_discarded()) {
      outcome.document.clear();
    } else if (document.contains("simulator")) {
      outcome.wall_s = document["simulator"].value("wall_s", 0.0);
      outcome.peak_MB = document["simulator"].value("peak_rss_MB", 0.0);
      const Json processes = document["simulator"].value("processes", Json::array());
      if (!processes.empty()) outcome.peak_MB = 0;
      for (const Json& process : processes) outcome.peak_MB += process.value("peak_rss_MB", 0.0);
    }
  }
  if (outcome.document.empty() && outcome.exit_code == 0) {
    outcome.exit_code = kNoOutput;
    outcome.reason = "wrote no result";
  }
  return outcome;
}

}  // namespace cm384::runs
