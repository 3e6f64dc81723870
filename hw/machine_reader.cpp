#include "hw/machine_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/text/embedded_text.h"
#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/nearest_name.h"
#include "base/text/toml_file.h"
#include "hw/hbm_bandwidth.h"
#include "hw/topology_files.h"

namespace cm384::hw {
namespace {

constexpr std::array kOrigins = {Origin::published, Origin::derived,   Origin::calibrated,
                                 Origin::assumed,   Origin::user_file, Origin::command_line};
constexpr std::size_t kPresetOrigins = 4;  // what a preset may say
constexpr int kDeepestBase = 8;
constexpr std::size_t kLargestFile = std::size_t{1} << 20;

const EmbeddedText* find_preset(std::string_view name) {
  for (const EmbeddedText& preset : embedded_presets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

bool is_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".toml");
}

std::string read_file(const std::string& path) {
  std::error_code none;
  if (std::filesystem::status(path, none).type() == std::filesystem::file_type::not_found)
    throw InputError(fmt::format("{}: no such machine file", path));
  return read_input(path, kLargestFile);
}

// What stands before the sections of a machine's file.
struct Header {
  std::string base, name, description;
  TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("base", self.base, Form{"a preset or a file"}, "that this one stands on");
    visit("name", self.name, "of the machine");
    visit("description", self.description, "one line");
  }
};

// One TOML text on its way into a machine.
class Layer {
 public:
  Layer(Machine& machine, std::string file, bool preset, int depth)
      : machine_(machine), name_(std::move(file)), preset_(preset), depth_(depth) {}

  void read(std::string_view text) {
    const TomlFile file(text, name_);
    file_ = &file;
    take_header();
    const Machine before = machine_;
    file.read(
        machine_,
        {.take = [this](const Parameter& parameter, const toml::node& node) { take_value(parameter, node); },
         .unknown = [](std::string_view key,
                       const std::vector<std::string>& known) { return unknown_key(key, known); },
         .besides = {"base", "name", "description"}});
    settle_hbm(machine_, before, given_);
    settle_core_ports(machine_, given_);
  }

 private:
  [[noreturn]] void refuse(const toml::node& node, const std::string& key, const std::string& what) const {
    file_->refuse(node, key, what);
  }

  void take_header() {
    Header header;
    file_->read(header, {.others = true});
    if (header.place.has("base")) take_base(header);
    machine_.name = header.place.has("name")
                        ? header.name
                        : std::filesystem::path(name_).stem().string();  // not that of the base
    if (header.place.has("description")) machine_.description = header.description;
  }

  void take_base(const Header& header) {
    if (depth_ == kDeepestBase)
      header.place.refuse("base",
                          fmt::format("more than {} files build on each other; is there a cycle?", depth_));
    if (const EmbeddedText* preset = find_preset(header.base)) {
      read_preset(machine_, *preset, depth_ + 1);
      return;
    }
    if (!is_path(header.base)) header.place.refuse("base", unknown_machine(header.base));
    const std::filesystem::path beside = std::filesystem::path(name_).parent_path() / header.base;
    read_user_file(machine_, beside.string(), depth_ + 1);
  }

  void take_value(const Parameter& parameter, const toml::node& node) {
    const TomlEntry entry = file_->entry_of(parameter.key, node, preset_, {"range", "values", "why"});
    const Provenance own{Origin::user_file, file_->place_of(node)};
    Provenance provenance = entry.table == nullptr ? own : provenance_of(parameter, entry);
    const std::string before = value_text(parameter);
    const std::string text = from_here(parameter.key, file_->text_of(parameter, *entry.value));
    try {
      assign(parameter, text);
    } catch (const InputError& error) {
      refuse(*entry.value, parameter.key, error.what());
    }
    if (!provenance.plausible.values.empty()) check_plausible(parameter, provenance.plausible, node);
    // A value that was changed beside a source that was not: the source is of the value before.
    const auto known = machine_.provenance.find(parameter.key);
    if (!preset_ && known != machine_.provenance.end() && known->second.from == provenance.from &&
        known->second.source == provenance.source && value_text(parameter) != before)
      provenance = own;
    machine_.provenance[parameter.key] = provenance;
    given_.insert(parameter.key);
  }

  Provenance provenance_of(const Parameter& parameter, const TomlEntry& entry) const {
    const toml::table& table = *entry.table;
    Provenance provenance{Origin::user_file, entry.source};
    if (!entry.from.empty())
      provenance.from = origin_of(entry.from, *table.get("from"), parameter.key + ".from");
    if (table.contains("range") && table.contains("values"))
      refuse(table, parameter.key, "has both `range` and `values`; allowed: one of them");
    provenance.plausible.interval = table.contains("range");
    for (const char* name : {"range", "values"}) {
      if (const toml::node* node = table.get(name))
        take_plausible(parameter, *node, name, provenance.plausible);
    }
    if (const toml::node* why = table.get("why")) {
      if (!why->is_string()) refuse(*why, parameter.key + ".why", "is not a string; allowed: a string");
      provenance.plausible.reason = why->as_string()->get();
    }
    if (provenance.plausible.values.empty() != provenance.plausible.reason.empty())
      refuse(table, parameter.key,
             "has a range without a reason, or the reverse; allowed: `range` or `values`, and `why`");
    return provenance;
  }

