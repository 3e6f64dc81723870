#include "app/cli/kernel_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "app/cli/kernel_project.h"
#include "base/text/error.h"
#include "base/text/nearest_name.h"

namespace cm384::cli {
namespace {

constexpr std::size_t kMostValues = 65536;  // of a range

struct Call {
  std::string name;
  std::vector<std::string> arguments;
};
std::optional<Call> as_call(const std::string& text) {
  const std::size_t open = text.find('(');
  if (open == std::string::npos || open == 0 || behind_bracket(text, open) != text.size())
    return std::nullopt;
  std::string name = text.substr(0, text.find_last_not_of(" \t\n", open - 1) + 1);
  if (name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789abcdefghijklmnopqrstuvwxyz") !=
      std::string::npos)
    return std::nullopt;
  return Call{std::move(name),
              split_arguments(std::string_view(text).substr(open + 1, text.size() - open - 2))};
}
// All calls of this name at the outside.
std::vector<Call> calls_of(std::string_view text, std::string_view name) {
  std::vector<Call> found;
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string_view::npos; at += name.size()) {
    const std::size_t open = text.find_first_not_of(" \t\n", at + name.size());
    if (open == std::string_view::npos || text[open] != '(') continue;
    const std::size_t behind = behind_bracket(text, open);
    if (behind == std::string_view::npos) continue;
    found.push_back({std::string(name), split_arguments(text.substr(open + 1, behind - open - 2))});
  }
  return found;
}

std::optional<long long> number(std::string_view text) {
  while (!text.empty() &&
         (text.back() == 'u' || text.back() == 'U' || text.back() == 'l' || text.back() == 'L'))
    text.remove_suffix(1);
  while (text.size() > 2 && text.front() == '(' && text.back() == ')') text = text.substr(1, text.size() - 2);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  }
  long long value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}
// Values that say the same are the same text.
std::string plain_value(const std::string& value) {
  if (value == "true") return "1";
  if (value == "false") return "0";
  const auto is = number(value);
  return is ? fmt::format("{}", *is) : value;
}

// Of a list of a kind: single values, pairs of ends, or pairs and then single values.
std::vector<std::string> unsigned_values(const std::string& kind, const std::vector<std::string>& list,
                                         std::size_t first) {
  std::vector<std::string> values;
  std::size_t at = first;
  if (kind != "ASCENDC_TPL_UI_LIST" && at < list.size()) {
    const long long pairs = number(list[at++]).value_or(0);
    for (long long n = 0; n < pairs && at + 1 < list.size(); ++n, at += 2) {
      const auto low = number(list[at]), high = number(list[at + 1]);
      for (long long v = low.value_or(1); v <= high.value_or(0) && values.size() < kMostValues; ++v)
        values.push_back(fmt::format("{}", v));
    }
    if (kind == "ASCENDC_TPL_UI_RANGE") return values;
  }
  for (; at < list.size(); ++at) {
    if (!list[at].empty()) values.push_back(plain_value(list[at]));
  }
  return values;
}

std::optional<TemplateSets::Parameter> parameter_of(const Call& call, bool declares) {
  const std::string_view ending = declares ? "_DECL" : "_SEL";
  constexpr std::string_view start = "ASCENDC_TPL_";
  if (!call.name.starts_with(start) || !call.name.ends_with(ending) || call.arguments.empty())
    return std::nullopt;
  const std::string kind = call.name.substr(start.size(), call.name.size() - start.size() - ending.size());
  TemplateSets::Parameter made;
  std::size_t first = 1;
  made.name = call.arguments[0];
  made.of_type = kind == "DTYPE" || kind == "DATATYPE";
  if (kind == "KERNEL_TYPE") {
    made.of_kind = true;
    // The newer form has no name.
    if (made.name.starts_with(start)) {
      made.name = "KERNEL_TYPE";
      first = 0;
    }
  }
  if (kind == "UINT" || kind == "INT") {
    const std::size_t at = declares ? 2 : 1;
    if (call.arguments.size() <= at) return std::nullopt;
    made.values = unsigned_values(call.arguments[at], call.arguments, at + 1);
    return made;
  }
  for (std::size_t n = first; n < call.arguments.size(); ++n) {
    const std::string& value = call.arguments[n];
    // What ties it to an input or output is no value.
    if (value.empty() || value.starts_with("ASCENDC_TPL_INPUT") || value.starts_with("ASCENDC_TPL_OUTPUT"))
      continue;
    made.values.push_back(plain_value(value));
  }
  return made;
}

