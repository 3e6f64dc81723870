#include "hw/machine_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/text/embedded_text.h"
#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/nearest_name.h"
#include "base/text/quantity.h"
#include "base/text/toml.h"
#include "base/text/toml_guard.h"
#include "hw/hbm_bandwidth.h"
#include "hw/parameter_list.h"
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

// One TOML text on its way into a machine.
class Layer {
 public:
  Layer(Machine& machine, std::string file, bool preset, int depth)
      : machine_(machine),
        parameters_(list_parameters(machine)),
        keys_(keys_of(parameters_)),
        file_(std::move(file)),
        preset_(preset),
        depth_(depth) {}

  void read(std::string_view text) {
    guard_toml(text, file_);
    toml::table root;
    try {
      root = toml::parse(text, file_);
    } catch (const toml::parse_error& error) {
      throw InputError(
          fmt::format("{}:{}: not valid TOML: {}", file_, error.source().begin.line, error.description()));
    }
    take_header(root);
    const Machine before = machine_;
    take_section(root, "");
    settle_hbm(machine_, before, given_);
  }

 private:
  [[noreturn]] void refuse(const toml::node& node, const std::string& key, const std::string& what) const {
    throw InputError(fmt::format("{}:{}: {}: {}", file_, node.source().begin.line, key, what));
  }

  // name, description and base, which stand before the sections.
  void take_header(toml::table& root) {
    if (const toml::node* base = root.get("base")) take_base(*base);
    machine_.name = std::filesystem::path(file_).stem().string();  // not that of the base
    for (const char* key : {"name", "description"}) {
      const toml::node* node = root.get(key);
      if (node == nullptr) continue;
      if (!node->is_string()) refuse(*node, key, "is no string; allowed: a string");
      (std::string_view(key) == "name" ? machine_.name : machine_.description) = node->as_string()->get();
      root.erase(key);
    }
    root.erase("base");
  }

  void take_base(const toml::node& node) {
    if (!node.is_string()) refuse(node, "base", "is no string; allowed: a preset or a file");
    if (depth_ == kDeepestBase) {
      refuse(node, "base", fmt::format("more than {} files stand on each other; is it a circle?", depth_));
    }
    std::string base = node.as_string()->get();
    if (const EmbeddedText* preset = find_preset(base)) {
      read_preset(machine_, *preset, depth_ + 1);
      return;
    }
    if (!is_path(base)) refuse(node, "base", unknown_machine(base));
    const std::filesystem::path beside = std::filesystem::path(file_).parent_path() / base;
    read_user_file(machine_, beside.string(), depth_ + 1);
  }

  void take_section(const toml::table& table, const std::string& prefix) {
    for (const auto& [name, node] : table) {
      const std::string key = prefix + std::string(name.str());
      const auto parameter = std::ranges::find(keys_, key);
      if (parameter != keys_.end()) {
        take_value(parameters_[static_cast<std::size_t>(parameter - keys_.begin())], node);
      } else if (is_section(key)) {
        if (!node.is_table())
          refuse(node, key, fmt::format("is a section; allowed: [{}] and keys in it", key));
        take_section(*node.as_table(), key + ".");
      } else {
        refuse(
            node, key,
            "no such parameter" + unknown_key(key, node.is_table() && !is_entry(node) ? sections() : keys_));
      }
    }
  }

  static bool is_entry(const toml::node& node) {
    return node.is_table() && node.as_table()->contains("value");
  }

  bool is_section(const std::string& key) const {
    return std::ranges::any_of(keys_, [&](const std::string& k) { return k.starts_with(key + "."); });
  }

  std::vector<std::string> sections() const {
    std::vector<std::string> names;
    for (const std::string& key : keys_) {
      const std::string section = key.substr(0, key.rfind('.'));
      if (std::ranges::find(names, section) == names.end()) names.push_back(section);
    }
    return names;
  }

