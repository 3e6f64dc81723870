// `cm384 kernel build`: a kernel's sources to an image for `cm384 run kernel`, with the headers and the
// runtime that come with the program, of a build folder or an installed tree.
#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "app/cli/commands.h"
#include "app/cli/compiler_errors.h"
#include "app/cli/exit_code.h"
#include "app/cli/kernel_compiler.h"
#include "app/cli/kernel_front.h"
#include "app/cli/kernel_source.h"
#include "app/cli/run_program.h"
#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/output_file.h"
#include "base/text/run_files.h"
#include "base/text/standard_error.h"
#include "hw/machine.h"
#include "npu_core/scalar/elf_image.h"
#include "system/host/kernel_kind.h"
#include "workloads/kernels/host_program.h"

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
  std::string entry, op;
  studies::Texts arguments, tiling, shape;
  std::string key;
  int column = 0;
  bool host = false;
  bool verbose = false;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using hw::Letter;
    using studies::Form;
    visit("source", self.source, Form{"FILE"},
          "C++ sources of one kernel: one of them has a function marked __global__, or kernel_main");
    visit("out", self.out, Form{"FILE"}, "the image; if not set, the first source's name with .elf",
          Letter{'o'});
    visit("include", self.include, Form{"DIR"}, "where to look for headers; may be repeated", Letter{'I'});
    visit("define", self.define, Form{"NAME[=VALUE]"}, "a macro; may be repeated", Letter{'D'});
    visit("optimise", self.optimise, studies::OneOf{{"0", "1", "2", "3", "s"}},
          "optimisation level of the compiler; predictions are made with 2", Letter{'O'});
    visit("type", self.type, studies::OneOf{{"source", "aiv", "aic", "mix"}},
          "cores that a block starts: what the source's KERNEL_TASK_TYPE says (without one: vector cores, or "
          "cube cores where the source calls for them), a vector core, a cube core, a cube core with two "
          "vector cores");
    visit("entry", self.entry, Form{"NAME"},
          "of several functions marked __global__ the one that is the kernel; if not set, each becomes an "
          "image "
          "of its own name");
    visit("op", self.op, Form{"FOLDER"},
          "a project with op_host and op_kernel; its kernel is built if no source is named");
    visit("column", self.column, studies::Range{0, 1000},
          "of the element types in the project's definition: DTYPE_*, ORIG_DTYPE_*, FORMAT_*");
    visit("template", self.arguments, Form{"NAME=VALUE"},
          "template arguments of the kernel, separated by commas; those not named are the first that "
          "ASCENDC_TPL_SEL allows");
    visit("tiling", self.tiling, Form{"FILE"},
          "where BEGIN_TILING_DATA_DEF defines the tiling data; if not set, the project's op_host");
    visit("shape", self.shape, Form{"NAME=SHAPE"},
          "of a project's tensor, or value of its attribute; may be repeated: its tiling function is run "
          "with them, and a program for `cm384 run program` is written beside the image");
    visit("tiling-key", self.key, Form{"KEY"},
          "build for this key alone, with the structure that is registered for it");
    visit("host", self.host,
          "build a host program that launches the kernels by its own calls, for `cm384 run program`; its "
          "kernels go into a folder beside it");
    visit("verbose", self.verbose, "print the compiler's command line", Letter{'v'});
  }
};

// The functions marked __global__ in an image. Throws InputError where there are none and no kernel_main
// either, or both.
std::vector<std::string> kernels_of(const std::string& made, const std::string& out) {
  const auto image = npu::ElfImage::read(made);
  const auto begin = image->symbol("cm384_entry_begin"), end = image->symbol("cm384_entry_end");
  std::vector<std::string> marked = image->functions(begin.value_or(0), end.value_or(0));
  const bool own_main = image->symbol("kernel_main") != image->symbol("cm384_weak_main");
  if (marked.empty() == own_main) return marked;
  if (own_main)
    throw InputError(
        fmt::format("kernel build: there are both kernel_main and {}, which is marked __global__; {} is not "
                    "made: one kernel per image",
                    marked.front(), out));
  throw InputError(fmt::format(
      "kernel build: no function is marked __global__, and there is no kernel_main; {} is not made", out));
}