std::string values_text(const TemplateSets::Parameter& parameter) {
  std::string text;
  for (std::size_t n = 0; n < parameter.values.size(); ++n) {
    if (n == 16) return text + fmt::format(", .. ({} values)", parameter.values.size());
    text += (n == 0 ? "" : ", ") + TemplateSets::shown(parameter, parameter.values[n]);
  }
  return text;
}

// A value as users name it: half, DT_FLOAT16, C_DT_FLOAT16 or 1 of an element type.
bool means(const TemplateSets::Parameter& parameter, const std::string& value, const std::string& asked) {
  if (plain_value(asked) == value) return true;
  if (!parameter.of_type) return false;
  const std::string name = asked.starts_with("C_") ? asked.substr(2) : asked;
  if (const int is = data_type_number(name); is >= 0) return fmt::format("{}", is) == value;
  const auto is = number(value);
  return is && element_type(static_cast<int>(*is)) == (asked == "bfloat16"  ? "bfloat16_t"
                                                       : asked == "float16" ? "half"
                                                                            : asked);
}

}  // namespace

TemplateChoice template_choice(const std::vector<std::string>& given) {
  TemplateChoice choice;
  for (const std::string& list : given) {
    for (const std::string& one : split_arguments(list, true)) {
      const std::size_t equal = one.find('=');
      if (equal == std::string::npos || equal == 0 || equal + 1 == one.size())
        throw InputError(fmt::format("--template: '{}' is not NAME=VALUE", one));
      choice.emplace_back(one.substr(0, equal), one.substr(equal + 1));
    }
  }
  return choice;
}

TemplateSets::TemplateSets(std::string_view text) {
  for (const Call& declaration : calls_of(text, "ASCENDC_TPL_ARGS_DECL")) {
    if (!declared_.empty()) break;
    for (const std::string& line : declaration.arguments) {
      if (const auto call = as_call(line)) {
        if (auto made = parameter_of(*call, true)) declared_.push_back(std::move(*made));
      }
    }
  }
  for (const Call& selection : calls_of(text, "ASCENDC_TPL_SEL")) {
    for (const std::string& set : selection.arguments) {
      const auto lines = as_call(set);
      if (!lines || lines->name != "ASCENDC_TPL_ARGS_SEL") continue;
      Set made{.parameters = declared_, .tiling = {}};
      for (const std::string& line : lines->arguments) {
        const auto call = as_call(line);
        if (!call) continue;
        if (call->name == "ASCENDC_TPL_TILING_STRUCT_SEL" && !call->arguments.empty()) {
          made.tiling = call->arguments[0];
          continue;
        }
        auto chosen = parameter_of(*call, false);
        if (!chosen) continue;
        const auto same = std::ranges::find(made.parameters, chosen->name, &Parameter::name);
        if (same == made.parameters.end()) {
          made.parameters.push_back(std::move(*chosen));
        } else {
          same->values = std::move(chosen->values);
        }
      }
      sets_.push_back(std::move(made));
    }
  }
  if (sets_.empty() && !declared_.empty()) sets_.push_back({.parameters = declared_, .tiling = {}});
}

