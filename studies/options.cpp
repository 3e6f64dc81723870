#include "studies/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/errors.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/positional_options.hpp>

#include "hw/error.h"
#include "hw/nearest_name.h"
#include "hw/quantity.h"

// typed_value's own parser wants these; ParsedValue replaces it, so they are never reached.
namespace cm384 {
void validate(boost::any&, const std::vector<std::string>&, Bytes*, int) {}
void validate(boost::any&, const std::vector<std::string>&, Time*, int) {}
void validate(boost::any&, const std::vector<std::string>&, Bandwidth*, int) {}
namespace studies {
void validate(boost::any&, const std::vector<std::string>&, Integers*, int) {}
void validate(boost::any&, const std::vector<std::string>&, Names*, int) {}
void validate(boost::any&, const std::vector<std::string>&, Sizes*, int) {}
}  // namespace studies
}  // namespace cm384

namespace cm384::studies {
namespace {

namespace po = boost::program_options;

// A value that its option refuses; Boost adds the option's name on the way out.
class BadValue : public po::error_with_option_name {
 public:
  explicit BadValue(const std::string& message)
      : po::error_with_option_name("%canonical_option%: " + message) {}
};

// An option's value with the project's own parser.
template <class T>
class ParsedValue : public po::typed_value<T> {
 public:
  ParsedValue(std::function<T(std::string_view)> parse, const std::string& name)
      : po::typed_value<T>(nullptr), parse_(std::move(parse)) {
    this->value_name(name);
  }
  void xparse(boost::any& store, const std::vector<std::string>& tokens) const override {
    if (!store.empty()) throw BadValue("is given more than once");
    try {
      store = parse_(tokens.empty() ? std::string_view{} : std::string_view(tokens.front()));
    } catch (const InputError& error) {
      throw BadValue(error.what());
    }
  }

