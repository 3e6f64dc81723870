// `cm384 kernel build`: a kernel's sources to an image for `cm384 run kernel`, with the headers and the
// runtime that come with the program, of a build folder or an installed tree.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "app/cli/commands.h"
#include "app/cli/compiler_errors.h"
#include "app/cli/exit_code.h"
#include "app/cli/kernel_compiler.h"
#include "app/cli/kernel_source.h"
#include "app/cli/run_program.h"
#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/output_file.h"
#include "base/text/standard_error.h"
#include "npu_core/scalar/elf_image.h"
#include "system/host/kernel_kind.h"

namespace cm384::cli {
namespace {

constexpr const char* kObjcopy = "riscv64-unknown-elf-objcopy";

// What --type says a launch starts, and the value of cm384_kernel_type.
struct Type {
  std::string_view name;
  const char* symbol;
};
constexpr Type kTypes[] = {{"source", nullptr}, {"aiv", "0"}, {"aic", "1"}, {"mix", "5"}};

struct KernelBuildOptions {
  studies::Texts source;
  std::string out;
  studies::Texts include, define;
  std::string optimise = "2";
  std::string type = "source";
  std::string entry;
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
    visit("type", self.type, studies::OneOf{{"source", "aiv", "aic", "mix"}},
          "cores that a block starts: what the source's KERNEL_TASK_TYPE says (without one: vector cores, or "
          "cube cores where it has calls of theirs), a vector core, a cube core, a cube core with two vector "
          "cores");
    visit("entry", self.entry, Form{"NAME"},
          "of several functions marked __global__ the one that is the kernel");
    visit("verbose", self.verbose, "print the compiler's command line", Letter{'v'});
  }
};

// Throws InputError unless there is one kernel in the image, or `entry` names it.
void check_kernel(const std::string& made, const std::string& entry, const std::string& out) {
  const auto image = npu::ElfImage::read(made);
  const auto begin = image->symbol("cm384_entry_begin"), end = image->symbol("cm384_entry_end");
  const std::vector<std::string> marked = image->functions(begin.value_or(0), end.value_or(0));
  if (marked.size() > 1 && entry.empty())
    throw InputError(fmt::format(
        "kernel build: {} functions are marked __global__ ({}); {} is not made: --entry NAME chooses one",
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

// The compiler and what it makes of a kernel.
class Build {
 public:
  Build(const KernelBuildOptions& options, std::filesystem::path runtime, std::string out,
        const std::string& type)
      : options_(options), runtime_(std::move(runtime)), out_(std::move(out)), type_(type) {
    for (const std::string& source : options.source) prepare(source);
  }

  // One image of cores of a kind.
  void image(CoreKind kind, const std::string& made) const {
    std::vector<std::string> words = compiler(kind);
    append(words, linking("arguments.cpp"));
    append(words, sources_);
    append(words, {"-lgcc", "-o", made});
    run(words);
  }

  // One of both: each kind's part has its names to itself, and a core begins in that of its kind.
  void image_of_both(const std::string& made) const {
    const PartFile vector(made + ".aiv.o"), cube(made + ".aic.o");
    part(CoreKind::vector, vector.name);
    part(CoreKind::cube, cube.name);
    std::vector<std::string> words = compiler(CoreKind::vector);
    append(words, linking("arguments.cpp"));
    append(words, {"-DCM384_KERNEL_OF_BOTH", vector.name, cube.name, "-lgcc", "-o", made});
    run(words);
  }

 private:
  struct PartFile {
    explicit PartFile(std::string path) : name(std::move(path)) {}
    ~PartFile() {
      std::error_code gone;
      std::filesystem::remove(name, gone);
    }
    PartFile(const PartFile&) = delete;
    PartFile& operator=(const PartFile&) = delete;
    const std::string name;
  };

  // What the compiler reads: the source, or a copy without what is not C++, with the source's lines.
  void prepare(const std::string& source) {
    const std::string text = read_input(source);
    std::string plain = without_aicore(text);
    if (plain == text) return sources_.push_back(source);
    copies_.push_back(std::make_unique<PartFile>(fmt::format("{}.{}.cpp", out_, sources_.size())));
    std::ofstream(copies_.back()->name) << "#line 1 \"" << source << "\"\n" << plain;
    const std::string folder = std::filesystem::path(source).parent_path().string();
    quoted_.push_back(folder.empty() ? "." : folder);
    sources_.push_back(copies_.back()->name);
  }

  static void append(std::vector<std::string>& to, const std::vector<std::string>& words) {
    to.insert(to.end(), words.begin(), words.end());
  }
  std::string file(const char* name) const { return (runtime_ / name).string(); }

  std::vector<std::string> compiler(CoreKind kind) const {
    std::vector<std::string> words =
        compiler_words(runtime_, kind, options_.optimise, options_.include, options_.define);
    for (const std::string& folder : quoted_) append(words, {"-iquote", folder});
    return words;
  }
  std::vector<std::string> linking(const char* arguments) const {
    std::vector<std::string> words{// What runs by the rules of Ascend C's compiler (npu::KernelRules).
                                   "-Wl,--defsym=cm384_front_end=1",
                                   "-Wl,--no-warn-rwx-segments",
                                   "-T",
                                   file("kernel.ld"),
                                   file("start.cpp"),
                                   file("memory.cpp"),
                                   file(arguments)};
    if (const auto type = std::ranges::find(kTypes, type_, &Type::name); type->symbol != nullptr)
      words.push_back(fmt::format("-Wl,--defsym=cm384_kernel_type={}", type->symbol));
    if (!options_.entry.empty())
      append(words, {"-DCM384_ENTRY=" + options_.entry, "-Wl,--defsym=cm384_entry=" + options_.entry});
    return words;
  }
  void part(CoreKind kind, const std::string& made) const {
    std::vector<std::string> words = compiler(kind);
    append(words, {"-r", "-Wl,--force-group-allocation"});
    append(words, sources_);
    append(words, {"-o", made});
    run(words);
    std::vector<std::string> hide{kObjcopy, "--keep-global-symbol=none"};
    if (kind == CoreKind::cube) hide.push_back("--rename-section=.text.entry=.text.aic_entry");
    hide.push_back(made);
    if (const int code = run_program(hide, "binutils-riscv64-unknown-elf"); code != 0)
      throw InputError(fmt::format("kernel build: {} ended with {}; {} is not made", kObjcopy, code, out_));
  }
  void run(const std::vector<std::string>& words) const {
    if (options_.verbose) print_error("{}\n", fmt::join(words, " "));
    std::string said;
    const int code = run_program(words, "gcc-riscv64-unknown-elf", &said);
    const std::vector<CompilerError> wrong = said.empty()
                                                 ? std::vector<CompilerError>{}
                                                 : compiler_errors(said, runtime_, runtime_names(runtime_));
    if (options_.verbose || wrong.empty()) write_standard_error(code == 0 ? without_undefined(said) : said);
    for (const CompilerError& error : wrong) print_error("{}\n", error.one_line());
    if (code != 0 || !wrong.empty())
      throw InputError(fmt::format(
          "kernel build: {}{} is not made; which calls there are: docs/ascend-c.md; `cm384 kernel check` "
          "lists what is missing",
          code == 0 ? "" : fmt::format("the compiler ended with {}; ", code), out_));
  }

  const KernelBuildOptions& options_;
  const std::filesystem::path runtime_;
  const std::string out_;
  const std::string& type_;  // as --type
  std::vector<std::string> sources_, quoted_;
  std::vector<std::unique_ptr<PartFile>> copies_;
};

struct Kinds {
  bool vector = false, cube = false;
};
// Which kinds of cores launches of the kernel start, by a build of it for vector cores. Where nothing says
// it, calls of cube cores that a vector core would make do: then `type` becomes what they say.
Kinds kinds_of(const std::string& made, const std::string& out, std::string& type) {
  const auto image = npu::ElfImage::read(made);
  std::vector<npu::KernelType> types = host::kernel_types(*image, out);
  if (types.empty() && image->symbol("cm384_uses_cube")) type = "aic";
  if (type == "aic") return {.cube = true};
  // Keys for which nothing is said.
  if (!image->symbol("cm384_kernel_type")) types.push_back(npu::KernelType::aiv);
  const auto has = [&](npu::KernelType kind) { return std::ranges::count(types, kind) != 0; };
  const bool mix = has(npu::KernelType::mix);
  return {mix || has(npu::KernelType::aiv), mix || has(npu::KernelType::aic)};
}

int build(const Program&, const KernelBuildOptions& options, const studies::Given&) {
  namespace fs = std::filesystem;
  if (options.source.empty()) throw InputError("kernel build: no source file given");
  for (const std::string& source : options.source) {
    if (!fs::is_regular_file(source)) throw InputError(fmt::format("{}: no such file", source));
    open_input(source);  // read by the compiler: no output may be there
  }
  const fs::path runtime = kernel_runtime();
  const std::string out =
      options.out.empty() ? fs::path(options.source.front()).replace_extension(".elf").string() : options.out;
  // Found out before the compiler runs; the file is replaced when the image is whole.
  NamedOutput image(out);
  std::string type = options.type;
  if (type == "source") {
    for (const std::string& source : options.source) {
      if (const std::string kind = kind_in_source(read_input(source)); !kind.empty()) type = kind;
    }
  }
  const Build build(options, runtime, out, type);
  build.image(CoreKind::vector, image.name());
  check_kernel(image.name(), options.entry, out);
  const auto [vector, cube] = kinds_of(image.name(), out, type);
  if (cube && vector && !options.entry.empty())
    throw InputError("kernel build: --entry: not of kernels of groups");
  if (cube) vector ? build.image_of_both(image.name()) : build.image(CoreKind::cube, image.name());
  const std::uint64_t code = npu::ElfImage::read(image.name())->code_bytes();
  image.commit();
  fmt::print("{}: {} B of code{}\n", out, code,
             !cube    ? ""
             : vector ? ", of vector and of cube cores"
                      : ", of cube cores");
  return kDone;
}

}  // namespace

constinit const Command kKernelBuildCommand = make_command<KernelBuildOptions, build>(
    "kernel build", "SOURCE.. [-o OUT]", "compile a kernel for `cm384 run kernel`", "source", -1);

}  // namespace cm384::cli
