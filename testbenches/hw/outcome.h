// A command as a shell runs it, and what came of it.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace cm384 {

struct Outcome {
  int code = -1;  // -1: ended by a signal
  std::string output, errors;
};

// Standard error goes through the file `errors`.
inline Outcome run_command(const std::string& command, const std::string& errors) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>" + errors).c_str(), "r");
  std::array<char, 4096> block{};
  while (const std::size_t n = fread(block.data(), 1, block.size(), pipe))
    outcome.output.append(block.data(), n);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  std::ifstream stream(errors);
  outcome.errors.assign(std::istreambuf_iterator<char>(stream), {});
  return outcome;
}

}  // namespace cm384
