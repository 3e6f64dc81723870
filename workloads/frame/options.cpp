#include "workloads/frame/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <boost/program_options/variables_map.hpp>
#include <sstream>

#include "base/text/error.h"
#include "base/text/nearest_name.h"
#include "base/text/quantity.h"

namespace cm384::studies {
namespace {

namespace po = boost::program_options;
using hw::Parameter;

constexpr unsigned kHelpWidth = 110;

bool is_flag(const Parameter& option) {
  return std::holds_alternative<bool*>(option.value) && option.names.empty();
}

bool is_list(const Parameter& option) {
  return std::holds_alternative<Integers*>(option.value) || std::holds_alternative<Reals*>(option.value) ||
         std::holds_alternative<Sizes*>(option.value) || std::holds_alternative<Texts*>(option.value);
}

// A value that its option refuses; Boost adds the option's name on the way out.
class BadValue : public po::error_with_option_name {
 public:
  explicit BadValue(const std::string& message)
      : po::error_with_option_name("%canonical_option%: " + message) {}
};

// What Boost needs to know of an option: the project's own parser takes the value.
class Semantic final : public po::value_semantic {
 public:
  explicit Semantic(const Parameter& option) : option_(option), default_(hw::value_text(option)) {}

  std::string name() const override {
    const std::string form = value_name(option_);
    if (form.empty()) return form;
    return default_.empty() ? form : fmt::format("{} (={})", form, default_);
  }
  unsigned min_tokens() const override { return is_flag(option_) ? 0 : 1; }
  unsigned max_tokens() const override { return min_tokens(); }
  bool is_composing() const override { return hw::is_repeated(option_); }
  bool is_required() const override { return false; }
  bool apply_default(boost::any&) const override { return false; }
  void notify(const boost::any&) const override {}
  void parse(boost::any& store, const std::vector<std::string>& tokens, bool) const override {
    if (!store.empty() && !is_composing()) throw BadValue("is given more than once");
    const bool first = store.empty();
    store = true;
    try {
      if (tokens.empty()) return hw::assign(option_, "true");
      if (first && is_composing()) std::get<Texts*>(option_.value)->clear();
      for (const std::string& token : tokens) {
        // An empty text would count as none; who means none leaves the option out.
        if (token.empty()) throw InputError(fmt::format("an empty value; allowed: {}", value_name(option_)));
        hw::assign(option_, token);
      }
    } catch (const InputError& error) {
      throw BadValue(error.what());
    }
  }

 private:
  const Parameter& option_;
  std::string default_;
};

void add_to(po::options_description& description, const OptionGroup& group) {
  // The description owns what it is given.
  for (const Parameter& option : group.options) {
    std::string names = option.key;
    if (!option.alias.empty()) names += fmt::format(",{}", option.alias);
    if (option.letter != 0) names += fmt::format(",{}", option.letter);
    description.add_options()(names.c_str(), new Semantic(option), std::string(option.sentence).c_str());
  }
}

std::vector<std::string> long_names(std::span<const OptionGroup> groups) {
  std::vector<std::string> names;
  for (const OptionGroup& group : groups) {
    for (const Parameter& option : group.options) names.push_back("--" + option.key);
  }
  return names;
}

const Parameter* find(std::span<const OptionGroup> groups, std::string_view name) {
  for (const OptionGroup& group : groups) {
    const auto option = std::ranges::find(group.options, name, &Parameter::key);
    if (option != group.options.end()) return &*option;
  }
  return nullptr;
}

std::string without_quotes(std::string text) {
  // Boost writes the option as '--name'.
  if (text.starts_with("'--")) {
    text.erase(text.find('\'', 1), 1);
    text.erase(0, 1);
  }
  return text;
}

bool has_one_of(const Parameter& option, const std::vector<std::string_view>& values) {
  const std::string text = hw::value_text(option);
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    if (std::ranges::find(values, rest.substr(0, comma)) != values.end()) return true;
    if (comma == std::string_view::npos) return false;
    rest.remove_prefix(comma + 1);
  }
}

void check_needs(std::span<const OptionGroup> groups, const Given& given) {
  for (const std::string& name : given) {
    const Parameter* option = find(groups, name);
    for (const Needs& needs : option->needs) {
      const Parameter* other = find(groups, needs.option);
      if (other == nullptr)
        throw std::logic_error(fmt::format("--{} needs --{}, which is not declared", name, needs.option));
      if (needs.values.empty() ? given.contains(needs.option) : has_one_of(*other, needs.values)) continue;
      const std::string what =
          needs.values.empty() ? value_name(*other) : fmt::format("{}", fmt::join(needs.values, "|"));
      throw InputError(fmt::format("--{}: has an effect only with --{}{}{}", name, needs.option,
                                   what.empty() ? "" : " ", what));
    }
  }
}

// Takes `--flag=false` and `--flag=true` out of the arguments: to Boost a flag has no value.
Given extract_flags_with_values(std::span<const OptionGroup> groups, std::vector<std::string>& arguments) {
  Given given;
  std::erase_if(arguments, [&](const std::string& word) {
    const std::size_t equals = word.find('=');
    if (!word.starts_with("--") || equals == std::string::npos) return false;
    const std::string name = word.substr(2, equals - 2);
    const Parameter* option = find(groups, name);
    if (option == nullptr || !is_flag(*option)) return false;
    if (!given.insert(name).second) throw InputError(fmt::format("--{}: is given more than once", name));
    try {
      hw::assign(*option, word.substr(equals + 1));
    } catch (const InputError& error) {
      throw InputError(fmt::format("--{}: {}", name, error.what()));
    }
    return true;
  });
  return given;
}

Value scalar(const Parameter& option) {
  return std::visit(
      [&](auto* p) -> Value {
        using T = std::remove_pointer_t<decltype(p)>;
        if constexpr (std::is_same_v<T, bool>) {
          if (!option.names.empty()) return hw::value_text(option);
          return *p;
        } else if constexpr (std::is_same_v<T, int> || std::is_same_v<T, std::int64_t> ||
                             std::is_same_v<T, double> || std::is_same_v<T, std::string>) {
          return *p;
        } else if constexpr (std::is_same_v<T, Sizes>) {
          // One size reads as the number that it is.
          if (p->size() == 1) return hw::format(p->front());
          Values list;
          for (const Bytes size : *p) list.push_back(hw::format(size));
          return list;
        } else if constexpr (std::is_same_v<T, Integers> || std::is_same_v<T, Reals> ||
                             std::is_same_v<T, Texts>) {
          return Values(p->begin(), p->end());
        } else {
          return hw::value_text(option);
        }
      },
      option.value);
}

}  // namespace

