// A sweep's folder for Slurm, which the host that submits and the nodes share. It holds
//
//     ARRAY/script         what sbatch was given; ARRAY is the name of the job
//     ARRAY/task-N.json    the points of a task, in its order; without this file a task does nothing
//     ARRAY/task-N.done    keys of the points that it has finished
//     ARRAY/task-N.log     what it printed
//     ARRAY/job            the job's number, once it is submitted
//     results/KEY.json     the outcome of a point
//
// Every file but .done and .log appears whole, by renaming. Tasks write outcomes; who submitted them moves
// these into the store and removes them, so that no node touches the database.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lab/runs/executor.h"

namespace cm384::sweeps {

// A point that a task has to run.
struct SpooledPoint {
  runs::Job job;
  int losses = 0;  // tasks with it that were lost before
};

// What came of one.
struct SpooledOutcome {
  std::string key, study, arguments;
  runs::Outcome outcome;
};

class Spool {
 public:
  explicit Spool(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path array(const std::string& name) const { return folder_ / name; }

  // Throws OutputError if there is no writing in it.
  void open() const;
  // Names of the arrays that are there, sorted.
  std::vector<std::string> arrays() const;
  // The number of its job; empty: not known.
  std::string job_of(const std::string& array) const;

  // Makes an array. All of these throw OutputError.
  void add(const std::string& array, const std::vector<std::vector<SpooledPoint>>& tasks,
           const std::string& script) const;
  void note_job(const std::string& array, const std::string& job) const;

  // Tasks that are still to be accounted for.
  std::vector<int> tasks(const std::string& array) const;
  // Keys of all points of all tasks.
  std::set<std::string> keys() const;
  // Points of a task; nothing: it is void.
  std::optional<std::vector<SpooledPoint>> points(const std::string& array, int task) const;
  std::vector<std::string> done(const std::string& array, int task) const;
  void note_done(const std::string& array, int task, const std::string& key) const;
  // The last line that a task printed; empty: none.
  std::string last_words(const std::string& array, int task) const;
  // Whatever becomes of the task, it runs none of its points from now on.
  void revoke(const std::string& array, int task) const;
  // The array goes when no task of it is left.
  void tidy(const std::string& array) const;

  bool has_outcome(const std::string& key) const;
  void write(const SpooledOutcome& outcome) const;
  // Keys whose outcomes are there.
  std::vector<std::string> outcomes() const;
  // Nothing: gone, or not what write() writes.
  std::optional<SpooledOutcome> read(const std::string& key) const;
  void remove(const std::string& key) const;
  // The folder goes when nothing is left in it.
  void close() const;

 private:
  std::filesystem::path task_file(const std::string& array, int task, const char* extension) const;
  std::filesystem::path outcome_file(const std::string& key) const;
  std::filesystem::path folder_;
};

}  // namespace cm384::sweeps