  void take_plausible(const Parameter& parameter, const toml::node& node, std::string_view name,
                      Plausible& plausible) const {
    Parameter field = parameter;
    field.key += fmt::format(".{}", name);
    const toml::array* list = node.as_array();
    if (list == nullptr || list->empty()) refuse(node, field.key, "is not a list; allowed: a list of values");
    for (const toml::node& value : *list) plausible.values.push_back(file_->text_of(field, value));
  }

  // Each of them is a legal value, and the parameter's own is among them. Leaves the parameter as it was.
  void check_plausible(const Parameter& parameter, Plausible& plausible, const toml::node& node) const {
    const std::string own = value_text(parameter);
    std::vector<double> numbers;
    for (std::string& text : plausible.values) {
      try {
        assign(parameter, text);
      } catch (const InputError& error) {
        refuse(node, parameter.key, fmt::format("plausible value {}", error.what()));
      }
      text = value_text(parameter);
      numbers.push_back(number_of(parameter).value_or(0));
    }
    assign(parameter, own);
    if (!plausible.interval) {
      if (std::ranges::find(plausible.values, own) != plausible.values.end()) return;
      refuse(node, parameter.key, fmt::format("{} is not among `values`", own));
    }
    const auto number = number_of(parameter);
    if (!number || numbers.size() != 2 || numbers[0] >= numbers[1])
      refuse(node, parameter.key, "`range` does not fit; allowed: [low, high] of a number or quantity");
    if (*number < numbers[0] || *number > numbers[1])
      refuse(
          node, parameter.key,
          fmt::format("{} is outside its `range`, {} to {}", own, plausible.values[0], plausible.values[1]));
  }

  Origin origin_of(const std::string& text, const toml::node& node, const std::string& field) const {
    const std::size_t count = preset_ ? kPresetOrigins : kOrigins.size();
    std::string names;
    for (std::size_t i = 0; i < count; ++i) {
      if (to_string(kOrigins[i]) == text) return kOrigins[i];
      names += fmt::format("{}{}", i == 0 ? "" : ", ", to_string(kOrigins[i]));
    }
    refuse(node, field, fmt::format("'{}' is unknown; allowed: {}", text, names));
  }

  // A path that does not start at the root starts where the file is.
  std::string from_here(std::string_view key, std::string text) const {
    if (key != kTopologyFile || preset_ || text == "none") return text;
    return (std::filesystem::path(name_).parent_path() / text).lexically_normal().string();
  }

 public:
  static std::string unknown_machine(const std::string& name) {
    return fmt::format(
        "'{}' is not a preset{}; allowed: {}, or a file (with '/' or ending in .toml), or a case folder of "
        "ns-3-UB",
        name, suggestion(name, preset_names()), fmt::join(preset_names(), ", "));
  }

  static void read_preset(Machine& machine, const EmbeddedText& preset, int depth) {
    Layer(machine, std::string(preset.name) + ".toml", true, depth).read(preset.text);
    machine.preset = preset.name;
  }

  static void read_user_text(Machine& machine, std::string_view text, const std::string& file, int depth) {
    Layer(machine, file, false, depth).read(text);
    machine.files.push_back(file);
  }

  // As a file in the folder would; it is none that results could name.
  static void read_case(Machine& machine, const std::string& folder) {
    Layer(machine, folder + "node.csv", false, 0).read(machine_of_case(folder));
    machine.name = std::filesystem::absolute(folder).lexically_normal().parent_path().filename().string();
  }

  static void read_user_file(Machine& machine, const std::string& path, int depth) {
    read_user_text(machine, read_file(path), path, depth);
  }

 private:
  Machine& machine_;
  std::set<std::string, std::less<>> given_;
  std::string name_;
  const TomlFile* file_ = nullptr;  // while it is read
  bool preset_;
  int depth_;
};

}  // namespace

std::string unknown_key(std::string_view key, std::span<const std::string> known) {
  struct Former {
    std::string_view key, now;
  };
  constexpr std::string_view kPeak =
      "is derived: 2 x die.aic x die.clock x cube_core.macs_per_cycle of the type; set one of these";
  constexpr Former kFormer[] = {{"die.peak_bf16_tflops", kPeak},
                                {"die.peak_int8_tops", kPeak},
                                {"cube_core.mmad_f32_passes", "is now cube_core.macs_per_cycle.fp32"}};
  for (const Former& former : kFormer) {
    if (former.key == key) return fmt::format(" any more: it {}", former.now);
  }
  return suggestion(key, known);
}

Machine read_layers(const std::string& preset_or_path) {
  Machine machine;
  if (const EmbeddedText* preset = find_preset(preset_or_path)) {
    Layer::read_preset(machine, *preset, 0);
  } else if (is_topology_folder(preset_or_path)) {
    const std::filesystem::path folder = std::filesystem::path(preset_or_path) / "";
    Layer::read_case(machine, folder.string());
  } else if (is_path(preset_or_path)) {
    Layer::read_user_file(machine, preset_or_path, 0);
  } else {
    throw InputError(fmt::format("machine {}", Layer::unknown_machine(preset_or_path)));
  }
  return machine;
}

Machine read_layers_of_text(std::string_view text, const std::string& name) {
  Machine machine;
  Layer::read_user_text(machine, text, name, 0);
  return machine;
}

}  // namespace cm384::hw