// The compiler and what it makes of a kernel.
class Build {
 public:
  // `type`: as --type; becomes what the kernel's template says.
  Build(const KernelBuildOptions& options, const std::vector<std::string>& sources,
        std::filesystem::path runtime, std::string out, std::string entry, std::string& type)
      : options_(options),
        runtime_(std::move(runtime)),
        out_(std::move(out)),
        entry_(std::move(entry)),
        type_(type) {
    for (const std::string& source : sources) {
      alone_ = alone_ || has_kernel(read_input(source), entry_);
      prepare(source);
    }
  }
  // What was chosen of a project: a line each.
  const std::vector<std::string>& chosen() const { return chosen_; }

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

  // What the compiler reads: the source, or a copy without what is not C++ or not for the cores, with the
  // source's lines; of a project with what its own build adds.
  void prepare(const std::string& source) {
    KernelFront front(source, choice_, entry_);
    for (const std::string& macro : front.define()) define(macro);
    if (!front.tiling().empty() && headers_.empty()) {
      headers_.push_back(std::make_unique<PartFile>(out_ + ".tiling.h"));
      std::ofstream(headers_.back()->name) << front.tiling();
    }
    const std::string folder = std::filesystem::path(source).parent_path().string();
    if (front.is_template(entry_) && instance_.empty()) {
      std::vector<std::string> words = compiler(CoreKind::vector);
      append(words, {"-iquote", folder.empty() ? "." : folder});
      // Beside other kernels a template is one only where it is asked for, or its sets say what it is.
      const bool of_sets = entry_.empty() && options_.arguments.empty() && front.has_others();
      front.instantiate(entry_, std::move(words), out_, of_sets);
      for (const std::string& macro : front.define()) define(macro);
      instance_ = front.instance();
      if (!front.kind().empty() && type_ == "source") type_ = front.kind();
    }
    if (const std::string chosen = front.chosen(); !chosen.empty()) chosen_.push_back(chosen);
    std::vector<std::string> words = compiler(CoreKind::vector);
    append(words, {"-iquote", folder.empty() ? "." : folder});
    typed_ = front.call_by_types(entry_, std::move(words), out_) || typed_;
    const std::string ending = std::filesystem::path(source).extension().string();
    if (front.text() == read_input(source) && ending != ".asc" && ending != ".cce")
      return sources_.push_back(source);
    copies_.push_back(std::make_unique<PartFile>(fmt::format("{}.{}.cpp", out_, sources_.size())));
    std::ofstream(copies_.back()->name) << "#line 1 \"" << source << "\"\n" << front.text();
    quoted_.push_back(folder.empty() ? "." : folder);
    sources_.push_back(copies_.back()->name);
  }
  // One that --define gives stays as it is.
  void define(const std::string& macro) {
    const std::string name = macro.substr(0, macro.find('='));
    const auto is_same = [&](const std::string& given) { return given.substr(0, given.find('=')) == name; };
    if (std::ranges::none_of(options_.define, is_same) && std::ranges::none_of(define_, is_same))
      define_.push_back(macro);
  }

  static void append(std::vector<std::string>& to, const std::vector<std::string>& words) {
    to.insert(to.end(), words.begin(), words.end());
  }
  std::string file(const char* name) const { return (runtime_ / name).string(); }

