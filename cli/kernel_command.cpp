// `cm384 kernel build`: a kernel's sources to an image for `cm384 run kernel`, with the headers and the
// runtime that come with the program, of a build folder or an installed tree.
#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/run_program.h"
#include "hw/error.h"
#include "npu_core/scalar/elf_image.h"
#include "sim/installation.h"
#include "sim/output_file.h"

namespace cm384::cli {
namespace {

constexpr const char* kCompiler = "riscv64-unknown-elf-g++";

struct BuildOptions {
  studies::Texts source;
  std::string out;
  studies::Texts include, define;
  std::string optimise = "2";
  bool verbose = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using hw::Letter;
    using studies::Form;
    visit("source", self.source, Form{"FILE"},
          "C++ sources of one kernel: one of them has a function marked __global__, or kernel_main");
    visit("out", self.out, Form{"FILE"}, "the image; if not set, the first source's name with .elf",
          Letter{'o'});
    visit("include", self.include, Form{"DIR"}, "where to look for headers; several times", Letter{'I'});
    visit("define", self.define, Form{"NAME[=VALUE]"}, "a macro; several times", Letter{'D'});
    visit("optimise", self.optimise, studies::OneOf{{"0", "1", "2", "3", "s"}},
          "optimisation level of the compiler; predictions are made with 2", Letter{'O'});
    visit("verbose", self.verbose, "print the compiler's command line", Letter{'v'});
  }
};

// Throws InputError unless there is one kernel in the image.
void check_kernel(const std::string& made, const std::string& out) {
  const auto image = npu::ElfImage::read(made);
  const auto begin = image->symbol("cm384_entry_begin"), end = image->symbol("cm384_entry_end");
  const std::vector<std::string> marked = image->functions(begin.value_or(0), end.value_or(0));
  if (marked.size() > 1)
    throw InputError(
        fmt::format("kernel build: {} functions are marked __global__ ({}); {} is not made: one kernel an "
                    "image",
                    marked.size(), fmt::join(marked, ", "), out));
  const bool own_main = image->symbol("kernel_main") != image->symbol("cm384_weak_main");
  if (marked.empty() == !own_main) {
    if (own_main)
      throw InputError(
          fmt::format("kernel build: there are a kernel_main and {}, which is marked __global__; {} is not "
                      "made: one kernel an "
                      "image",
                      marked.front(), out));
    throw InputError(fmt::format(
        "kernel build: no function is marked __global__, and there is no kernel_main; {} is not made", out));
  }
}

int build(const Program&, const BuildOptions& options, const studies::Given&) {
  namespace fs = std::filesystem;
  if (options.source.empty()) throw InputError("kernel build: no source file given");
  for (const std::string& source : options.source) {
    if (!fs::is_regular_file(source)) throw InputError(fmt::format("{}: no such file", source));
  }
  const auto runtime = find_installed("share/cm384/firmware/runtime/kernel.ld");
  if (!runtime) throw InputError("share/cm384/firmware is neither above the program nor in CM384_HOME");
  const fs::path folder = fs::path(*runtime).parent_path();
  const std::string home = folder.parent_path().parent_path().string();
  const std::string out =
      options.out.empty() ? fs::path(options.source.front()).replace_extension(".elf").string() : options.out;
  // Found out before the compiler runs; the file is replaced when the image is whole.
  NamedOutput image(out);

  std::vector<std::string> words{
      kCompiler, fmt::format("@{}/kernel.flags", folder.string()), "-O" + options.optimise, "-I" + home,
      "-I" + folder.string(), "-I" + (folder / "standard").string(),
      // UBuffer offsets are pointers to kernels as Ascend C writes them: 0 is one.
      "-fno-delete-null-pointer-checks", "-D__DAV_C220_VEC__", "-DCM384_MASK_MODES"};
  for (const std::string& name : options.include) words.push_back("-I" + name);
  for (const std::string& name : options.define) words.push_back("-D" + name);
  words.insert(words.end(), {"-Wl,--no-warn-rwx-segments", "-T", (folder / "kernel.ld").string(),
                             (folder / "start.cpp").string(), (folder / "memory.cpp").string()});
  words.insert(words.end(), options.source.begin(), options.source.end());
  words.insert(words.end(), {(folder / "arguments.cpp").string(), "-lgcc", "-o", image.name()});
  if (options.verbose) fmt::print(stderr, "{}\n", fmt::join(words, " "));
  if (const int code = run_program(words, "gcc-riscv64-unknown-elf"); code != 0)
    throw InputError(
        fmt::format("kernel build: the compiler ended with {}; {} is not made; which calls there are: "
                    "docs/ascend-c.md",
                    code, out));
  check_kernel(image.name(), out);
  const std::uint64_t code = npu::ElfImage::read(image.name())->code_bytes();
  image.commit();
  fmt::print("{}: {} B of code\n", out, code);
  return kDone;
}

}  // namespace

constinit const Command kKernelBuildCommand = make_command<BuildOptions, build>(
    "kernel build", "SOURCE.. [-o OUT]", "compile a kernel for `cm384 run kernel`", "source", -1);

}  // namespace cm384::cli
