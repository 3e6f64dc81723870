// `cm384 rtl build`: a switch chip of a user's own in SystemVerilog, with the ports of hw/rtl/ub_switch, to a
// library for `--rtl CHIP=LIBRARY`. First it must show what the bench's plan asks for.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/run_program.h"
#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/installation.h"
#include "base/text/output_file.h"
#include "base/text/standard_error.h"
#include "base/text/toml_file.h"

namespace cm384::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct RtlBuildOptions {
  studies::Texts source;
  std::string out = "switch.so";
  std::string top = "ub_switch";
  int ports = 16;
  int classes = 1;
  int cycles = 5;
  studies::Texts parameter;
  bool skip_bench = false;
  bool verbose = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using hw::Letter;
    using hw::Range;
    using studies::Form;
    visit("source", self.source, Form{"FILE"}, "SystemVerilog of the chip, packages first");
    visit("out", self.out, Form{"FILE"}, "the library", Letter{'o'});
    visit("top", self.top, Form{"MODULE"}, "the chip's module: ports and parameters as those of ub_switch");
    visit("ports", self.ports, Range{1, 64}, "of the chip in the library; chips of a machine need no more");
    visit("classes", self.classes, Range{1, 4},
          "service classes that its outputs tell apart, as parameter Classes; 1: it needs no ports for them");
    visit("cycles", self.cycles, Range{1, 1000},
          "from a first flit in to the first flit out of the idle chip");
    visit("parameter", self.parameter, Form{"NAME=VALUE"},
          "of the module, beside Ports, Lanes, BufferCells and FlitBits; may be repeated", Letter{'G'});
    visit("skip-bench", self.skip_bench, "make the library without the bench");
    visit("verbose", self.verbose, "print the command lines", Letter{'v'});
  }
};

// A bench's plan.toml.
struct BenchPlan {
  struct Point {
    std::string what;
    hw::Texts tests;
    bool corners = false;

    template <class Self, class Visitor>
    static void describe(Self& self, Visitor&& visit) {
      visit("what", self.what, "is shown", hw::Required{});
      visit("tests", self.tests, "that show it: Suite.Test", hw::Required{});
      visit("corners", self.corners, "shown by the corners of parameters, which a library has not");
    }
  };
  std::vector<Point> points;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("point", self.points);
  }
};

// Files that come with the program.
std::string installed(std::string_view name) {
  if (const auto path = find_installed(name)) return *path;
  throw InputError(fmt::format(
      "rtl build: {} is neither above the program nor in CM384_HOME; `cmake --install` brings it", name));
}

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "cm384-rtl-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw OutputError(fmt::format("{}: cannot be made", name));
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path path;
};

class Builder {
 public:
  explicit Builder(const RtlBuildOptions& options) : options_(options) {
    const std::string header = installed("include/cm384/ub_fabric/own_chip_library.cpp");
    include_ = fs::path(header).parent_path().parent_path();
    runtime_ = installed("lib/cm384/libcm384_verilated_runtime.a");
    sim_ = installed("lib/cm384/libcm384_sim.a");
    files_ = installed("lib/cm384/libcm384_files.a");
    run({"sh", "-c", "verilator --getenv VERILATOR_ROOT >" + (folder_.path / "root").string()}, "verilator");
    std::ifstream(folder_.path / "root") >> verilator_;
  }

  // True where the chip shows every point of the plan.
  bool bench() {
    const fs::path model =
        verilate("own_bench", {"Ports=4", "Lanes=2", "BufferCells=32", "FlitBits=64"}, "-O1", {"--assert"});
    const fs::path bench = include_ / "testbenches/hw/rtl/ub_switch", program = folder_.path / "bench";
    Words words = compile("-O1");
    words.insert(words.end(), {(bench / "switch_test.cpp").string(), model.string(), runtime_, "-lgtest_main",
                               "-lgtest", "-lz", "-pthread", "-o", program.string()});
    run(words, "g++");
    const fs::path result = folder_.path / "result";
    const std::string said = (folder_.path / "said").string();
    run_program({"sh", "-c", fmt::format("{} --gtest_color=no >{} 2>&1", program.string(), said)}, "dash");
    return report(said, (bench / "plan.toml").string());
  }

  void library(const std::string& out) {
    Words parameters{fmt::format("Ports={}", options_.ports), "Lanes=8", "BufferCells=256", "FlitBits=64"};
    if (options_.classes > 1) parameters.push_back(fmt::format("Classes={}", options_.classes));
    const fs::path model =
        verilate("own_switch", parameters, "-O2", {"--trace-fst", "--trace-structs", "-fno-dfg"});
    Words words = compile("-O2");
    words.insert(words.end(), {"-shared", fmt::format("-DCM384_CHIP_PORTS={}", options_.ports),
                               fmt::format("-DCM384_CHIP_CLASSES={}", options_.classes),
                               (include_ / "ub_fabric/own_chip_library.cpp").string(),
                               (include_ / "ub_fabric/fst_file.cpp").string(), model.string(), runtime_, sim_,
                               files_, "-lfmt", "-lz", "-pthread", "-o", out});
    run(words, "g++");
  }