  std::vector<std::string> compiler(CoreKind kind) const {
    std::vector<std::string> words =
        compiler_words(runtime_, kind, options_.optimise, options_.include, options_.define);
    for (const std::string& macro : define_) words.push_back("-D" + macro);
    for (const std::string& folder : quoted_) append(words, {"-iquote", folder});
    for (const auto& header : headers_) append(words, {"-include", header->name});
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
    if (typed_) {
      append(words, {"-DCM384_TYPED", "-DCM384_ENTRY=cm384_typed_entry"});
      if (!entry_.empty() && !alone_) words.push_back("-Wl,--defsym=cm384_entry=" + entry_);
    } else if (!instance_.empty()) {
      words.push_back("-DCM384_ENTRY=" + instance_);
    } else if (!entry_.empty() && !alone_) {
      append(words, {"-DCM384_ENTRY=" + entry_, "-Wl,--defsym=cm384_entry=" + entry_});
    }
    return words;
  }
  void part(CoreKind kind, const std::string& made) const {
    std::vector<std::string> words = compiler(kind);
    append(words, {"-r", "-Wl,--force-group-allocation"});
    append(words, sources_);
    append(words, {"-o", made});
    run(words);
    const bool cube = kind == CoreKind::cube;
    std::vector<std::string> hide{kObjcopy};
    if (cube)
      append(hide, {"--rename-section=.text.entry=.text.aic_entry",
                    "--redefine-sym=cm384_typed_entry=cm384_typed_aic_entry"});
    hide.push_back(fmt::format("--keep-global-symbol={}", !typed_ ? "none"
                                                          : cube  ? "cm384_typed_aic_entry"
                                                                  : "cm384_typed_entry"));
    hide.push_back(made);
    if (const int code = run_program(hide, "binutils-riscv64-unknown-elf"); code != 0)
      throw InputError(fmt::format("kernel build: {} ended with {}; {} is not made", kObjcopy, code, out_));
  }
  void run(const std::vector<std::string>& words) const {
    std::string said;
    int code = 0;
    std::set<std::string> own;
    std::unique_ptr<PartFile> header;
    for (std::vector<std::string> line = words;;) {
      if (options_.verbose) print_error("{}\n", fmt::join(line, " "));
      said.clear();
      code = run_program(line, "gcc-riscv64-unknown-elf", &said);
      const std::size_t known = own.size();
      own.merge(clashing_names(said));
      if (own.size() == known) break;
      header = std::make_unique<PartFile>(out_ + ".own.h");
      std::ofstream(header->name) << header_without(own);
      line = words;
      line.insert(line.begin() + 1, {"-include", header->name});
    }
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
  const std::string out_, entry_;
  std::string& type_;  // as --type
  const ProjectChoice choice_{options_.tiling, options_.arguments, options_.key, options_.column};
  bool alone_ = false;    // the entry is the only kernel of what is compiled
  bool typed_ = false;    // the kernel is called by the types of its arguments
  std::string instance_;  // name of the template that is the kernel
  std::vector<std::string> sources_, quoted_, define_, chosen_;
  std::vector<std::unique_ptr<PartFile>> copies_, headers_;
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

// "add" of "_Z3addPh".
std::string function_name(const std::string& symbol) {
  int wrong = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &wrong), &std::free);
  if (wrong != 0 || text == nullptr) return symbol;
  std::string name = text.get();
  name.erase(std::min(name.find('('), name.size()));
  return name.substr(name.rfind(':') + 1);
}

// One image. Where the sources have several kernels and `entry` names none, none is made and their names are
// returned.
std::vector<std::string> build_image(const KernelBuildOptions& options,
                                     const std::vector<std::string>& sources,
                                     const std::filesystem::path& runtime, const std::string& out,
                                     const std::string& entry) {
  // Found out before the compiler runs; the file is replaced when the image is whole. One of the source's
  // kernels may have the source's name.
  const bool may_be_several = entry.empty() && options.out.empty();
  NamedOutput image(out, may_be_several ? RunFiles::Use::tried : RunFiles::Use::written);
  std::string type = options.type;
  if (type == "source") {
    for (const std::string& source : sources) {
      if (const std::string kind = kind_in_source(only_kernel(read_input(source), entry)); !kind.empty())
        type = kind;
    }
  }
  const Build build(options, sources, runtime, out, entry, type);
  build.image(CoreKind::vector, image.name());
  const std::vector<std::string> kernels = kernels_of(image.name(), out);
  if (kernels.size() > 1 && entry.empty()) return kernels;
  const auto [vector, cube] = kinds_of(image.name(), out, type);
  if (cube && vector && kernels.size() > 1)
    throw InputError("kernel build: --entry: has no effect on kernels of groups whose kind a macro chooses");
  if (cube) vector ? build.image_of_both(image.name()) : build.image(CoreKind::cube, image.name());
  const std::uint64_t code = npu::ElfImage::read(image.name())->code_bytes();
  image.commit();
  fmt::print("{}: {} B of code{}\n", out, code,
             !cube    ? ""
             : vector ? ", of vector and of cube cores"
                      : ", of cube cores");
  for (const std::string& line : build.chosen()) fmt::print("{}: {}\n", out, line);
  return {};
}

