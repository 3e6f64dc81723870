#include "app/cli/run_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "app/cli/exit_code.h"
#include "base/text/error.h"

namespace cm384::cli {

namespace {

// Where a child's standard error goes: to ours, or to a pipe.
class ErrorPipe {
 public:
  explicit ErrorPipe(bool piped) {
    posix_spawn_file_actions_init(&actions_);
    if (!piped) return;
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    posix_spawn_file_actions_adddup2(&actions_, ends_[1], STDERR_FILENO);
  }
  ~ErrorPipe() {
    posix_spawn_file_actions_destroy(&actions_);
    for (const int end : ends_) close_end(end);
  }
  ErrorPipe(const ErrorPipe&) = delete;
  ErrorPipe& operator=(const ErrorPipe&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  // All that comes, once the child has been started.
  std::string read_all() {
    close_end(std::exchange(ends_[1], -1));
    std::string all;
    std::array<char, 4096> some;
    for (;;) {
      const ssize_t n = read(ends_[0], some.data(), some.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return all;
      all.append(some.data(), static_cast<std::size_t>(n));
    }
  }

 private:
  static void close_end(int end) {
    if (end >= 0) close(end);
  }
  posix_spawn_file_actions_t actions_{};
  std::array<int, 2> ends_{-1, -1};
};

}  // namespace

int run_program(const std::vector<std::string>& words, std::string_view package, std::string* said) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  ErrorPipe pipe(said != nullptr);
  const int error = posix_spawnp(&child, argv[0], pipe.actions(), nullptr, argv.data(), environ);
  if (error == ENOENT) {
    throw InputError(fmt::format("{} is not on PATH; Debian's package {} has it", words.front(), package));
  }
  if (error != 0) throw std::system_error(error, std::generic_category(), words.front());
  if (said != nullptr) *said = pipe.read_all();
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kInternalError;
}

}  // namespace cm384::cli
