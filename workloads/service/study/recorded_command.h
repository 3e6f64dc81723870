// The options that a point of a library was measured with, out of the command beside it.
#pragma once

#include <fmt/format.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/error.h"
#include "workloads/frame/options.h"

namespace cm384::studies {

// Options of every run; a recorded command may have them.
struct OptionsOfEveryRun {
  std::int64_t seed = 1;
  int threads = 0;
  std::string machine;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("seed", self.seed, Range{std::int64_t{0}, std::numeric_limits<std::int64_t>::max()}, "of the run");
    visit("threads", self.threads, Range{0, 4096}, "of the host");
    visit("machine", self.machine, Form{"PRESET|FILE"}, "the machine");
  }
};

// Throws InputError for a command that is not `cm384 run STUDY`. `what` the point is, for people.
template <class Options>
Options options_of_command(const std::string& command, std::string_view study, std::string_view option,
                           std::string_view what) {
  const std::vector<std::string> words = shell_words(command);
  if (words.size() < 3 || words[0] != "cm384" || words[1] != "run" || words[2] != study)
    throw InputError(fmt::format("--{}: '{}' beside a {} of the library is not a `cm384 run {}`", option,
                                 command, what, study));
  Options options;
  OptionsOfEveryRun others;
  const std::vector<OptionGroup> groups{{"", hw::list_parameters(options)},
                                        {"", hw::list_parameters(others)}};
  options.follow(parse_options(groups, {words.begin() + 3, words.end()}));
  return options;
}

}  // namespace cm384::studies
