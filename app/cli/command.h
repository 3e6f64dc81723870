// One command of cm384, such as `trace cut`: what it takes, what it is for, and what runs it. Help, the
// manual page and shell completion are made from these declarations; commands.cpp lists them.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/frame/options.h"
#include "workloads/frame/study.h"
#include "workloads/frame/validation.h"

namespace cm384::cli {

using Arguments = std::vector<std::string>;

struct Command;
struct CommandGroup {
  std::string_view title;
  std::span<const Command* const> commands;
};

class StudyRun;

// What the program is made of.
struct Program {
  std::span<const CommandGroup> commands;  // as `cm384 --help` shows them
  std::span<const studies::Study> studies;
  std::span<const studies::Predictor> predictors{};
  std::span<const studies::StudyGroup> groups{};  // the studies as help shows them; none: in one group
  // Runs a study on the members of an ensemble (ensemble_run.h); none: this program runs a machine once.
  int (*on_ensemble)(const Program& program, StudyRun& run, const Arguments& arguments) = nullptr;
  Arguments arguments{};  // the whole command line, without the program's name
};

struct Command {
  std::string_view name;        // "trace cut"
  std::string_view arguments;   // of its usage: "IN OUT"; empty: none
  std::string_view summary;     // a few words
  std::string_view positional;  // the option that bare arguments fill; empty: none
  int most_positional;          // -1: any number
  // Its options with their defaults.
  std::vector<hw::Parameter> (*options)();
  // Takes what follows the name. Results go to standard output; returns an exit code. InputError and the like
  // go up.
  int (*run)(const Command& self, const Program& program, const Arguments& arguments);

  std::string usage() const {
    return fmt::format("cm384 {}{}{}", name, arguments.empty() ? "" : " ", arguments);
  }
};

// The options of a command that has none of its own.
struct NoOptions {
  template <class Self, class Visitor>
  static void describe(Self&, Visitor&&) {}
};

struct HelpOption {
  bool help = false;
  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("help", self.help, "this list", hw::Letter{'h'});
  }
};

// The help of a command: usage, summary, options.
std::string help_text(const Command& command, std::span<const studies::OptionGroup> groups);

namespace detail {

template <class Options>
std::vector<hw::Parameter> describe_command() {
  static Options options;
  return hw::list_parameters(options);
}

template <class Options, int (*Run)(const Program&, const Options&, const studies::Given&)>
int run_command(const Command& self, const Program& program, const Arguments& arguments) {
  Options options;
  HelpOption help;
  std::vector<studies::OptionGroup> groups{
      {fmt::format("options of `{}`", self.name), hw::list_parameters(options)}};
  for (const hw::Parameter& option : hw::list_parameters(help)) groups.front().options.push_back(option);
  const studies::Given given =
      studies::parse_options(groups, arguments, self.positional, self.most_positional);
  if (help.help) {
    Options defaults;
    groups.front().options = hw::list_parameters(defaults);
    fmt::print("{}", help_text(self, groups));
    return 0;
  }
  return Run(program, options, given);
}

}  // namespace detail

// A command whose options are a struct with describe().
template <class Options, int (*Run)(const Program&, const Options&, const studies::Given&)>
constexpr Command make_command(std::string_view name, std::string_view arguments, std::string_view summary,
                               std::string_view positional = "", int most_positional = 1) {
  return {name,
          arguments,
          summary,
          positional,
          most_positional,
          detail::describe_command<Options>,
          detail::run_command<Options, Run>};
}

}  // namespace cm384::cli