// The kernel of a project: the source in op_kernel that has the name of an operator of its definition.
std::string kernel_of_project(const std::string& folder) {
  namespace fs = std::filesystem;
  const fs::path kernels = fs::path(folder) / "op_kernel";
  if (!fs::is_directory(kernels)) throw InputError(fmt::format("--op {}: has no folder op_kernel", folder));
  std::vector<std::string> sources;
  for (const auto& entry : fs::directory_iterator(kernels)) {
    const std::string ending = entry.path().extension().string();
    if (entry.is_regular_file() && (ending == ".cpp" || ending == ".cce" || ending == ".asc"))
      sources.push_back(entry.path().string());
  }
  std::ranges::sort(sources);
  const std::vector<OperatorDefinition> all = operator_definitions(host_sources(folder));
  std::vector<std::string> named;
  for (const std::string& source : sources) {
    const std::string stem = fs::path(source).stem().string();
    if (std::ranges::any_of(all, [&](const OperatorDefinition& d) { return is_name_of(d.type, stem); }))
      named.push_back(source);
  }
  const std::vector<std::string>& found = named.empty() ? sources : named;
  if (found.size() == 1) return found.front();
  throw InputError(found.empty()
                       ? fmt::format("--op {}: no source in op_kernel", folder)
                       : fmt::format("--op {}: name one of its kernels: {}", folder, fmt::join(found, ", ")));
}