 private:
  std::function<T(std::string_view)> parse_;
};

// The option owns what it is given; Boost takes plain pointers.
template <class T, class Parse>
OptionValue<T>* parsed(Parse parse, const std::string& name) {
  return new ParsedValue<T>(std::function<T(std::string_view)>(std::move(parse)), name);
}

std::string range_name(std::string_view noun, const std::string& low, const std::string& high) {
  return fmt::format("{} {}..{}", noun, low, high);
}

int parse_int_in(std::string_view text, int low, int high) {
  const std::int64_t value = hw::parse_integer(text);
  if (value < low || value > high) {
    throw InputError(
        fmt::format("{} is out of range; allowed: a whole number from {} to {}", value, low, high));
  }
  return static_cast<int>(value);
}

std::string parse_choice(std::string_view text, const std::vector<std::string>& choices) {
  if (std::ranges::find(choices, text) == choices.end()) {
    throw InputError(fmt::format("'{}' is unknown{}; allowed: {}", text, hw::suggestion(text, choices),
                                 fmt::join(choices, ", ")));
  }
  return std::string(text);
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

Integers parse_integers(std::string_view text, int low, int high) {
  Integers list;
  for (const std::string_view part : split(text)) list.values.push_back(parse_int_in(part, low, high));
  return list;
}

// FROM..TO: from size to size twice as much, and TO at the end.
void append_doubling(std::string_view text, std::size_t dots, std::vector<Bytes>& to) {
  const Bytes first = hw::parse_bytes(text.substr(0, dots)), last = hw::parse_bytes(text.substr(dots + 2));
  if (first.count <= 0 || last < first) {
    throw InputError(fmt::format(
        "'{}' is no range; allowed: a size above 0 and one not below it, as in 64B..64MiB", text));
  }
  std::int64_t size = first.count;
  for (; size < last.count - size; size *= 2) to.push_back({size});
  to.push_back({size});
  if (size != last.count) to.push_back(last);
}

Sizes parse_sizes(std::string_view text) {
  Sizes list;
  for (const std::string_view part : split(text)) {
    const std::size_t dots = part.find("..");
    if (dots != std::string_view::npos) {
      append_doubling(part, dots, list.values);
    } else {
      list.values.push_back(hw::parse_bytes(part));
    }
  }
  return list;
}

Names parse_choices(std::string_view text, const std::vector<std::string>& choices) {
  Names list;
  for (const std::string_view part : split(text)) list.values.push_back(parse_choice(part, choices));
  return list;
}

Json to_json(const boost::any& value) {
  if (const auto* number = boost::any_cast<int>(&value)) return *number;
  if (const auto* real = boost::any_cast<double>(&value)) return *real;
  if (const auto* flag = boost::any_cast<bool>(&value)) return *flag;
  if (const auto* text = boost::any_cast<std::string>(&value)) return *text;
  if (const auto* size = boost::any_cast<Bytes>(&value)) return hw::format(*size);
  if (const auto* time = boost::any_cast<Time>(&value)) return hw::format(*time);
  if (const auto* rate = boost::any_cast<Bandwidth>(&value)) return hw::format(*rate);
  if (const auto* list = boost::any_cast<Integers>(&value)) return list->values;
  if (const auto* sizes = boost::any_cast<Sizes>(&value)) {
    if (sizes->values.size() == 1) return hw::format(sizes->values.front());
    Json texts = Json::array();
    for (const Bytes size : sizes->values) texts.push_back(hw::format(size));
    return texts;
  }
  if (const auto* names = boost::any_cast<Names>(&value)) return names->values;
  if (const auto* texts = boost::any_cast<std::vector<std::string>>(&value)) return *texts;
  throw std::logic_error("an option of a kind that results cannot hold");
}

std::vector<std::string> long_names(const po::options_description& options) {
  std::vector<std::string> names;
  for (const auto& option : options.options()) names.push_back("--" + option->long_name());
  return names;
}

std::string without_quotes(std::string text) {
  // Boost writes the option as '--name'.
  if (text.starts_with("'--")) {
    text.erase(text.find('\'', 1), 1);
    text.erase(0, 1);
  }
  return text;
}

}  // namespace

OptionValue<Bytes>* size_option(Bytes fallback) {
  return parsed<Bytes>(hw::parse_bytes, "SIZE")->default_value(fallback, hw::format(fallback));
}

OptionValue<Time>* time_option(Time fallback) {
  return parsed<Time>(hw::parse_time, "TIME")->default_value(fallback, hw::format(fallback));
}

OptionValue<Bandwidth>* bandwidth_option(Bandwidth fallback) {
  return parsed<Bandwidth>(hw::parse_bandwidth, "RATE")->default_value(fallback, hw::format(fallback));
}

OptionValue<int>* integer_option(int fallback, int low, int high) {
  return parsed<int>([=](std::string_view text) { return parse_int_in(text, low, high); },
                     range_name("N", std::to_string(low), std::to_string(high)))
      ->default_value(fallback, std::to_string(fallback));
}

OptionValue<double>* real_option(double fallback, double low, double high) {
  const auto parse = [=](std::string_view text) {
    const double value = hw::parse_real(text);
    if (value < low || value > high) {
      throw InputError(fmt::format("{} is out of range; allowed: a number from {} to {}", text, low, high));
    }
    return value;
  };
  return parsed<double>(parse, range_name("X", hw::format(low), hw::format(high)))
      ->default_value(fallback, hw::format(fallback));
}

OptionValue<std::string>* text_option(const std::string& fallback, const std::string& value_name) {
  return required_text_option(value_name)->default_value(fallback, fallback);
}

OptionValue<std::string>* required_text_option(const std::string& value_name) {
  return parsed<std::string>([](std::string_view text) { return std::string(text); }, value_name);
}

OptionValue<std::string>* choice_option(const std::string& fallback, std::vector<std::string> choices) {
  const std::string name = fmt::format("{}", fmt::join(choices, "|"));
  return parsed<std::string>(
             [choices = std::move(choices)](std::string_view text) { return parse_choice(text, choices); },
             name)
      ->default_value(fallback, fallback);
}

OptionValue<Sizes>* sizes_option(const std::string& fallback) {
  return parsed<Sizes>(parse_sizes, "SIZE,..|SIZE..SIZE")->default_value(parse_sizes(fallback), fallback);
}

OptionValue<Integers>* integers_option(const std::string& fallback, int low, int high) {
  return parsed<Integers>([=](std::string_view text) { return parse_integers(text, low, high); },
                          range_name("N,..", std::to_string(low), std::to_string(high)))
      ->default_value(parse_integers(fallback, low, high), fallback);
}

OptionValue<Names>* choices_option(const std::string& fallback, std::vector<std::string> choices) {
  const std::string name = fmt::format("{},..", fmt::join(choices, "|"));
  const Names value = parse_choices(fallback, choices);
  return parsed<Names>(
             [choices = std::move(choices)](std::string_view text) { return parse_choices(text, choices); },
             name)
      ->default_value(value, fallback);
}

OptionValue<std::string>* checked_text_option(const std::string& fallback, const std::string& value_name,
                                              std::function<void(std::string_view)> check) {
  const auto parse = [check = std::move(check)](std::string_view text) {
    check(text);
    return std::string(text);
  };
  return parsed<std::string>(parse, value_name)->default_value(fallback, fallback);
}

Json effective_options(const po::options_description& options, const po::variables_map& values) {
  Json json = Json::object();
  for (const auto& option : options.options()) {
    const std::string& name = option->long_name();
    if (values.count(name) != 0 && !values[name].empty()) json[name] = to_json(values[name].value());
  }
  return json;
}

po::variables_map parse_options(const po::options_description& options,
                                const std::vector<std::string>& arguments, const char* positional,
                                int positional_count) {
  po::variables_map values;
  po::positional_options_description bare;
  if (positional != nullptr) bare.add(positional, positional_count);
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(arguments).options(options).positional(bare).style(style).run(),
              values);
    po::notify(values);
  } catch (const po::unknown_option& error) {
    const std::string typed = without_quotes(error.get_option_name());
    throw InputError(fmt::format("{}: no such option{}", typed, hw::suggestion(typed, long_names(options))));
  } catch (const po::too_many_positional_options_error&) {
    std::string extra;
    for (const auto& option :
         po::command_line_parser(arguments).options(options).allow_unregistered().run().options) {
      if (option.position_key >= positional_count * (positional != nullptr) && !option.value.empty()) {
        extra = option.value.front();
        break;
      }
    }
    throw InputError(fmt::format("'{}': unexpected argument; allowed: options, which begin with --", extra));
  } catch (const po::error& error) {
    throw InputError(without_quotes(error.what()));
  }
  return values;
}

}  // namespace cm384::studies
