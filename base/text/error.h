// The ways a run can go wrong by somebody else's doing. An assertion is for broken invariants of our own.
#pragma once

#include <stdexcept>
#include <string>

namespace cm384 {

// Bad input: a file, option, trace or ELF. what() is one line: where, what was found, what is allowed.
// The command ends with exit code 2.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The simulated machine stopped or faulted: a trap, an access outside memory, a hang. what() is the report
// (several lines for a hang). The command ends with exit code 3.
class MachineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An output cannot be written: a full disk, a folder without permission. what() is one line: where, and the
// system's reason. The command ends with exit code 5.
class OutputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace cm384
