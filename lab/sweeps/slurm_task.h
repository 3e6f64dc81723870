// What a task of a job array does on its node.
#pragma once

#include <csignal>
#include <string>

#include "lab/sweeps/plan.h"
#include "lab/sweeps/spool.h"

namespace cm384::sweeps {

enum class TaskEnd : std::uint8_t { done, killed, interrupted };

struct TaskReport {
  TaskEnd end = TaskEnd::done;
  std::string reason;  // of a point that was killed
};

// Runs the points of a task one after another and leaves their outcomes in the spool. Points that have one,
// and tasks that are void, are left alone. A point whose program or inputs are not what they were when it was
// submitted gets an outcome that says so. Each is run by so many processes of MPI. One whose process is
// killed (memory, time, a person) gets none: the task ends with `killed`, and whoever submitted it decides.
// Throws OutputError; InputError if the spool is not there.
TaskReport run_task(const Spool& spool, const std::string& array, int task, Subject& subject,
                    const volatile std::sig_atomic_t& interrupted, int processes = 1);

}  // namespace cm384::sweeps
