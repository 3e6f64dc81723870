// Figures as files: the page's own drawing code, run by node.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/text/error.h"
#include "base/text/output_file.h"
#include "base/text/run_program.h"
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

void require_program(const std::vector<std::string>& words, std::string_view package) {
  const auto end = run_program(words, {.output = Printed::dropped});
  if (!end)
    throw InputError(
        fmt::format("--figures needs the program {} (Debian: apt-get install {})", words.front(), package));
  if (end->signal != 0)
    throw InputError(fmt::format("--figures: {} was ended by signal {}", words.front(), end->signal));
  if (!end->done())
    throw InputError(fmt::format("--figures: {} ended with exit code {}", words.front(), end->exit_code));
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