std::string TemplateSets::shown(const Parameter& parameter, const std::string& value) {
  if (!parameter.of_type) return value;
  const auto is = number(value);
  const std::string type = is ? element_type(static_cast<int>(*is)) : std::string();
  return type.empty() ? value : type;
}

std::string TemplateSets::text() const {
  std::string all;
  for (const Set& set : sets_) {
    std::string line;
    for (const Parameter& p : set.parameters)
      line += fmt::format("{}{} in {{{}}}", line.empty() ? "" : ", ", p.name, values_text(p));
    all += (all.empty() ? " " : "; or ") + line;
  }
  return all;
}

TemplateSets::Set TemplateSets::choose(const TemplateChoice& choice) const {
  std::vector<std::string> names;
  for (const Set& set : sets_) {
    for (const Parameter& p : set.parameters) names.push_back(p.name);
  }
  for (const auto& [name, value] : choice) {
    if (std::ranges::find(names, name) == names.end())
      throw InputError(fmt::format("--template: the kernel has no {}{}; its sets:{}", name,
                                   hw::suggestion(name, names), text()));
  }
  for (const Set& set : sets_) {
    Set one = set;
    bool fits = true;
    for (Parameter& p : one.parameters) {
      const auto asked = std::ranges::find(choice, p.name, &TemplateChoice::value_type::first);
      if (asked != choice.end())
        std::erase_if(p.values, [&](const std::string& v) { return !means(p, v, asked->second); });
      fits = fits && !p.values.empty();
      if (fits) p.values.resize(1);
    }
    if (fits) return one;
  }
  std::string asked;
  for (const auto& [name, value] : choice)
    asked += fmt::format("{}{}={}", asked.empty() ? "" : ",", name, value);
  throw InputError(fmt::format("--template: no set of the kernel has {}; its sets:{}", asked, text()));
}

std::vector<std::string> template_arguments(const TemplateEntry& entry, const TemplateSets& sets,
                                            const TemplateSets::Set& chosen, const TemplateChoice& choice) {
  std::vector<std::string> arguments;
  if (sets.empty()) {
    std::vector<std::string> names;
    for (const auto& p : entry.parameters) names.push_back(p.name);
    for (const auto& [name, value] : choice) {
      if (std::ranges::find(names, name) == names.end())
        throw InputError(
            fmt::format("--template: {} has no {}{}", entry.name, name, hw::suggestion(name, names)));
    }
    for (const auto& p : entry.parameters) {
      const auto asked = std::ranges::find(choice, p.name, &TemplateChoice::value_type::first);
      if (asked != choice.end()) {
        arguments.push_back(asked->second);
      } else if (p.has_default) {
        break;
      } else {
        throw InputError(fmt::format("kernel build: {} is a template of {}: --template {}=.. chooses",
                                     entry.name, fmt::join(names, ", "), p.name));
      }
    }
    return arguments;
  }
  // In the declared order; what says the kind of cores is not the kernel's where that has fewer.
  std::vector<TemplateSets::Parameter> values = chosen.parameters;
  if (values.size() > entry.parameters.size())
    std::erase_if(values, [](const TemplateSets::Parameter& p) { return p.of_kind; });
  for (std::size_t n = 0; n < values.size(); ++n) {
    const TemplateSets::Parameter& p = values[n];
    const std::string& value = p.values.front();
    const bool is_type = n < entry.parameters.size() && entry.parameters[n].is_type;
    const std::string type = is_type ? TemplateSets::shown(p, value) : value;
    arguments.push_back(type);
  }
  return arguments;
}

std::string instance_of(const TemplateEntry& entry, const std::vector<std::string>& arguments) {
  const std::string plain = entry.name.substr(entry.name.rfind(':') + 1);
  return fmt::format("\nCM384_TEMPLATE_KERNEL({}, {}{})\n", plain, entry.name,
                     arguments.empty() ? "<>" : fmt::format("<{}>", fmt::join(arguments, ", ")));
}

}  // namespace cm384::cli
