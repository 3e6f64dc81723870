// Other programs that a command starts and waits for: compilers, git, Slurm, what draws pictures.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cm384 {

// What becomes of what a program prints: it goes where ours does, nowhere, or into the result.
enum class Printed { shown, dropped, kept };

struct ProgramOptions {
  Printed output = Printed::shown, errors = Printed::shown;
  // An interrupt at the terminal is not for it, and it reads nothing.
  bool apart = false;
};

struct ProgramEnd {
  int exit_code = 0;           // where no signal ended it
  int signal = 0;              // that ended it
  std::string output, errors;  // where kept

  bool done() const { return exit_code == 0 && signal == 0; }
};

// Runs a program found on PATH to its end; nothing: there is none of that name that may be run.
std::optional<ProgramEnd> run_program(const std::vector<std::string>& words,
                                      const ProgramOptions& options = {});

}  // namespace cm384