 private:
  void run(const Words& words, std::string_view package) {
    if (options_.verbose) print_error("{}\n", fmt::join(words, " "));
    if (const int code = run_program(words, package); code != 0)
      throw InputError(fmt::format("rtl build: {} ended with {}; {} is not made",
                                   words.front() == "env" ? "verilator" : words.front(), code, options_.out));
  }

  // The archive of class V<name>.
  fs::path verilate(const std::string& name, Words parameters, const std::string& optimise,
                    const Words& more) {
    const fs::path folder = folder_.path / name;
    parameters.insert(parameters.end(), options_.parameter.begin(), options_.parameter.end());
    Words words{"env",
                "OPT_FAST=" + optimise,
                "OPT_GLOBAL=" + optimise,
                "OPT_SLOW=-O0",
                "verilator",
                "--cc",
                "--build",
                "-j",
                "1",
                "--quiet-exit",
                "-Wno-lint",
                "-Wno-style",
                "--x-assign",
                "fast",
                "--x-initial",
                "fast",
                "-O3",
                "--top-module",
                options_.top,
                "--prefix",
                "V" + name,
                "--Mdir",
                folder.string(),
                "-CFLAGS",
                "-g0 -w -std=c++20 -ffp-contract=off -DVL_TIME_CONTEXT -fPIC",
                "-MAKEFLAGS",
                "-s -e"};
    words.insert(words.end(), more.begin(), more.end());
    for (const std::string& parameter : parameters) words.push_back("-G" + parameter);
    for (const std::string& source : options_.source) words.push_back(fs::absolute(source).string());
    run(words, "verilator");
    return folder / ("V" + name + "__ALL.a");
  }

  Words compile(const std::string& optimise) const {
    return {"g++",
            "-std=c++20",
            optimise,
            "-w",
            "-fPIC",
            "-ffp-contract=off",
            "-DVM_COVERAGE=1",
            "-DVM_SC=0",
            "-DVM_TRACE=1",
            "-DVM_TRACE_FST=1",
            "-DVM_TRACE_VCD=0",
            "-DVL_TIME_CONTEXT",
            fmt::format("-DCM384_CHIP_CYCLES={}", options_.cycles),
            "-I" + include_.string(),
            "-I" + (folder_.path / "own_bench").string(),
            "-I" + (folder_.path / "own_switch").string(),
            "-isystem",
            verilator_ + "/include",
            "-isystem",
            verilator_ + "/include/vltstd"};
  }

  // One line a point of the plan that the bench has tests for.
  static bool report(const std::string& said, const std::string& plan_path) {
    std::map<std::string, bool> passed;  // by Suite.Test, without the number of a typed suite
    std::string text;
    std::ifstream file(said);
    for (std::string line; std::getline(file, line); text += line + "\n") {
      const bool ok = line.starts_with("[       OK ] "), failed = line.starts_with("[  FAILED  ] ");
      if (!ok && !failed) continue;
      std::string name = line.substr(13, line.find_first_of(" ,", 13) - 13);
      if (const auto slash = name.find('/'); slash != std::string::npos)
        name.erase(slash, name.find('.') - slash);
      if (name.find('.') != std::string::npos) passed.try_emplace(name, ok).first->second &= ok;
    }
    std::ostringstream plan_text;
    plan_text << std::ifstream(plan_path).rdbuf();
    BenchPlan plan;
    hw::TomlFile(plan_text.str(), plan_path).read(plan);
    bool all = !passed.empty();
    for (const BenchPlan::Point& point : plan.points) {
      if (point.corners) continue;
      bool shown = true;
      for (const std::string& test : point.tests) {
        const auto found = passed.find(test);
        shown = shown && found != passed.end() && found->second;
      }
      fmt::print("{} {}\n", shown ? "shown " : "FAILED", point.what);
      all = all && shown;
    }
    if (!all) print_error("{}", text);
    return all;
  }

  const RtlBuildOptions& options_;
  Folder folder_;
  fs::path include_;
  std::string runtime_, sim_, files_, verilator_;
};

int build(const Program&, const RtlBuildOptions& options, const studies::Given&) {
  if (options.source.empty()) throw InputError("rtl build: no source file given");
  for (const std::string& source : options.source) {
    if (!fs::is_regular_file(source)) throw InputError(fmt::format("{}: no such file", source));
    open_input(source);  // read by the compiler: no output may be there
  }
  // Found out before a compiler runs; the file is replaced when the library is whole.
  NamedOutput library(options.out);
  Builder builder(options);
  if (!options.skip_bench && !builder.bench())
    throw InputError(fmt::format("rtl build: {} does not show what the plan asks for; {} is not made",
                                 options.top, options.out));
  builder.library(library.name());
  library.commit();
  return kDone;
}

}  // namespace

constinit const Command kRtlBuildCommand = make_command<RtlBuildOptions, build>(
    "rtl build", "SOURCE.. [-o LIBRARY]", "a switch chip of your own for `--rtl CHIP=LIBRARY`", "source", -1);

}  // namespace cm384::cli
