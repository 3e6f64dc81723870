#include "npu_core/scalar/debug_info.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace cm384::npu {

// A function of a unit, or a place where one was inlined, and the one around it. One with several ranges
// stands there once for each.
struct DebugScope {
  Dwarf_Die die;
  std::uint64_t begin = 0, end = 0;
  int around = -1;  // its place in the list; -1: none
};

struct DebugUnit {
  Dwarf_Die die;
  std::vector<DebugScope> scopes;
};

namespace {

// A function at a place of the code, inlined or not.
struct Frame {
  const char* function = nullptr;
  const char* file = nullptr;
  int line = 0;
};

// The scopes of a unit. Damaged information may lead in circles: there is an end to how much is looked at.
class Scopes {
 public:
  static std::vector<DebugScope> of(Dwarf_Die& unit) {
    Scopes all;
    all.add_children(unit, -1, 0);
    return std::move(all.scopes_);
  }

 private:
  static constexpr int kDeepest = 100, kMost = 10'000'000;

  // Those around others first.
  void add_children(Dwarf_Die& parent, int around, int depth) {
    Dwarf_Die child;
    if (depth > kDeepest || dwarf_child(&parent, &child) != 0) return;
    do {
      if (++seen_ > kMost) return;
      const int tag = dwarf_tag(&child);
      int within = around;
      if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) {
        Dwarf_Addr base = 0, begin = 0, end = 0;
        std::ptrdiff_t offset = 0;
        while ((offset = dwarf_ranges(&child, offset, &base, &begin, &end)) > 0) {
          within = static_cast<int>(scopes_.size());
          scopes_.push_back({child, begin, end, tag == DW_TAG_subprogram ? -1 : around});
        }
      }
      add_children(child, within, depth + 1);
    } while (dwarf_siblingof(&child, &child) == 0);
  }

  std::vector<DebugScope> scopes_;
  int seen_ = 0;
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
std::vector<Frame> frames_at(DebugUnit& unit, std::uint64_t address) {
  std::vector<Frame> frames(1);
  if (Dwarf_Line* const line = dwarf_getsrc_die(&unit.die, address)) {
    frames[0].file = dwarf_linesrc(line, nullptr, nullptr);
    dwarf_lineno(line, &frames[0].line);
  }
  // What stands within another comes after it.
  const auto innermost = std::find_if(unit.scopes.rbegin(), unit.scopes.rend(), [&](const DebugScope& scope) {
    return scope.begin <= address && address < scope.end;
  });
  if (innermost == unit.scopes.rend()) return frames;
  for (int at = static_cast<int>(unit.scopes.rend() - innermost) - 1; at >= 0;) {
    DebugScope& scope = unit.scopes[static_cast<std::size_t>(at)];
    frames.back().function = dwarf_diename(&scope.die);
    if (dwarf_tag(&scope.die) == DW_TAG_subprogram) break;
    frames.push_back(call_of(scope.die, unit.die));
    at = scope.around;
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
  std::vector<DebugUnit> units;
  bool known = false;

  // Looking through the tree of a unit for each address anew takes a thousand times as long.
  std::vector<DebugUnit>& all_units() {
    if (known || dwarf == nullptr) return units;
    known = true;
    Dwarf_CU* unit = nullptr;
    Dwarf_Die die;
    while (dwarf_get_units(dwarf, unit, &unit, nullptr, nullptr, &die, nullptr) == 0)
      units.push_back({die, Scopes::of(die)});
    return units;
  }
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
  for (DebugUnit& unit : handles_->all_units()) {
    if (dwarf_haspc(&unit.die, address) != 1) continue;
    std::optional<SourcePlace> place;
    for (const Frame& frame : frames_at(unit, address)) {
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
