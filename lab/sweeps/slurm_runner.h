// Runs points as tasks of Slurm's job arrays, each a chunk of points, and moves their outcomes from the
// shared folder into the store. May be ended at any time, and by any means: a later one with the same folder
// goes on with the tasks that are queued or running, and submits none of their points again.
#pragma once

#include <csignal>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lab/runs/executor.h"
#include "lab/sweeps/slurm.h"
#include "lab/sweeps/spool.h"

namespace cm384::sweeps {

struct SlurmOptions {
  std::string program{};  // cm384, as the nodes see it
  std::string folder{};   // of the spool; absolute
  std::string partition{};
  std::vector<std::string> sbatch{};  // further options of it
  std::string after{};                // a job that has to succeed before; empty: none
  int chunk = 0;                      // points of a task; 0: as the estimates say
  int cpus = 1;                       // of a task
  int processes = 1;                  // of a point
  int at_a_time = 0;                  // tasks; 0: as many as Slurm has room for
  double memory_MB = 0;               // of a task; 0: as the estimates say
  std::string limit{};                // of a task's time, as Slurm takes it; empty: as the estimates say
  double poll_s = 15;                 // between looks at the queue
  bool retry = true;                  // points that failed for a reason that may have gone
  const volatile std::sig_atomic_t* interrupted = nullptr;
  std::function<void(const std::string& line)> say{};  // what is worth telling
};

// What a point takes, from those that have been run.
class Estimates {
 public:
  void learn(const runs::Outcome& outcome);
  bool known() const { return points_ > 0; }
  // Of a task, with a margin: memory in MB, time in minutes.
  double memory_MB() const;
  int minutes(int points) const;
  // Points of a task when so many are to be run: some minutes of work, but no fewer tasks than keep a few
  // nodes busy.
  int chunk(std::size_t points) const;
  double mean_s() const { return points_ == 0 ? 0 : sum_s_ / points_; }

 private:
  int points_ = 0;
  double sum_s_ = 0, longest_s_ = 0, largest_MB_ = 0;
};

class SlurmRunner final : public runs::Executor {
 public:
  // Throws OutputError if there is no writing in the folder.
  SlurmRunner(runs::Store& store, Slurm slurm, SlurmOptions options);
  ~SlurmRunner() override;  // gives its points up; what Slurm has of them goes on

  void add(std::size_t ticket, runs::Job job) override;
  // Also throws InputError if Slurm refuses a job, or one that has to come before did not succeed.
  std::optional<Finished> next(const std::function<void()>& idle = {}) override;
  std::size_t running() const override { return running_; }
  double seconds_per_point() const override { return estimates_.mean_s(); }

  // Numbers of the jobs that still have points of this sweep.
  std::vector<std::string> jobs() const;

 private:
  struct Point {
    std::size_t ticket = 0;
    runs::Job job;
    int losses = 0;
    bool alone = false;    // in its task: it may be what the others were lost with
    double memory_MB = 0;  // at least; 0: as estimated
    int minutes = 0;       // at least; 0: as estimated
  };
  struct Task {
    std::vector<std::string> order;       // keys of all its points
    std::map<std::string, Point> open{};  // by key: those that have not ended
    bool adopted = false;                 // from an earlier process, and not seen at work yet
    double memory_MB = 0;                 // 0: not known
    int minutes = 0;                      // 0: not known
    double gone_since = 0;                // when it was first seen to have ended; 0: it has not
  };
  using TaskName = std::pair<std::string, int>;  // array, number
  struct Adopted {
    TaskName task;
    int losses = 0;
  };

  struct Loss {  // tasks that ended in the same way
    std::string first;
    std::size_t tasks = 0, again = 0;
  };

  void adopt();
  void look_up_next();
  void look_up(Point point);
  void collect();
  void record(SpooledOutcome spooled);
  bool is_ready_to_submit() const;
  bool has_estimates() const;
  void submit();
  void submit_probes();
  void submit(std::vector<Point> points, double memory_MB, int minutes, int chunk);
  void send(const Submission& submission);
  void poll();
  void account(const TaskName& name, const TaskStates& states);
  void lose(const TaskName& name, const TaskState* state);
  void report_lost_tasks();
  void report_waiting_tasks(const TaskStates& states);
  void drop_forgotten(const TaskStates& states);
  void look_up_claimed_elsewhere();
  void give_up(const Point& point, std::string reason);
  void end(const Point& point, runs::Outcome outcome);
  void close(const TaskName& name);
  [[noreturn]] void refuse_dependency();
  bool is_in_store(const Task& task);
  bool is_unsent(const std::string& array) const;
  void say(const std::string& line) const;

  runs::Store& store_;
  SlurmOptions options_;
  Spool spool_;
  Slurm slurm_;
  Estimates estimates_;
  std::deque<Point> queue_;                // not looked at
  std::vector<Point> elsewhere_;           // another process has them
  std::vector<Point> ready_;               // claimed, to be submitted
  std::map<TaskName, Task> tasks_;         // with open points
  std::map<std::string, TaskName> where_;  // each of these points
  std::map<TaskName, Task> earlier_;       // of earlier processes
  std::map<std::string, Adopted> known_;   // their points
  std::map<std::string, Loss> losses_;     // not told yet, by how they ended
  std::vector<Submission> unsent_;         // what Slurm has not taken yet
  std::deque<Finished> ended_;
  std::string probes_;  // the array of the points that estimates are made from; empty: none was needed yet
  std::set<std::string> reported_;  // reasons why tasks wait
  bool silent_ = false;             // Slurm does not answer
  std::size_t running_ = 0;         // tasks
  struct Due {                      // when each is next, in seconds()
    double beat = 0, collect = 0, poll = 0, look = 0;
  };
  Due due_;
};

// The batch script of an array.
std::string script_text(const std::string& program, const std::string& array_folder, int cpus, int processes);

}  // namespace cm384::sweeps
