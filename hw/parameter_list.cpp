#include "hw/parameter_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "hw/error.h"
#include "hw/nearest_name.h"
#include "hw/quantity.h"

namespace cm384::hw {
namespace {

template <class... Fs>
struct Overload : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overload(Fs...) -> Overload<Fs...>;

std::string whole_text(const Parameter& parameter, std::int64_t value) {
  return std::visit(
      Overload{[&](Time*) { return format(Time{value}); }, [&](Bytes*) { return format(Bytes{value}); },
               [&](Bandwidth*) { return format(Bandwidth{value}); },
               [&](Frequency*) { return format(Frequency{value}); },
               [&](auto*) { return std::to_string(value); }},
      parameter.value);
}

std::string_view noun(const Parameter& parameter) {
  return std::visit(
      Overload{[](bool*) { return "true or false"; }, [](int*) { return "a whole number"; },
               [](std::int64_t*) { return "a whole number"; }, [](double*) { return "a number"; },
               [](std::string*) { return "a string"; }, [](Time*) { return "a time with unit"; },
               [](Bytes*) { return "a size with unit"; }, [](Bandwidth*) { return "a bandwidth with unit"; },
               [](Frequency*) { return "a frequency with unit"; }},
      parameter.value);
}

[[noreturn]] void refuse(const Parameter& parameter, std::string_view found) {
  throw InputError(fmt::format("{}; allowed: {}", found, allowed_text(parameter)));
}

// "'7' has no unit; allowed: ..." without its tail: the parameter states what is allowed with its own range.
std::string without_allowed(std::string_view message) {
  return std::string(message.substr(0, message.find("; allowed:")));
}

std::int64_t parse_whole(const Parameter& parameter, std::string_view text) {
  return std::visit(
      Overload{[&](Time*) { return parse_time(text).ps; }, [&](Bytes*) { return parse_bytes(text).count; },
               [&](Bandwidth*) { return parse_bandwidth(text).bytes_per_second; },
               [&](Frequency*) { return parse_frequency(text).hertz; },
               [&](auto*) { return parse_integer(text); }},
      parameter.value);
}

void check_bounds(const Parameter& parameter, std::string_view text, bool inside) {
  if (parameter.bounded && !inside) refuse(parameter, fmt::format("{} is out of range", text));
}

void assign_whole(const Parameter& parameter, std::string_view text) {
  const std::int64_t value = parse_whole(parameter, text);
  check_bounds(parameter, text, value >= parameter.whole_low && value <= parameter.whole_high);
  std::visit(Overload{[&](Time* p) { *p = {value}; }, [&](Bytes* p) { *p = {value}; },
                      [&](Bandwidth* p) { *p = {value}; }, [&](Frequency* p) { *p = {value}; },
                      [&](std::int64_t* p) { *p = value; },
                      [&](int* p) {
                        if (value != static_cast<int>(value)) {
                          refuse(parameter, fmt::format("{} is too large", text));
                        }
                        *p = static_cast<int>(value);
                      },
                      [](auto*) {}},
             parameter.value);
}

void assign_real(const Parameter& parameter, double& target, std::string_view text) {
  const double value = parse_real(text);
  check_bounds(parameter, text, value >= parameter.low && value <= parameter.high);
  target = value;
}

void assign_name(const Parameter& parameter, std::string& target, std::string_view text) {
  if (!parameter.names.empty() && std::ranges::find(parameter.names, text) == parameter.names.end()) {
    const std::vector<std::string> names(parameter.names.begin(), parameter.names.end());
    const std::string near = nearest_name(text, names);
    refuse(parameter, fmt::format("'{}' is unknown{}", text,
                                  near.empty() ? "" : fmt::format(", did you mean '{}'?", near)));
  }
  target = text;
}

}  // namespace

std::vector<Parameter> list_parameters(Machine& machine) {
  std::vector<Parameter> list;
  Machine::describe(machine, detail::Lister(list, ""));
  return list;
}

std::vector<std::string> keys_of(const std::vector<Parameter>& parameters) {
  std::vector<std::string> keys;
  keys.reserve(parameters.size());
  for (const Parameter& parameter : parameters) keys.push_back(parameter.key);
  return keys;
}

std::string value_text(const Parameter& parameter) {
  return std::visit(
      Overload{[](bool* p) { return std::string(*p ? "true" : "false"); },
               [](int* p) { return std::to_string(*p); }, [](std::int64_t* p) { return std::to_string(*p); },
               [](std::string* p) { return *p; }, [](auto* p) { return format(*p); }},
      parameter.value);
}

std::string range_text(const Parameter& parameter) {
  if (!parameter.names.empty()) return fmt::format("{}", fmt::join(parameter.names, ", "));
  if (!parameter.bounded) return "";
  if (std::holds_alternative<double*>(parameter.value)) {
    return fmt::format("{} to {}", parameter.low, parameter.high);
  }
  return fmt::format("{} to {}", whole_text(parameter, parameter.whole_low),
                     whole_text(parameter, parameter.whole_high));
}

std::string allowed_text(const Parameter& parameter) {
  if (!parameter.names.empty()) return fmt::format("one of {}", range_text(parameter));
  if (!parameter.bounded) return std::string(noun(parameter));
  return fmt::format("{} from {}", noun(parameter), range_text(parameter));
}

bool is_quoted(const Parameter& parameter) {
  return std::visit(
      Overload{[](bool*) { return false; }, [](int*) { return false; }, [](std::int64_t*) { return false; },
               [](double*) { return false; }, [](auto*) { return true; }},
      parameter.value);
}

void assign(const Parameter& parameter, std::string_view text) {
  std::string found;
  try {
    if (bool* const* flag = std::get_if<bool*>(&parameter.value)) {
      **flag = parse_bool(text);
    } else if (double* const* real = std::get_if<double*>(&parameter.value)) {
      assign_real(parameter, **real, text);
    } else if (std::string* const* name = std::get_if<std::string*>(&parameter.value)) {
      assign_name(parameter, **name, text);
    } else {
      assign_whole(parameter, text);
    }
    return;
  } catch (const InputError& error) {
    found = without_allowed(error.what());
  }
  refuse(parameter, found);
}

}  // namespace cm384::hw
