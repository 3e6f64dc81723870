// `cm384 kernel check`: all that sources of kernels want and that is not there, at once.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include "app/cli/commands.h"
#include "app/cli/compiler_errors.h"
#include "app/cli/exit_code.h"
#include "app/cli/kernel_compiler.h"
#include "app/cli/kernel_front.h"
#include "app/cli/run_program.h"
#include "base/text/error.h"
#include "base/text/input_file.h"

namespace cm384::cli {
namespace {

namespace fs = std::filesystem;

struct KernelCheckOptions {
  studies::Texts source, include, define, tiling;
  int top = 20;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using hw::Letter;
    using studies::Form;
    visit("source", self.source, Form{"PATH"},
          "C++ sources, or folders with those of kernels (.cpp, .cce, .asc), each compiled by itself");
    visit("include", self.include, Form{"DIR"}, "where to look for headers; may be repeated", Letter{'I'});
    visit("define", self.define, Form{"NAME[=VALUE]"}, "a macro; may be repeated", Letter{'D'});
    visit("tiling", self.tiling, Form{"FILE"},
          "where BEGIN_TILING_DATA_DEF defines the tiling data; if not set, the op_host of each source's "
          "project");
    visit("top", self.top, studies::Range{0, 1000}, "how many names to list, those missing most often first");
  }
};

std::vector<std::string> sources_of(const studies::Texts& named) {
  std::set<std::string> sources;
  for (const std::string& path : named) {
    if (fs::is_regular_file(path)) {
      sources.insert(path);
    } else if (fs::is_directory(path)) {
      for (const auto& entry : fs::recursive_directory_iterator(path)) {
        const std::string ending = entry.path().extension().string();
        if (entry.is_regular_file() && (ending == ".cpp" || ending == ".cce" || ending == ".asc") &&
            is_for_cores(read_input(entry.path().string())))
          sources.insert(entry.path().string());
      }
    } else {
      throw InputError(fmt::format("{}: no such file or folder", path));
    }
  }
  if (sources.empty()) throw InputError("kernel check: no source given, or none in the folder");
  return {sources.begin(), sources.end()};
}

// Empty headers in place of missing ones, so that what stands behind them is looked at too.
class StandInHeaders {
 public:
  StandInHeaders() : folder_(fs::temp_directory_path() / fmt::format("cm384_check_{}", getpid())) {}
  ~StandInHeaders() {
    std::error_code gone;
    fs::remove_all(folder_, gone);
  }
  StandInHeaders(const StandInHeaders&) = delete;
  StandInHeaders& operator=(const StandInHeaders&) = delete;

  std::string folder() const { return folder_.string(); }
  std::string file(const char* name, const std::string& text) const {
    fs::create_directories(folder_);
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return path;
  }
  // The source as the compiler can read it.
  std::string copy(const std::string& source, const std::string& text) const {
    return file(".source.cpp", "#line 1 \"" + source + "\"\n" + text);
  }
  // False: a name that cannot be stood in for, or that has been.
  bool add(const std::string& name) {
    const fs::path path = fs::path(name).lexically_normal();
    if (path.is_absolute() || path.begin() == path.end() || *path.begin() == "..") return false;
    if (fs::exists(folder_ / path)) return false;
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path).flush();
    return true;
  }

 private:
  fs::path folder_;
};

