// Other programs that a command runs: compilers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cm384::cli {

// Runs a program found on PATH and waits for it; its exit code. Throws InputError if it is not there, naming
// the package of Debian's that has it.
// `said`: what it says on its standard error; null: it goes to ours.
int run_program(const std::vector<std::string>& words, std::string_view package, std::string* said = nullptr);

}  // namespace cm384::cli