struct ScratchFolder {
  explicit ScratchFolder(std::string name) : path(std::move(name)) {
    std::filesystem::create_directories(path);
  }
  ~ScratchFolder() {
    std::error_code gone;
    std::filesystem::remove_all(path, gone);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path path;
};

// A header of the cores' beside a source: one of the project's own that has functions for them.
bool is_of_cores(const std::filesystem::path& folder, const std::string& name) {
  const std::filesystem::path path = folder / name;
  if (!std::filesystem::is_regular_file(path)) return false;
  const std::string text = masked(read_input(path.string()));
  return text.find("__aicore__") != std::string::npos || text.find("__global__") != std::string::npos;
}

// The image that a launch of a template starts, from the source that has the template.
void build_instance(const KernelBuildOptions& options, const TemplateLaunch& launch,
                    const std::filesystem::path& runtime, const std::string& out) {
  for (const std::string& source : options.source) {
    for (const TemplateEntry& entry : template_entries(read_input(source))) {
      if (entry.name.substr(entry.name.rfind(':') + 1) != launch.kernel) continue;
      if (launch.arguments.size() > entry.parameters.size())
        throw InputError(
            fmt::format("kernel build --host: a launch of {}<{}>: the template has {} parameters",
                        launch.kernel, fmt::join(launch.arguments, ", "), entry.parameters.size()));
      KernelBuildOptions own = options;
      own.arguments.clear();
      for (std::size_t n = 0; n < launch.arguments.size(); ++n)
        own.arguments.push_back(entry.parameters[n].name + "=" + launch.arguments[n]);
      build_image(own, {source}, runtime, out, launch.kernel);
      return;
    }
  }
  throw InputError(fmt::format("kernel build --host: a launch of {}<{}>: no source has that template",
                               launch.kernel, fmt::join(launch.arguments, ", ")));
}

// The sources' kernels to images, what is of the host to a program that asks the emulator.
int build_host(const KernelBuildOptions& options, const std::filesystem::path& runtime) {
  namespace fs = std::filesystem;
  const std::vector<std::string>& sources = options.source;
  const std::string out = options.out.empty() ? fs::path(sources.front()).stem().string() : options.out;
  if (fs::is_directory(out)) throw InputError(fmt::format("{}: is a folder; -o names the program", out));
  const fs::path kernels = studies::kernel_folder(out), host = runtime.parent_path() / "host";
  NamedOutput program(out, RunFiles::Use::written);
  const ScratchFolder made_in(out + ".host");
  const fs::path& scratch = made_in.path;
  std::vector<std::string> words{"g++",
                                 "-std=c++17",
                                 "-O1",
                                 "-DCM384_PROGRAM=\"" + fs::read_symlink("/proc/self/exe").string() + "\"",
                                 "-I" + runtime.parent_path().parent_path().string(),
                                 "-I" + host.string(),
                                 "-I" + scratch.string(),
                                 "-include",
                                 "acl/acl.h"};
  for (const std::string& folder : options.include) words.push_back("-I" + folder);
  for (const std::string& macro : options.define) words.push_back("-D" + macro);
  std::size_t made = 0;
  std::vector<TemplateLaunch> instances;
  for (const std::string& source : sources) {
    const std::string text = read_input(source);
    const std::string folder =
        fs::path(source).has_parent_path() ? fs::path(source).parent_path().string() : ".";
    for (const std::string& name : kernel_names(text)) {
      build_image(options, {source}, runtime, (kernels / (name + ".elf")).string(), name);
      std::ofstream(scratch / ("aclrtlaunch_" + name + ".h"))
          << "#pragma once\n#include \"acl/acl.h\"\ntemplate <typename... Arguments>\ninline int aclrtlaunch_"
          << name << "(uint32_t blocks, aclrtStream stream, const Arguments&... arguments) {\n  return "
          << "cm384_host::Launch(\"" << name << "\", blocks, nullptr, stream)(arguments...);\n}\n";
      ++made;
    }
    for (const TemplateLaunch& launch : template_launches(text)) {
      if (std::ranges::find(instances, launch) != instances.end()) continue;
      instances.push_back(launch);
      build_instance(options, launch, runtime, (kernels / (launch.image() + ".elf")).string());
      ++made;
    }
    const fs::path copy = scratch / fmt::format("{}.cpp", words.size());
    std::ofstream(copy) << "#line 1 \"" << source << "\"\n"
                        << for_host(text, [&](const std::string& name) { return is_of_cores(folder, name); });
    words.insert(words.end(), {"-iquote", folder, copy.string()});
  }
  words.insert(words.end(), {"-o", program.name()});
  if (options.verbose) print_error("{}\n", fmt::join(words, " "));
  const int code = run_program(words, "g++");
  if (code != 0)
    throw InputError(
        fmt::format("kernel build --host: the host's compiler ended with {}; {} is not made", code, out));
  // Its collectives are a kernel of the emulator's.
  if (read_input(program.name()).find("cm384 collectives") != std::string::npos)
    build_image({}, {(host / "hccl/collectives.cpp").string()}, runtime,
                (kernels / "collectives.elf").string(), "collectives");
  program.commit();
  fmt::print("{}: a host program, {} kernel{}\n", out, made, made == 1 ? "" : "s");
  return kDone;
}

// Runs the tiling function of the kernel's project: out.toml and out.tiling beside the image.
void write_program(const KernelBuildOptions& options, const std::string& source, const std::string& image,
                   const std::filesystem::path& runtime) {
  namespace fs = std::filesystem;
  const auto project = project_of(source);
  if (!project)
    throw InputError(fmt::format("--shape: {} does not belong to a project with op_host", source));
  const fs::path host = runtime.parent_path() / "host";
  const ScratchFolder made_in(image + ".host");
  const std::string driver = (made_in.path / "tiling").string();
  std::vector<std::string> words{"g++",
                                 "-std=c++17",
                                 "-O0",
                                 "-w",
                                 "-DCM384_TILING",
                                 "-I" + runtime.parent_path().parent_path().string(),
                                 "-I" + host.string(),
                                 "-I" + (*project / "op_host").string(),
                                 "-I" + (*project / "op_kernel").string()};
  for (const std::string& folder : options.include) words.push_back("-I" + folder);
  for (const std::string& macro : options.define) words.push_back("-D" + macro);
  for (const std::string& path : host_sources(*project)) {
    if (fs::path(path).extension() == ".cpp" && path.find("op_kernel") == std::string::npos)
      words.push_back(path);
  }
  words.insert(words.end(), {(host / "tiling_driver.cpp").string(), "-o", driver});
  if (options.verbose) print_error("{}\n", fmt::join(words, " "));
  if (const int code = run_program(words, "g++"); code != 0)
    throw InputError(
        fmt::format("--shape: the host's compiler ended with {}: the tiling function in {} is not run", code,
                    (*project / "op_host").string()));
  const hw::Die die = hw::load_machine(std::string(hw::kDefaultMachine)).die;
  std::vector<std::string> call{driver,
                                fs::path(source).stem().string(),
                                image,
                                fs::path(image).replace_extension().string(),
                                std::to_string(options.column),
                                std::to_string(die.aiv),
                                std::to_string(die.aic)};
  call.insert(call.end(), options.shape.begin(), options.shape.end());
  if (const int code = run_program(call, driver); code != 0)
    throw InputError(fmt::format("--shape: the tiling function of {} ended with {}",
                                 fs::path(source).stem().string(), code));
}

int build(const Program&, const KernelBuildOptions& options, const studies::Given&) {
  namespace fs = std::filesystem;
  std::vector<std::string> sources = options.source;
  if (sources.empty() && !options.op.empty()) sources.push_back(kernel_of_project(options.op));
  if (sources.empty()) throw InputError("kernel build: no source file given");
  for (const std::string& source : sources) {
    if (!fs::is_regular_file(source)) throw InputError(fmt::format("{}: no such file", source));
    open_input(source);  // read by the compiler: no output may be there
  }
  const fs::path runtime = kernel_runtime();
  if (options.host) {
    if (!options.op.empty() || !options.entry.empty())
      throw InputError("kernel build --host: takes sources, without --op and --entry");
    return build_host(options, runtime);
  }
  const fs::path beside = options.op.empty() || !options.source.empty()
                              ? fs::path(sources.front())
                              : fs::path(sources.front()).filename();
  const std::string out =
      options.out.empty() ? fs::path(beside).replace_extension(".elf").string() : options.out;
  const std::vector<std::string> kernels = build_image(options, sources, runtime, out, options.entry);
  if (!options.shape.empty() && kernels.empty()) write_program(options, sources.front(), out, runtime);
  std::vector<std::string> names;
  std::ranges::transform(kernels, std::back_inserter(names), function_name);
  if (!kernels.empty() && !options.out.empty())
    throw InputError(fmt::format(
        "kernel build: {} functions are marked __global__ ({}); {} is not made: --entry NAME chooses one",
        kernels.size(), fmt::join(names, ", "), out));
  if (RunFiles* files = RunFiles::current(); files != nullptr && !kernels.empty()) files->begin_work();
  for (const std::string& symbol : kernels) {
    const std::string name = function_name(symbol);
    const bool found = std::ranges::any_of(
        sources, [&](const std::string& source) { return has_kernel(read_input(source), name); });
    build_image(options, sources, runtime, fs::path(beside).replace_filename(name + ".elf").string(),
                found ? name : symbol);
  }
  return kDone;
}

}  // namespace

constinit const Command kKernelBuildCommand = make_command<KernelBuildOptions, build>(
    "kernel build", "SOURCE.. [-o OUT]", "compile a kernel for `cm384 run kernel`", "source", -1);

}  // namespace cm384::cli
