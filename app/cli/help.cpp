#include "app/cli/help.h"

#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/examples.h"

namespace cm384::cli {
namespace {

constexpr std::size_t kWidth = 100, kAfterUsage = 40, kAfterStudy = 14;

constexpr std::string_view kEnd =
    "Every command and every study knows --help: options with unit and default, examples.\n"
    "Quantities carry units (7.5KiB, 28GB/s, 47.5ns, 1.85GHz). Results go to standard output, progress to\n"
    "standard error. Exit codes: 0 done, 1 a check failed, 2 bad input, 3 the simulated machine hung,\n"
    "4 an internal error, 5 an output could not be written, 130 interrupted.\n";

std::string line_of(const Command& command) {
  return list_line("  " + command.usage(), command.summary, kAfterUsage);
}

std::string lines_of(std::span<const studies::Study> all) {
  std::string text;
  for (const studies::Study& study : all)
    text += list_line(fmt::format("  {}", study.name), study.summary, kAfterStudy);
  return text;
}

std::string studies_by_group(const Program& program) {
  if (program.groups.empty())
    return fmt::format("\nStudies, `cm384 run STUDY`:\n{}", lines_of(program.studies));
  std::string text;
  for (const studies::StudyGroup& group : program.groups)
    text += fmt::format("\nStudies of {}, `cm384 run STUDY`:\n{}", group.title, lines_of(group.studies));
  return text;
}

}  // namespace

std::string list_line(std::string_view left, std::string_view right, std::size_t at) {
  std::string text(left);
  std::size_t column = left.size();
  const auto begin_at = [&] {
    text.append(at - column, ' ');
    column = at;
  };
  const auto next_line = [&] {
    text += '\n';
    column = 0;
    begin_at();
  };
  column + 2 <= at ? begin_at() : next_line();
  while (!right.empty()) {
    const std::size_t blank = std::min(right.find(' '), right.size());
    const bool first = column == at;
    if (!first && column + 1 + blank > kWidth) {
      next_line();
    } else if (!first) {
      text += ' ';
      ++column;
    }
    text += right.substr(0, blank);
    column += blank;
    right.remove_prefix(std::min(blank + 1, right.size()));
  }
  return text + '\n';
}

std::string help_head(std::string_view usage, std::string_view summary) {
  return fmt::format("{} [options]\n{}", usage, list_line("", summary, 2));
}

std::string usage_of(const Program& program) {
  std::string text =
      "cm384 emulates a CloudMatrix384 supernode. Begin with `cm384 run dispatch --ranks 8`.\n";
  for (const CommandGroup& group : program.commands) {
    text += fmt::format("\n{}:\n", group.title);
    for (const Command* command : group.commands) text += line_of(*command);
  }
  text += list_line("  cm384 --version", "which build this is", kAfterUsage);
  text += studies_by_group(program);
  return fmt::format("{}\n{}", text, kEnd);
}

std::string usage_of_prefix(const Program& program, std::string_view prefix) {
  std::string text;
  for (const Command* command : commands_of(program)) {
    if (command->name.starts_with(prefix)) text += line_of(*command);
  }
  return text + "\nEach knows --help: its options and examples.\n";
}

std::string list_of_studies(const Program& program) {
  return fmt::format("cm384 run STUDY [options]; `cm384 run STUDY --help` lists a study's options:\n{}{}",
                     studies_by_group(program), examples_text("run"));
}

std::string help_text(const Command& command, std::span<const studies::OptionGroup> groups) {
  return fmt::format("{}\n{}{}", help_head(command.usage(), command.summary), studies::help_of(groups),
                     examples_text(command.name));
}

}  // namespace cm384::cli
