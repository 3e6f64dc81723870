#include "base/text/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "base/text/error.h"

namespace cm384 {
namespace {

// One of a program's outputs: what is kept goes through a file without a name.
class Stream {
 public:
  Stream(posix_spawn_file_actions_t& actions, int descriptor, Printed printed) {
    if (printed == Printed::dropped)
      posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_WRONLY, 0);
    if (printed != Printed::kept) return;
    file_.reset(std::tmpfile());
    if (!file_) throw OutputError("no temporary file can be made");
    posix_spawn_file_actions_adddup2(&actions, fileno(file_.get()), descriptor);
  }

  std::string content() const {
    std::string text;
    if (!file_) return text;
    std::rewind(file_.get());
    std::array<char, 4096> piece{};
    for (std::size_t n = 0; (n = std::fread(piece.data(), 1, piece.size(), file_.get())) > 0;)
      text.append(piece.data(), n);
    return text;
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

// How a program is started; its own, as an error may come between.
struct Start {
  Start() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~Start() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

}  // namespace

std::optional<ProgramEnd> run_program(const std::vector<std::string>& words, const ProgramOptions& options) {
  Start start;
  if (options.apart) {
    posix_spawnattr_setflags(&start.attributes, POSIX_SPAWN_SETPGROUP);  // a group of its own
    posix_spawn_file_actions_addopen(&start.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  const Stream output(start.actions, STDOUT_FILENO, options.output);
  const Stream errors(start.actions, STDERR_FILENO, options.errors);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &start.actions, &start.attributes, argv.data(), environ);
  if (error == ENOENT || error == EACCES) return std::nullopt;
  if (error != 0) throw std::system_error(error, std::generic_category(), words.front());
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
  }
  ProgramEnd end;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  end.output = output.content();
  end.errors = errors.content();
  return end;
}

}  // namespace cm384
