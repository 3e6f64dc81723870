// What is made from the declarations of commands, studies and their fields: the schema of result.json, shell
// completion, the manual page.
#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/examples.h"
#include "app/cli/exit_code.h"
#include "app/cli/study_run.h"
#include "workloads/frame/schema.h"

namespace cm384::cli {
namespace {

int schema(const Program& program, const NoOptions&, const studies::Given&) {
  fmt::print("{}\n", studies::result_schema(program.studies).dump(2));
  return kDone;
}

// Words that may follow an option: its names, or nothing that is known.
std::string values_of(const hw::Parameter& option) {
  return fmt::format("{}", fmt::join(option.names, " "));
}

struct Completed {
  std::string path;  // "trace cut", "run dispatch"
  std::vector<hw::Parameter> options;
};

std::vector<Completed> all_completed(const Program& program) {
  std::vector<Completed> all;
  for (const Command* command : commands_of(program)) {
    if (command == &kRunCommand) continue;
    all.push_back({std::string(command->name), command->options()});
  }
  for (const studies::Study& study : program.studies) {
    const StudyCommandLine line(study);
    Completed made{fmt::format("run {}", study.name), {}};
    for (const studies::OptionGroup& group : line.groups)
      made.options.insert(made.options.end(), group.options.begin(), group.options.end());
    all.push_back(std::move(made));
  }
  return all;
}

constexpr std::string_view kBashEnd = R"(
_cm384() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path= k
  for ((k = 1; k < COMP_CWORD; ++k)); do
    local longer="${path:+$path }${COMP_WORDS[k]}"
    [[ -n ${_cm384_next[$longer]+x} || -n ${_cm384_options[$longer]+x} ]] || break
    path=$longer
  done
  if [[ $before == --* && -n ${_cm384_values[$path $before]} ]]; then
    COMPREPLY=($(compgen -W "${_cm384_values[$path $before]}" -- "$word"))
  elif [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "${_cm384_options[$path]}" -- "$word"))
  elif [[ -n ${_cm384_next[${path:-.}]} ]]; then
    COMPREPLY=($(compgen -W "${_cm384_next[${path:-.}]}" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _cm384 cm384
)";

int completion(const Program& program, const NoOptions&, const studies::Given&) {
  std::map<std::string, std::vector<std::string>> next;
  const auto add = [&next](const std::string& path) {
    std::string before = ".";
    for (std::size_t at = 0; at <= path.size();) {
      const std::size_t blank = std::min(path.find(' ', at), path.size());
      auto& words = next[before];
      const std::string word = path.substr(at, blank - at);
      if (std::ranges::find(words, word) == words.end()) words.push_back(word);
      before = path.substr(0, blank);
      at = blank + 1;
    }
  };
  fmt::print("# Completion of cm384 for bash: source <(cm384 completion)\n");
  fmt::print("declare -gA _cm384_next _cm384_options _cm384_values\n");
  for (const Completed& one : all_completed(program)) {
    add(one.path);
    std::string names;
    for (const hw::Parameter& option : one.options) {
      names += fmt::format("{}--{}", names.empty() ? "" : " ", option.key);
      if (!option.names.empty())
        fmt::print("_cm384_values['{} --{}']='{}'\n", one.path, option.key, values_of(option));
    }
    fmt::print("_cm384_options['{}']='{}'\n", one.path, names);
  }
  for (const auto& [path, words] : next) fmt::print("_cm384_next['{}']='{}'\n", path, fmt::join(words, " "));
  fmt::print("{}", kBashEnd);
  return kDone;
}

// Text in a manual page: what begins a request or an escape does not; a line may end after a |.
std::string roff(std::string_view text) {
  std::string made;
  for (const char c : text) {
    if (c == '\\') {
      made += "\\e";
    } else if (c == '-') {
      made += "\\-";
    } else if (c == '|' || c == ',') {
      made += fmt::format("{}\\:", c);  // a line may end here
    } else if ((c == '.' || c == '\'') && made.empty()) {
      made += fmt::format("\\&{}", c);
    } else {
      made += c;
    }
  }
  return made;
}

void print_options(const std::vector<hw::Parameter>& options) {
  for (const hw::Parameter& option : options) {
    const std::string value = studies::value_name(option), fallback = hw::value_text(option);
    fmt::print(".TP\n\\fB\\-\\-{}\\fR{}{}\n{}{}\n", roff(option.key), value.empty() ? "" : " ", roff(value),
               roff(option.sentence),
               fallback.empty() || value.empty() ? "" : roff(fmt::format(" (default: {})", fallback)));
  }
}

void print_examples(std::string_view of) {
  for (const Examples& examples : all_examples()) {
    if (examples.of != of) continue;
    for (const Example& example : examples.list)
      fmt::print(".PP\n\\fB{}\\fR\n.br\n{}\n", roff(example.command), roff(example.what));
  }
}

int manual(const Program& program, const NoOptions&, const studies::Given&) {
  fmt::print(
      ".TH CM384 1\n.ad l\n.SH NAME\ncm384 \\- emulator of the CloudMatrix384 supernode\n.SH SYNOPSIS\n");
  for (const Command* command : commands_of(program))
    fmt::print("{}\n.br\n", roff(fmt::format("{} [options]", command->usage())));
  fmt::print(
      ".SH DESCRIPTION\nFirmware compiled for RISC-V runs on models of the machine's cores; the time it "
      "takes is read "
      "off the simulated clock. Results go to standard output, progress to standard error.\n.SH COMMANDS\n");
  for (const Command* command : commands_of(program)) {
    if (command == &kRunCommand) continue;
    fmt::print(".SS {}\n{}\n", roff(command->usage()), roff(command->summary));
    print_options(command->options());
    print_examples(command->name);
  }
  fmt::print(".SH STUDIES\n");
  for (const studies::Study& study : program.studies) {
    const StudyCommandLine line(study);
    fmt::print(".SS {}\n{}\n", roff(fmt::format("cm384 run {}", study.name)), roff(study.summary));
    print_options(line.groups.front().options);
    print_examples(fmt::format("run {}", study.name));
  }
  fmt::print(".SS {}\n", roff("Options of every run"));
  const StudyCommandLine line(program.studies.front());
  print_options(line.groups.back().options);
  fmt::print(
      ".SH EXIT STATUS\n0: done. 1: a check failed. 2: bad input. 3: the simulated machine hung or faulted. "
      "4: an "
      "internal error. 5: an output could not be written. 130: interrupted.\n");
  return kDone;
}

}  // namespace

constinit const Command kSchemaCommand =
    make_command<NoOptions, schema>("schema", "", "the JSON schema of result.json");
constinit const Command kCompletionCommand =
    make_command<NoOptions, completion>("completion", "", "completion for bash: source <(cm384 completion)");
constinit const Command kManualCommand =
    make_command<NoOptions, manual>("manual", "", "the manual page, as roff");

}  // namespace cm384::cli
