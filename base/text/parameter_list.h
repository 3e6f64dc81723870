// The parameters of a described struct as a flat list: what readers, writers, the command line and the
// reference page work on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/text/describe.h"
#include "base/text/units.h"

namespace cm384::hw {

using Integers = std::vector<int>;
using Reals = std::vector<double>;
using Sizes = std::vector<Bytes>;
using Texts = std::vector<std::string>;
using ValueReference = std::variant<bool*, int*, std::int64_t*, double*, std::string*, Time*, Bytes*,
                                    Bandwidth*, Frequency*, Integers*, Reals*, Sizes*, Texts*>;

struct Parameter {
  std::string key;  // "hbm.t_rc"
  std::string_view sentence;
  ValueReference value;
  bool bounded = false;
  double low = 0, high = 0;                    // of a real number
  std::int64_t whole_low = 0, whole_high = 0;  // of everything else, in the type's resolution
  double step = 0;                             // values are multiples of it; 0: any
  std::vector<std::string_view> names;  // of a string, or of the elements of a list; a bool's no and yes
  std::string_view form;                // of a text
  void (*check)(std::string_view) = nullptr;  // of a text
  std::vector<Needs> needs;                   // of an option
  char letter = 0;                            // of an option: -o; 0: none
  std::string_view alias;                     // of an option: another name; empty: none
  bool required = false;                      // of a file: it has to be given
};

// A text with a form of its own (Texts): not separated by commas, but given several times.
bool is_repeated(const Parameter& parameter);

// All parameters of a described struct, in declaration order. References point into `described`.
template <class Described>
std::vector<Parameter> list_parameters(Described& described);
std::vector<std::string> keys_of(const std::vector<Parameter>& parameters);

// The value as text; what it may be ("a time from 1ps to 10us"); its range alone ("1ps to 10us").
std::string value_text(const Parameter& parameter);
std::string allowed_text(const Parameter& parameter);
std::string range_text(const Parameter& parameter);
// A number, or a quantity in its type's resolution (ps, B, B/s, Hz); nothing of a text, a bool or a list.
std::optional<double> number_of(const Parameter& parameter);
// True where the value is written as a string in TOML and JSON (strings and quantities).
bool is_quoted(const Parameter& parameter);

// Parses `text` and checks it against the range. A list is separated by commas and may have ranges FROM..TO:
// sizes and whole numbers double, real numbers grow by 0.1. Throws InputError without the key in front.
void assign(const Parameter& parameter, std::string_view text);
// A list whose elements stand by themselves: no commas, no ranges. Only of a list's parameter.
void assign_elements(const Parameter& parameter, const std::vector<std::string>& texts);

namespace detail {

template <class T>
struct IsValue
    : std::bool_constant<std::is_same_v<T, bool> || std::is_same_v<T, int> ||
                         std::is_same_v<T, std::int64_t> || std::is_same_v<T, double> ||
                         std::is_same_v<T, std::string> || std::is_same_v<T, Time> ||
                         std::is_same_v<T, Bytes> || std::is_same_v<T, Bandwidth> ||
                         std::is_same_v<T, Frequency> || std::is_same_v<T, Integers> ||
                         std::is_same_v<T, Reals> || std::is_same_v<T, Sizes> || std::is_same_v<T, Texts>> {};

// What a range bounds: a list's elements.
template <class T>
struct Bounded {
  using type = T;
};
template <class T>
struct Bounded<std::vector<T>> {
  using type = T;
};

constexpr std::int64_t whole(Time v) {
  return v.ps;
}
constexpr std::int64_t whole(Bytes v) {
  return v.count;
}
constexpr std::int64_t whole(Bandwidth v) {
  return v.bytes_per_second;
}
constexpr std::int64_t whole(Frequency v) {
  return v.hertz;
}
constexpr std::int64_t whole(std::int64_t v) {
  return v;
}
constexpr std::int64_t whole(int v) {
  return v;
}

// Walks describe() and appends.
class Lister {
 public:
  explicit Lister(std::vector<Parameter>& list, std::string prefix = "")
      : list_(list), prefix_(std::move(prefix)) {}

  // A struct with describe(): a section.
  template <class Section>
  void operator()(std::string_view name, Section& section) {
    static_assert(!IsValue<Section>::value, "a parameter needs a sentence");
    Section::describe(section, Lister(list_, prefix_ + std::string(name) + "."));
  }
  template <class T, class... Attributes>
  void operator()(std::string_view name, T& value, std::string_view sentence,
                  const Attributes&... attributes) {
    Parameter& parameter = append(name, value, sentence);
    (attribute(parameter, attributes), ...);
  }
  template <class T, class Bound, class... Attributes>
  void operator()(std::string_view name, T& value, Range<Bound> range, std::string_view sentence,
                  const Attributes&... attributes) {
    using Element = typename Bounded<T>::type;
    static_assert(!std::is_same_v<Element, bool> && !std::is_same_v<Element, std::string>);
    Parameter& parameter = append(name, value, sentence);
    parameter.bounded = true;
    if constexpr (std::is_same_v<Element, double>) {
      parameter.low = static_cast<double>(range.low);
      parameter.high = static_cast<double>(range.high);
      parameter.step = static_cast<double>(range.step);
    } else {
      parameter.whole_low = whole(Element(range.low));
      parameter.whole_high = whole(Element(range.high));
      parameter.step = static_cast<double>(whole(Element(range.step)));
    }
    (attribute(parameter, attributes), ...);
  }
  template <class T, class... Attributes>
  void operator()(std::string_view name, T& value, OneOf choice, std::string_view sentence,
                  const Attributes&... attributes) {
    static_assert(std::is_same_v<T, std::string> || std::is_same_v<T, Texts>);
    Parameter& parameter = append(name, value, sentence);
    parameter.names = std::move(choice.names);
    (attribute(parameter, attributes), ...);
  }
  template <class... Attributes>
  void operator()(std::string_view name, bool& value, Either names, std::string_view sentence,
                  const Attributes&... attributes) {
    Parameter& parameter = append(name, value, sentence);
    parameter.names = {names.no, names.yes};
    (attribute(parameter, attributes), ...);
  }
  template <class T, class... Attributes>
  void operator()(std::string_view name, T& value, Form form, std::string_view sentence,
                  const Attributes&... attributes) {
    static_assert(std::is_same_v<T, std::string> || std::is_same_v<T, Texts>);
    Parameter& parameter = append(name, value, sentence);
    parameter.form = form.text;
    parameter.check = form.check;
    (attribute(parameter, attributes), ...);
  }

 private:
  static void attribute(Parameter& parameter, const Needs& needs) { parameter.needs.push_back(needs); }
  static void attribute(Parameter& parameter, Letter letter) { parameter.letter = letter.letter; }
  static void attribute(Parameter& parameter, Alias alias) { parameter.alias = alias.name; }
  static void attribute(Parameter& parameter, Required) { parameter.required = true; }
  template <class T>
  Parameter& append(std::string_view name, T& value, std::string_view sentence) {
    static_assert(IsValue<T>::value, "a parameter is a bool, number, string, quantity or list of such");
    Parameter& parameter = list_.emplace_back();
    parameter.key = prefix_ + std::string(name);
    parameter.sentence = sentence;
    parameter.value = &value;
    return parameter;
  }

  std::vector<Parameter>& list_;
  std::string prefix_;
};

}  // namespace detail

template <class Described>
std::vector<Parameter> list_parameters(Described& described) {
  std::vector<Parameter> list;
  Described::describe(described, detail::Lister(list));
  return list;
}

}  // namespace cm384::hw
