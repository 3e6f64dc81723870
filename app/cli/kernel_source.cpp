#include "app/cli/kernel_source.h"

#include <algorithm>
#include <regex>

#include "base/text/error.h"

namespace cm384::cli {

std::string without_aicore(std::string source) {
  // A name follows: of a type, or a specifier.
  static const std::regex attribute("\\[\\s*aicore\\s*\\](?=\\s*[A-Za-z_])");
  std::smatch found;
  auto from = source.cbegin();
  while (std::regex_search(from, source.cend(), found, attribute)) {
    const auto at = source.begin() + (found[0].first - source.cbegin());
    std::replace_if(
        at, at + found.length(), [](char c) { return c != '\n'; }, ' ');
    from = source.cbegin() + (at - source.begin()) + found.length();
  }
  return source;
}

std::string kind_in_source(std::string_view source) {
  static const std::regex kind(
      "__global__\\s+(__vector__|__cube__|__mix__\\s*\\(\\s*(\\d)\\s*,\\s*(\\d)\\s*\\))");
  std::match_results<std::string_view::const_iterator> found;
  if (!std::regex_search(source.begin(), source.end(), found, kind)) return {};
  const std::string word = found[1];
  if (word == "__vector__") return "aiv";
  if (word == "__cube__") return "aic";
  const std::string group = found[2].str() + found[3].str();
  if (group == "12") return "mix";
  if (group == "10") return "aic";
  if (group == "01") return "aiv";
  throw InputError("kernel build: " + word +
                   ": groups are of one cube core and two vector cores: docs/ascend-c.md");
}

}  // namespace cm384::cli