std::string value_name(const Parameter& option) {
  if (is_flag(option)) return "";
  const std::string many = is_list(option) && !hw::is_repeated(option) ? ",.." : "";
  if (!option.names.empty()) return fmt::format("{}{}", fmt::join(option.names, "|"), many);
  if (!option.form.empty()) return std::string(option.form);
  const auto bounds = [&](std::string_view noun) {
    if (!option.bounded) return std::string(noun) + many;
    const std::string range = option.low != option.high
                                  ? fmt::format("{}..{}", hw::format(option.low), hw::format(option.high))
                                  : fmt::format("{}..{}", option.whole_low, option.whole_high);
    return fmt::format("{}{} {}", noun, many, range);
  };
  return std::visit(
      [&](auto* p) -> std::string {
        using T = std::remove_pointer_t<decltype(p)>;
        if constexpr (std::is_same_v<T, int> || std::is_same_v<T, std::int64_t> ||
                      std::is_same_v<T, Integers>) {
          return bounds("N");
        } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, Reals>) {
          return bounds("X");
        } else if constexpr (std::is_same_v<T, Bytes> || std::is_same_v<T, Sizes>) {
          return many.empty() ? "SIZE" : "SIZE,..|SIZE..SIZE";
        } else if constexpr (std::is_same_v<T, Time>) {
          return "TIME";
        } else if constexpr (std::is_same_v<T, Bandwidth>) {
          return "RATE";
        } else {
          return "TEXT" + many;
        }
      },
      option.value);
}

void refuse_given(const Given& given, std::string_view before, std::initializer_list<const char*> options,
                  std::string_view why) {
  for (const char* option : options) {
    if (given.contains(option))
      throw InputError(fmt::format("{}--{}: has no effect {}", before, option, why));
  }
}

std::string help_of(std::span<const OptionGroup> groups) {
  std::ostringstream text;
  for (const OptionGroup& group : groups) {
    po::options_description description(group.title, kHelpWidth);
    add_to(description, group);
    text << (&group == groups.data() ? "" : "\n") << description;
  }
  return std::move(text).str();
}

Given parse_options(std::span<const OptionGroup> groups, const std::vector<std::string>& words,
                    std::string_view positional, int positional_count) {
  std::vector<std::string> arguments = words;
  Given given = extract_flags_with_values(groups, arguments);
  po::options_description options;
  for (const OptionGroup& group : groups) add_to(options, group);
  po::variables_map values;
  po::positional_options_description bare;
  if (!positional.empty()) bare.add(std::string(positional).c_str(), positional_count);
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(arguments).options(options).positional(bare).style(style).run(),
              values);
  } catch (const po::unknown_option& error) {
    // Boost names "--hiden=7" as a whole.
    std::string typed = without_quotes(error.get_option_name());
    typed.resize(std::min(typed.find('='), typed.size()));
    throw InputError(fmt::format("{}: no such option{}", typed, hw::suggestion(typed, long_names(groups))));
  } catch (const po::too_many_positional_options_error&) {
    std::string extra;
    int left = positional.empty() ? 0 : positional_count;
    for (const auto& option :
         po::command_line_parser(arguments).options(options).allow_unregistered().run().options) {
      if (option.position_key < 0 || option.value.empty() || left-- > 0) continue;
      extra = option.value.front();
      break;
    }
    throw InputError(fmt::format("'{}': unexpected argument; allowed: options, which begin with --", extra));
  } catch (const po::error& error) {
    throw InputError(without_quotes(error.what()));
  }
  for (const auto& [name, value] : values) {
    if (!given.insert(name).second) throw InputError(fmt::format("--{}: is given more than once", name));
  }
  check_needs(groups, given);
  return given;
}

Row effective_options(std::span<const Parameter> options) {
  Row row;
  for (const Parameter& option : options) {
    const std::string text = hw::value_text(option);
    if (text.empty()) continue;
    row.set(option.key, scalar(option));
  }
  return row;
}

}  // namespace cm384::studies