  void take_value(const Parameter& parameter, const toml::node& node) {
    const toml::table* entry = node.as_table();
    const toml::node* value = &node;
    Provenance provenance{Origin::user_file, fmt::format("{}:{}", file_, node.source().begin.line)};
    if (entry != nullptr) {
      value = entry->get("value");
      if (value == nullptr) refuse(node, parameter.key, "has no `value`; allowed: { value, from, source }");
      provenance = take_provenance(parameter, *entry, provenance);
    } else if (preset_) {
      refuse(node, parameter.key, "a preset's value needs { value, from, source }");
    }
    const std::string before = value_text(parameter);
    try {
      assign(parameter, from_here(parameter.key, text_of(parameter, *value)));
    } catch (const InputError& error) {
      refuse(*value, parameter.key, error.what());
    }
    if (!provenance.plausible.values.empty()) check_plausible(parameter, provenance.plausible, node);
    // A value that was changed beside a source that was not: the source is of the value before.
    const auto known = machine_.provenance.find(parameter.key);
    if (!preset_ && known != machine_.provenance.end() && known->second.from == provenance.from &&
        known->second.source == provenance.source && value_text(parameter) != before)
      provenance = {Origin::user_file, fmt::format("{}:{}", file_, node.source().begin.line)};
    machine_.provenance[parameter.key] = provenance;
    given_.insert(parameter.key);
  }

  Provenance take_provenance(const Parameter& parameter, const toml::table& entry,
                             Provenance provenance) const {
    const std::string& key = parameter.key;
    for (const auto& [name, node] : entry) {
      const std::string field = key + "." + std::string(name.str());
      if (name == "value") continue;
      if (name == "range" || name == "values") {
        take_plausible(parameter, node, field, provenance.plausible);
        provenance.plausible.interval = name == "range";
        continue;
      }
      if (name != "from" && name != "source" && name != "why")
        refuse(node, field, "no such field; allowed: value, from, source, range or values, why");
      if (!node.is_string()) refuse(node, field, "is no string; allowed: a string");
      const std::string& text = node.as_string()->get();
      if (name == "source") {
        provenance.source = text;
      } else if (name == "why") {
        provenance.plausible.reason = text;
      } else {
        provenance.from = origin_of(text, node, field);
      }
    }
    const bool complete = entry.contains("from") && entry.contains("source") && !provenance.source.empty();
    if (!complete && (preset_ || entry.contains("from"))) {
      refuse(entry, key, "says not where it comes from; allowed: { value, from, source }, none empty");
    }
    if (entry.contains("range") && entry.contains("values"))
      refuse(entry, key, "has both `range` and `values`; allowed: one of them");
    if (provenance.plausible.values.empty() != provenance.plausible.reason.empty())
      refuse(entry, key,
             "has a range without a reason, or the reverse; allowed: `range` or `values`, and `why`");
    return provenance;
  }

  void take_plausible(const Parameter& parameter, const toml::node& node, const std::string& field,
                      Plausible& plausible) const {
    const toml::array* list = node.as_array();
    if (list == nullptr || list->empty()) refuse(node, field, "is no list; allowed: a list of values");
    for (const toml::node& value : *list) {
      try {
        plausible.values.push_back(text_of(parameter, value));
      } catch (const InputError& error) {
        refuse(value, field, error.what());
      }
    }
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
    return (std::filesystem::path(file_).parent_path() / text).lexically_normal().string();
  }

  // The TOML value as text that assign() takes; refuses the wrong TOML type.
  static std::string text_of(const Parameter& parameter, const toml::node& node) {
    const auto wrong = [&](std::string_view what) {
      return InputError(fmt::format("{}; allowed: {}", what, allowed_text(parameter)));
    };
    const bool text = std::holds_alternative<std::string*>(parameter.value);
    if (node.is_string()) {
      const std::string& found = node.as_string()->get();
      if (!is_quoted(parameter)) throw wrong(fmt::format("\"{}\" is a string", found));
      return found;
    }
    if (text) throw wrong("is no string");
    if (node.is_integer()) return std::to_string(node.as_integer()->get());
    if (node.is_floating_point()) {
      const std::string found = format(node.as_floating_point()->get());
      if (!is_quoted(parameter) && !std::holds_alternative<double*>(parameter.value)) {
        throw wrong(fmt::format("{} is no whole number",
                                found.find('.') == std::string::npos ? found + ".0" : found));
      }
      return found;
    }
    if (node.is_boolean()) {
      const std::string found = node.as_boolean()->get() ? "true" : "false";
      if (!std::holds_alternative<bool*>(parameter.value)) throw wrong(found + " is of the wrong kind");
      return found;
    }
    throw wrong("a list, table or date is of the wrong kind");
  }

 public:
  static std::string unknown_machine(const std::string& name) {
    return fmt::format(
        "'{}' is no preset{}; allowed: {}, or a file (with '/' or ending in .toml), or a case folder of "
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
  std::vector<Parameter> parameters_;
  std::vector<std::string> keys_;
  std::set<std::string, std::less<>> given_;
  std::string file_;
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
