#include "npu_core/scalar/debug_info.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <cstdlib>
#include <string_view>
#include <vector>

namespace cm384::npu {
namespace {

// A function at a place of the code, inlined or not.
struct Frame {
  const char* function = nullptr;
  const char* file = nullptr;
  int line = 0;
};

// The scopes around a DIE, the innermost first; libdw allocates them.
class Scopes {
 public:
  Scopes(Dwarf_Die& unit, std::uint64_t address) {
    Dwarf_Die* found = nullptr;
    const int count = dwarf_getscopes(&unit, address, &found);
    // Of an inlined function these lead into its definition; where it was inlined to is asked for by DIE.
    if (count > 0) count_ = dwarf_getscopes_die(&found[0], &scopes_);
    std::free(found);
  }
  ~Scopes() { std::free(scopes_); }
  Scopes(const Scopes&) = delete;
  Scopes& operator=(const Scopes&) = delete;

  std::span<Dwarf_Die> functions_and_blocks() {
    return {scopes_, scopes_ == nullptr || count_ < 0 ? 0 : static_cast<std::size_t>(count_)};
  }

 private:
  Dwarf_Die* scopes_ = nullptr;
  int count_ = 0;
};

std::optional<std::uint64_t> number(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr(&die, name, &attribute) == nullptr || dwarf_formudata(&attribute, &value) != 0) return {};
  return value;
}

// Who called an inlined function, and from where.
Frame call_of(Dwarf_Die& inlined, Dwarf_Die& unit) {
  Frame frame;
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  const auto file = number(inlined, DW_AT_call_file), line = number(inlined, DW_AT_call_line);
  if (!file || !line || dwarf_getsrcfiles(&unit, &files, &count) != 0 || *file >= count) return frame;
  frame.file = dwarf_filesrc(files, *file, nullptr, nullptr);
  frame.line = static_cast<int>(*line);
  return frame;
}

// The innermost first.
std::vector<Frame> frames_at(Dwarf_Die& unit, std::uint64_t address) {
  std::vector<Frame> frames(1);
  if (Dwarf_Line* const line = dwarf_getsrc_die(&unit, address)) {
    frames[0].file = dwarf_linesrc(line, nullptr, nullptr);
    dwarf_lineno(line, &frames[0].line);
  }
  Scopes scopes(unit, address);
  for (Dwarf_Die& scope : scopes.functions_and_blocks()) {
    const int tag = dwarf_tag(&scope);
    if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine) continue;
    frames.back().function = dwarf_diename(&scope);
    if (tag == DW_TAG_subprogram) break;
    frames.push_back(call_of(scope, unit));
  }
  return frames;
}

bool of_the_runtime(const char* file) {
  return std::string_view(file).find("firmware/runtime/") != std::string_view::npos;
}

}  // namespace

struct DebugInfo::Handles {
  Elf* elf = nullptr;
  Dwarf* dwarf = nullptr;
};

DebugInfo::DebugInfo(std::span<const std::byte> elf) : handles_(std::make_unique<Handles>()) {
  elf_version(EV_CURRENT);
  // libelf only reads through the pointer.
  handles_->elf = elf_memory(const_cast<char*>(reinterpret_cast<const char*>(elf.data())), elf.size());
  if (handles_->elf != nullptr) handles_->dwarf = dwarf_begin_elf(handles_->elf, DWARF_C_READ, nullptr);
}

DebugInfo::~DebugInfo() {
  if (handles_->dwarf != nullptr) dwarf_end(handles_->dwarf);
  if (handles_->elf != nullptr) elf_end(handles_->elf);
}

std::optional<SourcePlace> DebugInfo::place_of(std::uint64_t address) const {
  if (handles_->dwarf == nullptr) return {};
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die;
  while (dwarf_get_units(handles_->dwarf, unit, &unit, nullptr, nullptr, &die, nullptr) == 0) {
    if (dwarf_haspc(&die, address) != 1) continue;
    std::optional<SourcePlace> place;
    for (const Frame& frame : frames_at(die, address)) {
      if (frame.file == nullptr || frame.line == 0) continue;
      const bool runtime = of_the_runtime(frame.file);
      if (place && runtime) continue;
      const std::string_view file = frame.file;
      place = {frame.function == nullptr ? "" : frame.function, std::string(file.substr(file.rfind('/') + 1)),
               frame.line, std::string(file)};
      if (!runtime) break;
    }
    return place;
  }
  return {};
}

std::optional<std::vector<std::string>> DebugInfo::parameters_at(std::uint64_t address) const {
  if (handles_->dwarf == nullptr) return {};
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die, function, parameter;
  while (dwarf_get_units(handles_->dwarf, unit, &unit, nullptr, nullptr, &die, nullptr) == 0) {
    if (dwarf_haspc(&die, address) != 1 || dwarf_child(&die, &function) != 0) continue;
    do {
      Dwarf_Addr begin = 0;
      if (dwarf_tag(&function) != DW_TAG_subprogram || dwarf_lowpc(&function, &begin) != 0 ||
          begin != address)
        continue;
      std::vector<std::string> names;
      for (int more = dwarf_child(&function, &parameter); more == 0;
           more = dwarf_siblingof(&parameter, &parameter)) {
        if (dwarf_tag(&parameter) != DW_TAG_formal_parameter) continue;
        const char* name = dwarf_diename(&parameter);
        names.emplace_back(name == nullptr ? "" : name);
      }
      return names;
    } while (dwarf_siblingof(&function, &function) == 0);
  }
  return {};
}

}  // namespace cm384::npu
