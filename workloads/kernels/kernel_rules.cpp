#include "workloads/kernels/kernel_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "npu_core/pipes/pipe_fault.h"
#include "npu_core/vector/vector_pipes.h"

namespace cm384::studies {
namespace {

bool as_asked(const std::string& asked, bool automatic) {
  return asked == "auto" ? automatic : asked == "on";
}

// "Compute at mine.cpp:42", without the program counter: of one line there are several.
std::string line_of(const npu::ElfImage& image, std::uint64_t pc) {
  std::string text = image.describe(pc);
  return text.substr(0, text.find(", pc "));
}

// Those that nothing orders first, each pair of lines once.
void report_hazards(const npu::Program& program, const std::vector<npu::Hazard>& hazards, StudyResult& into) {
  std::set<std::pair<bool, std::string>> lines;
  std::set<std::string> pairs;
  const auto place = [&](std::uint64_t pc) { return line_of(program.image(), pc); };
  std::vector<npu::Hazard> in_order = hazards;
  // Of the blocks that meet on a pair of lines the first is named.
  std::ranges::sort(in_order, {},
                    [](const npu::Hazard& h) { return std::tuple(h.offset, h.access, h.other); });
  for (const npu::Hazard& h : in_order) {
    const std::string one = fmt::format("{} {} {}", h.access.pipe, h.access.write, place(h.access.pc));
    const std::string two = fmt::format("{} {} {}", h.other.pipe, h.other.write, place(h.other.pc));
    if (!pairs.insert(one + "\n" + two).second) continue;
    lines.emplace(h.ordered, npu::PipeFault(h.text(), {h.access.pc, h.other.pc}).text(place));
    if (!h.ordered) into.passed = false;
  }
  for (const auto& [ordered, line] : lines) into.notes.push_back(line);
}

}  // namespace

void apply_rules(const RuleOptions& options, bool list_hazards, npu::Program& program) {
  const npu::KernelRules& built = program.rules();
  program.set_rules({.order = as_asked(options.auto_sync, built.order),
                     .write_back = as_asked(options.write_back, built.write_back),
                     .list_hazards = list_hazards});
}

void report_rules(npu::Program& program, const Clock& clock, StudyResult& into) {
  report_hazards(program, program.log().hazards(), into);
  constexpr std::size_t kMost = 16;
  std::map<std::string, npu::OrderWait> places;
  for (const auto& [at, wait] : program.log().waits()) {
    const char* const who = at.by_pipe ? "V" : at.write ? "scalar stores" : "scalar loads";
    npu::OrderWait& sum = places[fmt::format("{}: {} waited for {}", line_of(program.image(), at.pc), who,
                                             npu::pipe_name(at.pipe))];
    sum.count += wait.count;
    sum.cycles += wait.cycles;
  }
  std::vector<std::pair<std::string, npu::OrderWait>> longest(places.begin(), places.end());
  std::ranges::stable_sort(longest, std::ranges::greater{},
                           [](const auto& place) { return place.second.cycles; });
  const auto text = [&clock](const npu::OrderWait& wait) {
    return fmt::format("{} time{}, {:.3f} us", wait.count, wait.count == 1 ? "" : "s",
                       clock.start(wait.cycles).us());
  };
  npu::OrderWait rest;
  for (std::size_t n = 0; n < longest.size(); ++n) {
    const auto& [place, wait] = longest[n];
    if (n < kMost) {
      into.notes.push_back(fmt::format("automatic order: {} {}", place, text(wait)));
    } else {
      rest.count += wait.count;
      rest.cycles += wait.cycles;
    }
  }
  if (rest.count > 0)
    into.notes.push_back(
        fmt::format("automatic order: at {} more places {}", longest.size() - kMost, text(rest)));
  if (const std::uint64_t lines = program.log().written_lines(); lines > 0)
    into.notes.push_back(fmt::format(
        "written back at the end of blocks: {} dirty line{} of scalar data caches, which the part is not "
        "known to do (--write-back off)",
        lines, lines == 1 ? "" : "s"));
}

}  // namespace cm384::studies
