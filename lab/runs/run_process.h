// A run as a process of its own, or several that a launcher of MPI starts: `cm384 run` with an output folder,
// which lives as long as this object unless it is to be kept.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lab/runs/store.h"

namespace cm384::runs {

class RunProcess {
 public:
  // What is left of it: nothing, or its folder, with what it printed in `output` and `errors`.
  enum class Leaves : std::uint8_t { nothing, folder };

  // `arguments`: what follows `cm384 run`; `launcher`: what stands before it, or nothing. Makes `folder`.
  // Throws OutputError.
  RunProcess(const std::string& program, std::filesystem::path folder,
             const std::vector<std::string>& arguments, const std::vector<std::string>& launcher = {},
             Leaves leaves = Leaves::nothing);
  ~RunProcess();  // ends it if it is under way
  RunProcess(const RunProcess&) = delete;
  RunProcess& operator=(const RunProcess&) = delete;

  // How it ended; nothing: it has not. Once only.
  std::optional<Outcome> poll();
  // Resident memory of all its processes on this host.
  double resident_MB() const;
  double age_s() const;
  // Asks it to end: what is known so far is written.
  void interrupt() const;
  // Ends it at once.
  void kill_now() const;

 private:
  Outcome outcome_of(int status) const;

  std::filesystem::path folder_;
  bool launched_;
  Leaves leaves_;
  pid_t pid_ = -1;
  double begin_;
};

// Starts so many processes of MPI on this host; nothing for one.
std::vector<std::string> mpirun(int processes);
// As above within a Slurm job, on its node, by Slurm's own launcher.
std::vector<std::string> srun(int processes);

// This program, also when its file has been replaced since it was started.
inline constexpr const char* kThisProgram = "/proc/self/exe";

}  // namespace cm384::runs