std::vector<CompilerError> errors_of(const std::string& source, const KernelCheckOptions& options,
                                     const fs::path& runtime, const std::vector<std::string>& names) {
  StandInHeaders stand_ins;
  const std::string folder = fs::path(source).parent_path().string();
  const ProjectChoice choice{options.tiling, {}, {}, 0};
  std::vector<CompilerError> missing;
  KernelFront front(source, choice, {});
  std::vector<std::string> defined = options.define;
  const auto define = [&defined](const std::vector<std::string>& macros) {
    for (const std::string& macro : macros) {
      const auto name = [](const std::string& text) { return text.substr(0, text.find('=')); };
      if (std::ranges::find(defined, name(macro), name) == defined.end()) defined.push_back(macro);
    }
  };
  const std::string tiling =
      front.tiling().empty() ? std::string() : stand_ins.file(".tiling.h", front.tiling());
  std::set<std::string> own;  // names that the source has for something of its own
  const auto words = [&] {
    std::vector<std::string> made = compiler_words(runtime, CoreKind::vector, "0", options.include, defined);
    made.insert(made.end(), {"-idirafter", stand_ins.folder(), "-iquote", folder.empty() ? "." : folder});
    if (!own.empty())
      made.insert(made.begin() + 1, {"-include", stand_ins.file(".own.h", header_without(own))});
    if (!tiling.empty()) made.insert(made.end(), {"-include", tiling});
    return made;
  };
  define(front.define());
  std::string copy = stand_ins.copy(source, front.text());
  for (bool instantiated = false;;) {
    std::vector<std::string> line = words();
    line.insert(line.end(), {"-fsyntax-only", "-x", "c++", copy});
    std::string said;
    run_program(line, "gcc-riscv64-unknown-elf", &said);
    const std::size_t known = own.size();
    own.merge(clashing_names(said));
    if (own.size() > known) continue;
    bool again = false;
    std::vector<CompilerError> wrong = compiler_errors(said, runtime, names);
    for (const CompilerError& error : wrong) {
      if (error.kind != CompilerError::Kind::header || !stand_ins.add(error.name)) continue;
      missing.push_back(error);
      again = true;
    }
    if (again) continue;
    // The first combination that a template's sets allow, once all headers are there.
    if (!instantiated && front.is_template({})) {
      instantiated = true;
      front.instantiate({}, words(), fs::path(stand_ins.folder()) / ".front", true);
      if (!front.instance().empty()) {
        define(front.define());
        copy = stand_ins.copy(source, front.text());
        continue;
      }
    }
    missing.insert(missing.end(), wrong.begin(), wrong.end());
    return missing;
  }
}

int check(const Program&, const KernelCheckOptions& options, const studies::Given&) {
  const std::vector<std::string> sources = sources_of(options.source);
  const fs::path runtime = kernel_runtime();
  const std::vector<std::string> names = runtime_names(runtime);
  struct Missing {
    int places = 0, sources = 0;
  };
  std::map<std::pair<std::string, std::string>, Missing> missing;  // by kind and name
  std::size_t lacking = 0;
  for (const std::string& source : sources) {
    std::set<std::pair<std::string, std::string>> here;
    const std::vector<CompilerError> wrong = errors_of(source, options, runtime, names);
    lacking += wrong.empty() ? 0 : 1;
    for (const CompilerError& error : wrong) {
      const char* const word = word_of(error.kind);
      fmt::print("{}:{}: {}{}{}: {}\n", error.file, error.line, word, error.name.empty() ? "" : " ",
                 error.name, error.text);
      if (error.name.empty()) continue;
      const std::pair key(std::string(word), error.name);
      Missing& sum = missing[key];
      ++sum.places;
      sum.sources += here.insert(key).second ? 1 : 0;
    }
  }
  std::vector<std::pair<std::pair<std::string, std::string>, Missing>> most(missing.begin(), missing.end());
  std::ranges::stable_sort(most, [](const auto& a, const auto& b) {
    return std::tuple(a.second.sources, a.second.places) > std::tuple(b.second.sources, b.second.places);
  });
  if (most.size() > static_cast<std::size_t>(options.top)) most.resize(static_cast<std::size_t>(options.top));
  if (!most.empty()) fmt::print("{:<8}{:<32}{:>8}{:>8}\n", "kind", "missing", "sources", "places");
  for (const auto& [what, sum] : most)
    fmt::print("{:<8}{:<32}{:>8}{:>8}\n", what.first, what.second, sum.sources, sum.places);
  fmt::print("{} of {} source{} compile\n", sources.size() - lacking, sources.size(),
             sources.size() == 1 ? "" : "s");
  return lacking == 0 ? kDone : kCheckFailed;
}

}  // namespace

constinit const Command kKernelCheckCommand = make_command<KernelCheckOptions, check>(
    "kernel check", "PATH..", "list everything that kernel sources lack", "source", -1);

}  // namespace cm384::cli
