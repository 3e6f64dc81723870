// A machine as text: TOML that can be read again, JSON, the reference page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text/parameter_list.h"
#include "base/text/quantity.h"
#include "hw/machine.h"

namespace cm384::hw {
namespace {

std::string toml_string(const std::string& text) {
  return nlohmann::json(text).dump();  // TOML's basic strings take JSON's escapes
}

std::string section_of(const std::string& key) {
  return key.substr(0, key.rfind('.'));
}

std::string name_of(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

std::vector<std::string> sections_of(const std::vector<Parameter>& parameters) {
  std::vector<std::string> sections;
  for (const Parameter& parameter : parameters) {
    const std::string section = section_of(parameter.key);
    if (std::ranges::find(sections, section) == sections.end()) sections.push_back(section);
  }
  return sections;
}

Provenance provenance_of(const Machine& machine, const std::string& key) {
  const auto entry = machine.provenance.find(key);
  return entry == machine.provenance.end() ? Provenance{} : entry->second;
}

std::string toml_value(const Parameter& parameter) {
  std::string text = value_text(parameter);
  // The text may be read again from another place.
  if (parameter.key == kTopologyFile && text != "none")
    text = std::filesystem::absolute(text).lexically_normal().string();
  if (is_quoted(parameter)) return toml_string(text);
  const bool real = std::holds_alternative<double*>(parameter.value);
  if (real && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// `, range = [..], why = ".."` of an entry; empty: nothing is stated.
std::string toml_plausible(const Parameter& parameter, const Plausible& plausible) {
  if (plausible.values.empty()) return "";
  std::string list;
  for (const std::string& value : plausible.values)
    list += (list.empty() ? "" : ", ") + (is_quoted(parameter) ? toml_string(value) : value);
  return fmt::format(", {} = [{}], why = {}", plausible.interval ? "range" : "values", list,
                     toml_string(plausible.reason));
}

// "30ns to 75ns: a measurement"
std::string plausible_text(const Plausible& plausible) {
  if (plausible.values.empty()) return "";
  return fmt::format("{}: {}", fmt::join(plausible.values, plausible.interval ? " to " : ", "),
                     plausible.reason);
}

std::vector<Parameter> in_section(const std::vector<Parameter>& parameters, const std::string& section) {
  std::vector<Parameter> found;
  for (const Parameter& parameter : parameters) {
    if (section_of(parameter.key) == section) found.push_back(parameter);
  }
  return found;
}

// True where another section inside the same one declares the same names with the same sentences.
bool is_one_of_several(const std::vector<Parameter>& parameters, const std::string& section) {
  if (section.find('.') == std::string::npos) return false;
  const std::vector<Parameter> own = in_section(parameters, section);
  const auto declares_the_same = [&](const std::string& other) {
    return other != section && section_of(other) == section_of(section) &&
           std::ranges::equal(own, in_section(parameters, other), [](const Parameter& a, const Parameter& b) {
             return name_of(a.key) == name_of(b.key) && a.sentence == b.sentence;
           });
  };
  return std::ranges::any_of(sections_of(parameters), declares_the_same);
}

// One text for the parameters of a row: what holds for all of them, or "head: A; slope: B" without empty
// ones.
std::string joined_texts(const std::vector<Parameter>& row, const auto& text_of) {
  std::vector<std::string> named;
  bool alike = true;
  for (const Parameter& parameter : row) {
    const std::string text = text_of(parameter);
    alike = alike && text == text_of(row.front());
    if (!text.empty()) named.push_back(name_of(parameter.key) + ": " + text);
  }
  return alike ? text_of(row.front()) : fmt::format("{}", fmt::join(named, "; "));
}

// Text inside a Markdown table cell.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

std::string to_toml(const Machine& machine) {
  Machine copy = machine;
  const std::vector<Parameter> parameters = list_parameters(copy);
  const Peaks peaks = peaks_of(machine);
  std::string text = fmt::format(
      "# Peaks of a die: links {} one way, HBM {}, {:.5g} TFLOPS BF16, {:.5g} TOPS INT8{}.\n"
      "{}{}description = {}\n",
      format(peaks.unified_bus), format(peaks.hbm), peaks.bf16_tflops, peaks.int8_tops,
      peaks.fp8_tflops > 0 ? fmt::format(", {:.5g} TFLOPS FP8", peaks.fp8_tflops) : "",
      machine.preset.empty() ? "" : fmt::format("base = {}\n", toml_string(machine.preset)),
      // A changed preset is one no longer: without a name of its own it goes by that of its file.
      !machine.preset.empty() && machine.name == machine.preset && !machine.overrides.empty()
          ? ""
          : fmt::format("name = {}\n", toml_string(machine.name)),
      toml_string(machine.description));
  for (const std::string& section : sections_of(parameters)) {
    text += fmt::format("\n[{}]\n", section);
    for (const Parameter& parameter : parameters) {
      if (section_of(parameter.key) != section) continue;
      const Provenance provenance = provenance_of(machine, parameter.key);
      text += fmt::format("{} = {{ value = {}, from = \"{}\", source = {}{} }}\n", name_of(parameter.key),
                          toml_value(parameter), to_string(provenance.from), toml_string(provenance.source),
                          toml_plausible(parameter, provenance.plausible));
    }
  }
  return text;
}

std::string to_json(const Machine& machine) {
  Machine copy = machine;
  nlohmann::ordered_json document = {{"name", machine.name}, {"description", machine.description}};
  const Peaks peaks = peaks_of(machine);
  document["peaks"] = {{"unified_bus", format(peaks.unified_bus)}, {"hbm", format(peaks.hbm)}};
  nlohmann::ordered_json& list = document["parameters"];
  for (const Parameter& parameter : list_parameters(copy)) {
    const Provenance provenance = provenance_of(machine, parameter.key);
    nlohmann::ordered_json value = value_text(parameter);
    if (!is_quoted(parameter)) value = nlohmann::ordered_json::parse(toml_value(parameter));
    list[parameter.key] = {{"value", value},
                           {"from", to_string(provenance.from)},
                           {"source", provenance.source},
                           {"allowed", allowed_text(parameter)},
                           {"what", parameter.sentence}};
    if (const Plausible& plausible = provenance.plausible; !plausible.values.empty())
      list[parameter.key][plausible.interval ? "range" : "values"] = plausible.values;
    if (!provenance.plausible.reason.empty()) list[parameter.key]["why"] = provenance.plausible.reason;
  }
  return document.dump(2) + "\n";
}

std::string reference_page(const Machine& machine) {
  Machine copy = machine;
  const std::vector<Parameter> parameters = list_parameters(copy);
  std::string text = fmt::format(
      "# Parameters of a machine\n\n"
      "Made by `cm384 machine reference`; values are those of the preset `{}`. Any parameter is changed by\n"
      "`--set section.key=value` or in a file that starts with `base = \"{}\"`. Where a value comes from:\n"
      "published (a document states it), derived (arithmetic or scaling, shown), calibrated (fitted to the "
      "figure\n"
      "named) or assumed. What is calibrated or assumed could as well have another value: `plausible` has "
      "the\n"
      "range and its reason ([uncertainty.md](uncertainty.md)).\n\n"
      "| key | value | allowed | what | from | source | plausible |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n",
      machine.name, machine.name);
  std::vector<std::vector<Parameter>> rows;
  for (const std::string& section : sections_of(parameters)) {
    const std::vector<Parameter> of_section = in_section(parameters, section);
    // Sections that declare the same, such as the timings of vector instructions, have a row each.
    if (is_one_of_several(parameters, section)) {
      rows.push_back(of_section);
    } else {
      for (const Parameter& parameter : of_section) rows.push_back({parameter});
    }
  }
  for (const std::vector<Parameter>& row : rows) {
    const auto joined = [&](auto&& text_of) { return cell(joined_texts(row, text_of)); };
    const auto provenance = [&](const Parameter& parameter) { return provenance_of(machine, parameter.key); };
    std::vector<std::string> keys, values;
    for (const Parameter& parameter : row) {
      keys.push_back("`" + parameter.key + "`");
      values.push_back(value_text(parameter));
    }
    text +=
        fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", fmt::join(keys, ", "), fmt::join(values, ", "),
                    joined(range_text), joined([](const Parameter& p) { return std::string(p.sentence); }),
                    joined([&](const Parameter& p) { return std::string(to_string(provenance(p).from)); }),
                    joined([&](const Parameter& p) { return provenance(p).source; }),
                    joined([&](const Parameter& p) { return plausible_text(provenance(p).plausible); }));
  }
  return text;
}

}  // namespace cm384::hw
