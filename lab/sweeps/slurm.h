// Slurm, as the commands sbatch, squeue, scancel and scontrol show it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cm384::sweeps {

// What a job array is submitted with.
struct Submission {
  std::string name{};    // of the job, which tells it from all others
  std::string script{};  // a file
  std::string log{};     // of a task, with Slurm's patterns
  std::string folder{};  // where the tasks run
  int tasks = 1;
  int at_a_time = 0;     // tasks; 0: as many as there is room for
  int cpus = 1;          // of a task
  double memory_MB = 0;  // of a task, 10^6 B; 0: the partition's default
  std::string limit{};   // of a task's time, as Slurm takes it; empty: the partition's default
  std::string partition{};
  std::string after{};                 // a job that has to succeed before; empty: none
  std::vector<std::string> options{};  // further ones; they go before what a sweep cannot do without
};

// The words of the command that submits it.
std::vector<std::string> sbatch_words(const Submission& submission);

struct TaskState {
  std::string job{};     // the array's number
  std::string state{};   // such as RUNNING
  std::string reason{};  // such as NodeDown; empty: none
  std::string nodes{};
  double memory_MB = 0;  // 0: not known

  bool pending() const { return state == "PENDING"; }
  bool ended() const;  // for good: it will not run, or not run on
};

// By job name and number in the array. A task that Slurm has forgotten is not there.
using TaskStates = std::map<std::pair<std::string, int>, TaskState>;

// What `squeue` prints with kTaskFormat; lines of other jobs are left out.
TaskStates parse_tasks(std::string_view text);
inline constexpr const char* kTaskFormat = "%j|%F|%K|%T|%r|%N|%m";
inline constexpr std::string_view kJobPrefix = "cm384-";  // of the names of our jobs

// Minutes, "M:S", "H:M:S", "D-H", "D-H:M", "D-H:M:S" in seconds; nothing: not a time.
std::optional<std::int64_t> parse_limit(std::string_view text);

// A command, to its end.
struct Answer {
  int exit_code = 0;  // 127: cannot be started
  std::string output, errors;
};
Answer ask(const std::vector<std::string>& words);

class Slurm {
 public:
  // Throws InputError if there is no Slurm on this host, or it does not answer.
  Slurm();

  int most_tasks() const { return most_tasks_; }  // of an array
  // Number of the job; nothing: refused, with the reason in `refusal`.
  std::optional<std::string> submit(const Submission& submission, std::string& refusal);
  // Our own. Nothing: Slurm does not answer.
  std::optional<TaskStates> tasks();
  void cancel(const std::string& name);

 private:
  int most_tasks_ = 1;
};

}  // namespace cm384::sweeps
