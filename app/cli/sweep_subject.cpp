#include "app/cli/sweep_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text/content_hash.h"
#include "base/text/error.h"
#include "base/text/installation.h"
#include "base/text/nearest_name.h"
#include "system/machine/inventory.h"
#include "system/machine/prices.h"
#include "system/machine/rtl_chips.h"
#include "workloads/frame/result_json.h"

namespace cm384::cli {
namespace {

namespace fs = std::filesystem;
using runs::Setting;

// Options of every run that a sweep may set; the others say where outputs go, and watch a single run.
constexpr std::array<std::string_view, 3> kOfEveryRun{"machine", "seed", "threads"};

constexpr std::string_view kChipsOfAKind = "count.chips_";

bool of_the_machine(const std::string& key) {
  return key.find('.') != std::string::npos;
}

std::vector<hw::Parameter> options_of(StudyCommandLine& line) {
  std::vector<hw::Parameter> options = line.groups.front().options;
  for (const hw::Parameter& option : line.groups.back().options) {
    if (std::ranges::find(kOfEveryRun, option.key) != kOfEveryRun.end()) options.push_back(option);
  }
  return options;
}

// By its name, or the one that it had before.
std::vector<hw::Parameter>::const_iterator find_named(const std::vector<hw::Parameter>& known,
                                                      const std::string& key) {
  return std::ranges::find_if(known,
                              [&](const hw::Parameter& one) { return one.key == key || one.alias == key; });
}

// What in an option's text may be a file: all of it, or what follows a word and a mark (`trace:FILE`,
// `l1:0.0=LIBRARY`, `plane=0,l1=0,library=LIBRARY`). What is none by this name is no file.
std::vector<std::string> paths_in(const std::string& text) {
  std::vector<std::string> paths{text};
  for (std::size_t at = text.find_first_of(":=,"); at != std::string::npos;
       at = text.find_first_of(":=,", at + 1))
    paths.push_back(text.substr(at + 1));
  return paths;
}

}  // namespace

// What a run with some settings would be.
struct StudySubject::Effective {
  std::vector<Setting> settings;
  std::unique_ptr<StudyCommandLine> line;
  hw::Machine machine;

  // Every option, every parameter, the content of every file.
  Json inputs() {
    Json files = Json::object(), parameters = Json::object();
    const auto add_file = [&](const std::string& path) {
      if (fs::is_regular_file(path)) files[path] = hash_of_file(path);
    };
    const auto add_files_of = [&](const std::string& text) {
      for (const std::string& path : paths_in(text)) add_file(path);
    };
    for (const hw::Parameter& option : line->groups.front().options) {
      if (const auto* text = std::get_if<std::string*>(&option.value)) add_files_of(**text);
      if (const auto* texts = std::get_if<hw::Texts*>(&option.value))
        std::ranges::for_each(**texts, add_files_of);
    }
    const studies::Row options = studies::effective_options(line->groups.front().options);
    for (const std::string& path : line->own->inputs()) add_file(path);
    for (const std::string& path : machine.files) add_file(path);
    for (const hw::Parameter& parameter : hw::list_parameters(machine))
      parameters[parameter.key] = hw::value_text(parameter);
    return {{"study", line->study.name},      {"options", studies::to_json(options)},
            {"seed", line->run.seed.value()}, {"machine", machine.name},
            {"parameters", parameters},       {"files", files}};
  }
};

StudySubject::StudySubject(std::span<const studies::Study> all, int threads)
    : all_(all), threads_(threads), machine_(hw::load_machine(std::string(hw::kDefaultMachine))) {}
StudySubject::~StudySubject() = default;

void StudySubject::choose(const std::string& study) {
  study_ = &find_study(all_, study);
  effective_.reset();
}

std::span<const studies::Field> StudySubject::fields() const {
  return study_->fields;
}

sweeps::Scale StudySubject::scale(const std::string& key) {
  StudyCommandLine line(*study_);
  const std::vector<hw::Parameter> known =
      of_the_machine(key) ? hw::list_parameters(machine_) : options_of(line);
  const auto found = find_named(known, key);
  if (found != known.end()) return sweeps::Scale(*found);
  throw InputError(fmt::format("'{}': no such {}{}", key,
                               of_the_machine(key)
                                   ? "parameter of the machine"
                                   : fmt::format("option of `run {}` for a sweep", study_->name),
                               hw::suggestion(key, hw::keys_of(known))));
}

sweeps::Scale StudySubject::name_scale(const std::string& name) {
  if (name.starts_with(supernode::kPricePrefix)) {
    supernode::price_named(machine_, name);
    return sweeps::Scale::real();
  }
  if (!name.starts_with(supernode::kCountPrefix)) return scale(name);
  // Kinds of chips differ from topology to topology: each point's own machine says which it has.
  if (!name.starts_with(kChipsOfAKind)) supernode::counted(machine_, name);
  return sweeps::Scale();
}

std::vector<std::string> StudySubject::arguments(const std::vector<Setting>& settings) {
  std::vector<std::string> words{std::string(study_->name)};
  // A sweep over kinds of topology has parameters that not all of them read.
  const bool names_kind = std::ranges::find(settings, "topology.kind", &Setting::first) != settings.end();
  for (const auto& [key, value] : settings) {
    const bool where_used = names_kind && key.starts_with("topology.");
    words.push_back(of_the_machine(key)
                        ? fmt::format("--{}={}={}", where_used ? "set-where-used" : "set", key, value)
                        : fmt::format("--{}={}", key, value));
  }
  if (std::ranges::find(settings, "threads", &Setting::first) == settings.end())
    words.push_back(fmt::format("--threads={}", threads_));
  return words;
}

const StudySubject::Effective& StudySubject::effective(const std::vector<Setting>& settings) {
  if (effective_ && effective_->settings == settings) return *effective_;
  auto fresh = std::make_unique<Effective>();
  fresh->settings = settings;
  fresh->line = std::make_unique<StudyCommandLine>(*study_);
  const Arguments words = arguments(settings);
  fresh->line->own->follow(studies::parse_options(
      fresh->line->groups, Arguments(words.begin() + 1, words.end()), study_->positional));
  fresh->line->run.settle();
  fresh->machine = fresh->line->run.machine.load();
  fresh->line->own->settle(fresh->machine);
  effective_ = std::move(fresh);
  return *effective_;
}

std::string StudySubject::value(const std::vector<Setting>& settings, const std::string& key) {
  const Effective& run = effective(settings);
  if (key.starts_with(supernode::kCountPrefix)) return std::to_string(supernode::counted(run.machine, key));
  if (key.starts_with(supernode::kPricePrefix))
    return fmt::format("{}", supernode::price_named(run.machine, key));
  if (of_the_machine(key)) return hw::value_of(run.machine, key);
  const std::vector<hw::Parameter> known = options_of(*run.line);
  if (const auto option = find_named(known, key); option != known.end()) return hw::value_text(*option);
  throw InputError(fmt::format("'{}': no such option", key));
}

std::string StudySubject::identity(const std::vector<Setting>& settings) {
  if (program_.empty()) program_ = hash_of_file("/proc/self/exe");
  effective(settings);
  Json inputs = effective_->inputs();
  inputs["program"] = program_;
  for (const std::string& chip : effective_->line->fabric.rtl) {
    if (!supernode::parse_rtl_chip(chip).library.empty()) continue;
    if (const auto chips = find_installed("lib/cm384/libcm384_rtl.so")) inputs["rtl"] = hash_of_file(*chips);
  }
  return hash_of(inputs.dump());
}

}  // namespace cm384::cli
