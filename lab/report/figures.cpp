// Figures as files: the page's own drawing code, run by node.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/text/error.h"
#include "base/text/output_file.h"
#include "lab/report/page.h"

namespace cm384::report {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "cm384-figures-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw InputError(fmt::format("{}: cannot make this folder", name));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Runs a program of the PATH, its standard output dropped; its exit code, or -1 where it cannot be started.
int start(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void require_program(const std::vector<std::string>& words, std::string_view package) {
  const int code = start(words);
  if (code == -1 || code == 127)
    throw InputError(
        fmt::format("--figures needs the program {} (Debian: apt-get install {})", words.front(), package));
  if (code != 0) throw InputError(fmt::format("--figures: {} ended with exit code {}", words.front(), code));
}

}  // namespace

std::vector<std::string> write_figures(const Json& data, const std::string& folder, bool png) {
  const TemporaryFolder temporary;
  const fs::path drawn = temporary.path() / "drawn";
  fs::create_directories(drawn);
  const std::string program = page_part("figures.cjs");
  const fs::path input = temporary.path() / "data.json";
  write_file(input.string(), data.dump(-1, ' ', true, Json::error_handler_t::replace));
  require_program({"node", program, input.string(), drawn.string()}, "nodejs");
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(drawn)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  if (png) {
    const std::vector<std::string> pictures = names;
    for (const std::string& name : pictures) {
      const fs::path picture = (drawn / name).replace_extension(".png");
      require_program({"rsvg-convert", "--zoom", "2", "--background-color", "white", "--output",
                       picture.string(), (drawn / name).string()},
                      "librsvg2-bin");
      names.push_back(picture.filename().string());
    }
  }
  for (const std::string& name : names)
    write_file((fs::path(folder) / name).string(), read_text((drawn / name).string(), std::size_t{1} << 30));
  return names;
}

}  // namespace cm384::report
