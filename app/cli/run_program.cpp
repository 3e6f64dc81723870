#include "app/cli/run_program.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "app/cli/exit_code.h"
#include "base/text/error.h"

namespace cm384::cli {

int run_program(const std::vector<std::string>& words, std::string_view package) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ);
  if (error == ENOENT) {
    throw InputError(fmt::format("{} is not on PATH; Debian's package {} has it", words.front(), package));
  }
  if (error != 0) throw std::system_error(error, std::generic_category(), words.front());
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kInternalError;
}

}  // namespace cm384::cli
