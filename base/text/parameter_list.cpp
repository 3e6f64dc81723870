#include "base/text/parameter_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/text/error.h"
#include "base/text/nearest_name.h"
#include "base/text/quantity.h"

namespace cm384::hw {
namespace {

template <class... Fs>
struct Overload : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overload(Fs...) -> Overload<Fs...>;

// The kinds of elements: a list's parameter is handled as one of its elements is.
enum class Kind : std::uint8_t { boolean, integer, real, text, time, size, bandwidth, frequency };

Kind kind_of(const Parameter& parameter) {
  return std::visit(
      Overload{[](bool*) { return Kind::boolean; }, [](int*) { return Kind::integer; },
               [](std::int64_t*) { return Kind::integer; }, [](Integers*) { return Kind::integer; },
               [](double*) { return Kind::real; }, [](Reals*) { return Kind::real; },
               [](std::string*) { return Kind::text; }, [](Texts*) { return Kind::text; },
               [](Time*) { return Kind::time; }, [](Bytes*) { return Kind::size; },
               [](Sizes*) { return Kind::size; }, [](Bandwidth*) { return Kind::bandwidth; },
               [](Frequency*) { return Kind::frequency; }},
      parameter.value);
}

std::string whole_text(Kind kind, std::int64_t value) {
  switch (kind) {
    case Kind::time:
      return format(Time{value});
    case Kind::size:
      return format(Bytes{value});
    case Kind::bandwidth:
      return format(Bandwidth{value});
    case Kind::frequency:
      return format(Frequency{value});
    default:
      return std::to_string(value);
  }
}

std::string_view noun(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return "true or false";
    case Kind::integer:
      return "a whole number";
    case Kind::real:
      return "a number";
    case Kind::text:
      return "a string";
    case Kind::time:
      return "a time with unit";
    case Kind::size:
      return "a size with unit";
    case Kind::bandwidth:
      return "a bandwidth with unit";
    case Kind::frequency:
      return "a frequency with unit";
  }
  return "";
}

[[noreturn]] void refuse(const Parameter& parameter, std::string_view found) {
  throw InputError(fmt::format("{}; allowed: {}", found, allowed_text(parameter)));
}

// "'7' has no unit; allowed: ..." without its tail: the parameter states what is allowed with its own range.
std::string without_allowed(std::string_view message) {
  return std::string(message.substr(0, message.find("; allowed:")));
}

std::int64_t parse_whole(Kind kind, std::string_view text) {
  switch (kind) {
    case Kind::time:
      return parse_time(text).ps;
    case Kind::size:
      return parse_bytes(text).count;
    case Kind::bandwidth:
      return parse_bandwidth(text).bytes_per_second;
    case Kind::frequency:
      return parse_frequency(text).hertz;
    default:
      return parse_integer(text);
  }
}

void check_bounds(const Parameter& parameter, std::string_view text, bool inside, bool on_step) {
  if (!parameter.bounded) return;
  if (!inside) refuse(parameter, fmt::format("{} is out of range", text));
  if (!on_step) refuse(parameter, fmt::format("{} does not fit", text));
}

// One element, checked.
std::int64_t whole_of(const Parameter& parameter, std::string_view text) {
  const std::int64_t value = parse_whole(kind_of(parameter), text);
  const auto step = static_cast<std::int64_t>(parameter.step);
  check_bounds(parameter, text, value >= parameter.whole_low && value <= parameter.whole_high,
               step == 0 || value % step == 0);
  return value;
}

int int_of(const Parameter& parameter, std::string_view text) {
  const std::int64_t value = whole_of(parameter, text);
  if (value != static_cast<int>(value)) refuse(parameter, fmt::format("{} is too large", text));
  return static_cast<int>(value);
}

double real_of(const Parameter& parameter, std::string_view text) {
  const double value = parse_real(text);
  check_bounds(parameter, text, value >= parameter.low && value <= parameter.high, true);
  return value;
}

std::string name_of(const Parameter& parameter, std::string_view text) {
  if (!parameter.names.empty() && std::ranges::find(parameter.names, text) == parameter.names.end()) {
    const std::vector<std::string> names(parameter.names.begin(), parameter.names.end());
    const std::string near = nearest_name(text, names);
    refuse(parameter, fmt::format("'{}' is unknown{}", text,
                                  near.empty() ? "" : fmt::format(", did you mean '{}'?", near)));
  }
  return std::string(text);
}

bool boolean_of(const Parameter& parameter, std::string_view text) {
  if (parameter.names.empty()) return parse_bool(text);
  return name_of(parameter, text) == parameter.names.back();
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

// FROM..TO: from a value to twice as much, and TO at the end.
template <class Append>
void append_doubling(const Parameter& parameter, std::string_view text, std::size_t dots, Append&& append) {
  const std::int64_t first = whole_of(parameter, text.substr(0, dots));
  const std::int64_t last = whole_of(parameter, text.substr(dots + 2));
  if (first <= 0 || last < first)
    refuse(parameter, fmt::format("'{}' is not a range: FROM..TO begins above 0 and doubles up to TO", text));
  std::int64_t value = first;
  for (; value < last - value; value *= 2) append(value);
  append(value);
  if (value != last) append(last);
}

template <class Append>
void for_each_whole(const Parameter& parameter, std::string_view text, Append&& append) {
  for (const std::string_view part : split(text)) {
    const std::size_t dots = part.find("..");
    if (dots == std::string_view::npos) {
      append(whole_of(parameter, part));
    } else {
      append_doubling(parameter, part, dots, append);
    }
  }
}

Integers integers_of(const Parameter& parameter, std::string_view text) {
  Integers list;
  for_each_whole(parameter, text, [&](std::int64_t value) {
    if (value != static_cast<int>(value)) refuse(parameter, fmt::format("{} is too large", value));
    list.push_back(static_cast<int>(value));
  });
  return list;
}

Sizes sizes_of(const Parameter& parameter, std::string_view text) {
  Sizes list;
  for_each_whole(parameter, text, [&](std::int64_t value) { list.push_back({value}); });
  return list;
}

// FROM..TO goes in steps of 0.1.
Reals reals_of(const Parameter& parameter, std::string_view text) {
  Reals list;
  for (const std::string_view part : split(text)) {
    const std::size_t dots = part.find("..");
    if (dots == std::string_view::npos) {
      list.push_back(real_of(parameter, part));
      continue;
    }
    // In whole thousandths: a sum of tenths is no tenth.
    const long from = std::lround(real_of(parameter, part.substr(0, dots)) * 1000);
    const long to = std::lround(real_of(parameter, part.substr(dots + 2)) * 1000);
    if (to < from) refuse(parameter, fmt::format("'{}' is not a range: FROM..TO grows by 0.1", part));
    for (long value = from; value <= to; value += 100) list.push_back(static_cast<double>(value) / 1000);
  }
  return list;
}

Texts texts_of(const Parameter& parameter, std::string_view text) {
  Texts list;
  for (const std::string_view part : split(text)) list.push_back(name_of(parameter, part));
  return list;
}

template <class List, class Text>
std::string joined(const List& list, Text&& text) {
  std::string all;
  for (const auto& element : list) all += (all.empty() ? "" : ",") + text(element);
  return all;
}

std::string form_and_check(const Parameter& parameter, std::string_view text) {
  if (parameter.check != nullptr) parameter.check(text);
  return name_of(parameter, text);
}

// Runs `take`; what it refuses says what is allowed of the parameter.
template <class Take>
void assign_by(const Parameter& parameter, Take&& take) {
  std::string found;
  try {
    take();
    return;
  } catch (const InputError& error) {
    // A form's own check says what is allowed better than the form does.
    if (parameter.check != nullptr) throw;
    found = without_allowed(error.what());
  }
  refuse(parameter, found);
}

}  // namespace

std::vector<std::string> keys_of(const std::vector<Parameter>& parameters) {
  std::vector<std::string> keys;
  keys.reserve(parameters.size());
  for (const Parameter& parameter : parameters) keys.push_back(parameter.key);
  return keys;
}

bool is_repeated(const Parameter& parameter) {
  return std::holds_alternative<Texts*>(parameter.value) && !parameter.form.empty();
}

std::string value_text(const Parameter& parameter) {
  return std::visit(
      Overload{[&](bool* p) {
                 if (!parameter.names.empty()) return std::string(parameter.names[*p ? 1 : 0]);
                 return std::string(*p ? "true" : "false");
               },
               [](int* p) { return std::to_string(*p); }, [](std::int64_t* p) { return std::to_string(*p); },
               [](std::string* p) { return *p; },
               [](Integers* p) { return joined(*p, [](int v) { return std::to_string(v); }); },
               [](Reals* p) { return joined(*p, [](double v) { return format(v); }); },
               [](Sizes* p) { return joined(*p, [](Bytes v) { return format(v); }); },
               [](Texts* p) { return joined(*p, [](const std::string& v) { return v; }); },
               [](auto* p) { return format(*p); }},
      parameter.value);
}

std::optional<double> number_of(const Parameter& parameter) {
  using Number = std::optional<double>;
  return std::visit(Overload{[](bool*) { return Number(); }, [](std::string*) { return Number(); },
                             [](Integers*) { return Number(); }, [](Reals*) { return Number(); },
                             [](Sizes*) { return Number(); }, [](Texts*) { return Number(); },
                             [](double* p) { return Number(*p); },
                             [](auto* p) { return Number(static_cast<double>(detail::whole(*p))); }},
                    parameter.value);
}

std::string range_text(const Parameter& parameter) {
  if (!parameter.names.empty()) return fmt::format("{}", fmt::join(parameter.names, ", "));
  if (!parameter.bounded) return "";
  const Kind kind = kind_of(parameter);
  const std::string step =
      parameter.step == 0
          ? ""
          : fmt::format(", multiples of {}", whole_text(kind, static_cast<std::int64_t>(parameter.step)));
  if (kind == Kind::real && parameter.high >= kNoLimit) return fmt::format("{} or more", parameter.low);
  if (kind == Kind::real) return fmt::format("{} to {}", parameter.low, parameter.high);
  return fmt::format("{} to {}{}", whole_text(kind, parameter.whole_low),
                     whole_text(kind, parameter.whole_high), step);
}

std::string allowed_text(const Parameter& parameter) {
  if (!parameter.names.empty()) return fmt::format("one of {}", range_text(parameter));
  if (!parameter.form.empty()) return std::string(parameter.form);
  if (!parameter.bounded) return std::string(noun(kind_of(parameter)));
  const bool open = kind_of(parameter) == Kind::real && parameter.high >= kNoLimit;
  return fmt::format("{}{} {}", noun(kind_of(parameter)), open ? "," : " from", range_text(parameter));
}

bool is_quoted(const Parameter& parameter) {
  return std::visit(
      Overload{[](bool*) { return false; }, [](int*) { return false; }, [](std::int64_t*) { return false; },
               [](double*) { return false; }, [](auto*) { return true; }},
      parameter.value);
}

void assign(const Parameter& parameter, std::string_view text) {
  assign_by(parameter, [&] {
    std::visit(Overload{[&](bool* p) { *p = boolean_of(parameter, text); },
                        [&](int* p) { *p = int_of(parameter, text); },
                        [&](std::int64_t* p) { *p = whole_of(parameter, text); },
                        [&](double* p) { *p = real_of(parameter, text); },
                        [&](std::string* p) { *p = form_and_check(parameter, text); },
                        [&](Time* p) { *p = {whole_of(parameter, text)}; },
                        [&](Bytes* p) { *p = {whole_of(parameter, text)}; },
                        [&](Bandwidth* p) { *p = {whole_of(parameter, text)}; },
                        [&](Frequency* p) { *p = {whole_of(parameter, text)}; },
                        [&](Integers* p) { *p = integers_of(parameter, text); },
                        [&](Reals* p) { *p = reals_of(parameter, text); },
                        [&](Sizes* p) { *p = sizes_of(parameter, text); },
                        [&](Texts* p) {
                          if (is_repeated(parameter)) {
                            p->push_back(form_and_check(parameter, text));
                          } else {
                            *p = texts_of(parameter, text);
                          }
                        }},
               parameter.value);
  });
}

void assign_elements(const Parameter& parameter, const std::vector<std::string>& texts) {
  assign_by(parameter, [&] {
    const auto fill = [&](auto* list, auto&& element) {
      std::remove_pointer_t<decltype(list)> all;
      for (const std::string& text : texts) all.push_back(element(text));
      *list = std::move(all);
    };
    std::visit(
        Overload{
            [&](Integers* p) { fill(p, [&](const auto& text) { return int_of(parameter, text); }); },
            [&](Reals* p) { fill(p, [&](const auto& text) { return real_of(parameter, text); }); },
            [&](Sizes* p) { fill(p, [&](const auto& text) { return Bytes{whole_of(parameter, text)}; }); },
            [&](Texts* p) { fill(p, [&](const auto& text) { return form_and_check(parameter, text); }); },
            [](auto*) { throw std::logic_error("a parameter that is not a list has no elements"); }},
        parameter.value);
  });
}

}  // namespace cm384::hw
