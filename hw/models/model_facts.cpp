#include "hw/models/model_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"

namespace cm384::models {
namespace {

// Walks describe() and appends.
class FactLister {
 public:
  explicit FactLister(std::vector<Fact>& list, std::string prefix = "")
      : list_(list), prefix_(std::move(prefix)) {}

  template <class Section>
  void operator()(std::string_view name, Section& section) const {
    Section::describe(section, FactLister(list_, prefix_ + std::string(name) + "."));
  }
  template <class T>
  void operator()(std::string_view name, T& value, std::string_view unit, Between range,
                  std::string_view sentence) const {
    list_.push_back({prefix_ + std::string(name), unit, sentence, &value, range, {}});
  }
  template <class T>
  void operator()(std::string_view name, T& value, Words words, std::string_view sentence) const {
    list_.push_back({prefix_ + std::string(name), "", sentence, &value, {0, 0}, std::move(words)});
  }
  template <class T>
  void operator()(std::string_view name, T& value, std::string_view sentence) const {
    list_.push_back({prefix_ + std::string(name), "", sentence, &value, {0, 0}, {}});
  }

 private:
  std::vector<Fact>& list_;
  std::string prefix_;
};

constexpr std::size_t kLongestList = 1024;

[[noreturn]] void refuse_value(const Fact& fact, const Json& given) {
  std::string found = given.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (found.size() > 60) found = found.substr(0, 60) + "..";
  throw InputError(fmt::format("{}; allowed: {}", found, fact.allowed()));
}

bool is_whole(const Json& given, const Between& range) {
  // A number such as 1e3 is no whole number to JSON, and no configuration has one.
  if (!given.is_number_integer()) return false;
  if (given.is_number_unsigned() && given.get<std::uint64_t>() > static_cast<std::uint64_t>(range.high))
    return false;
  return given.get<Whole>() >= range.low && given.get<Whole>() <= range.high;
}

bool is_word(const Json& given, const Words& words) {
  return given.is_string() && std::ranges::find(words, given.get<std::string>()) != words.end();
}

}  // namespace

Json Fact::json() const {
  return std::visit([](const auto* held) { return Json(*held); }, value);
}

std::string Fact::allowed() const {
  const bool list = std::holds_alternative<Wholes*>(value) || std::holds_alternative<Words*>(value);
  const std::string many = list ? fmt::format("a list of at most {} of: ", kLongestList) : "";
  if (!words.empty()) return fmt::format("{}{}", many, fmt::join(words, ", "));
  if (std::holds_alternative<bool*>(value)) return "true, false";
  if (std::holds_alternative<double*>(value)) return "a number from 0 to 1e6";
  return fmt::format("{}a whole number from {} to {}", many, range.low, range.high);
}

void Fact::assign(const Json& given) const {
  std::visit(
      [&](auto* held) {
        using T = std::remove_pointer_t<decltype(held)>;
        if constexpr (std::is_same_v<T, Whole>) {
          if (!is_whole(given, range)) refuse_value(*this, given);
        } else if constexpr (std::is_same_v<T, double>) {
          if (!given.is_number() || !(given.get<double>() >= 0 && given.get<double>() <= 1e6))
            refuse_value(*this, given);
        } else if constexpr (std::is_same_v<T, bool>) {
          if (!given.is_boolean()) refuse_value(*this, given);
        } else if constexpr (std::is_same_v<T, std::string>) {
          if (!is_word(given, words)) refuse_value(*this, given);
        } else {
          if (!given.is_array() || given.size() > kLongestList) refuse_value(*this, given);
          for (const Json& element : given) {
            if (std::is_same_v<T, Wholes> ? !is_whole(element, range) : !is_word(element, words))
              refuse_value(*this, element);
          }
        }
        *held = given.get<T>();
      },
      value);
}

std::vector<Fact> list_facts(ModelFacts& facts) {
  std::vector<Fact> list;
  ModelFacts::describe(facts, FactLister(list));
  return list;
}

}  // namespace cm384::models
