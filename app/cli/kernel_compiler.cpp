#include "app/cli/kernel_compiler.h"

#include <sstream>
#include <string_view>

#include "base/text/error.h"
#include "base/text/installation.h"

namespace cm384::cli {

std::filesystem::path kernel_runtime() {
  const auto script = find_installed("share/cm384/firmware/runtime/kernel.ld");
  if (!script) throw InputError("share/cm384/firmware is neither above the program nor in CM384_HOME");
  return std::filesystem::path(*script).parent_path();
}

std::vector<std::string> compiler_words(const std::filesystem::path& runtime, CoreKind kind,
                                        const std::string& optimise, const std::vector<std::string>& include,
                                        const std::vector<std::string>& define) {
  std::vector<std::string> words{
      "riscv64-unknown-elf-g++", "@" + (runtime / "kernel.flags").string(), "-O" + optimise,
      "-I" + runtime.parent_path().parent_path().string(), "-I" + runtime.string(),
      "-I" + (runtime / "standard").string(),
      // Headers of the host's part of a source: its functions are left out.
      "-idirafter", (runtime / "host").string(),
      // Offsets of local buffers are pointers to kernels as Ascend C writes them: 0 is one.
      "-fno-delete-null-pointer-checks",
      // A macro that nobody gave is an error: 0 is a value of DT_*.
      "-Wundef", "-fdiagnostics-color=never", "-fno-diagnostics-show-caret",
      kind == CoreKind::vector ? "-D__DAV_C220_VEC__" : "-D__DAV_C220_CUBE__", "-D__NPU_ARCH__=2201",
      "-D__CCE_AICORE__=220", "-DCM384_MASK_MODES"};
  for (const std::string& name : include) words.push_back("-I" + name);
  for (const std::string& name : define) words.push_back("-D" + name);
  return words;
}

std::set<std::string> clashing_names(const std::string& said) {
  constexpr std::string_view kBegin = "error: reference to '", kEnd = "' is ambiguous";
  std::set<std::string> names;
  std::istringstream in(said);
  for (std::string line; std::getline(in, line);) {
    const std::size_t begin = line.find(kBegin), end = line.find(kEnd);
    if (begin != std::string::npos && end != std::string::npos)
      names.insert(line.substr(begin + kBegin.size(), end - begin - kBegin.size()));
  }
  // Those of which one is a function of the library.
  std::erase_if(names, [&](const std::string& name) {
    return said.find(" AscendC::" + name + "(") == std::string::npos;
  });
  return names;
}

std::string header_without(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += "#define " + name + " cm384_library_" + name + "\n";
  text += "#include \"kernel_operator.h\"\n";
  for (const std::string& name : names) text += "#undef " + name + "\n";
  return text;
}

std::string without_undefined(const std::string& said) {
  std::istringstream in(said);
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    if (line.find("[-Wundef]") == std::string::npos) kept += line + "\n";
  }
  return kept;
}

}  // namespace cm384::cli
