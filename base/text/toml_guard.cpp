#include "base/text/toml_guard.h"

#include <fmt/format.h>

#include <utility>

#include "base/text/error.h"

namespace cm384::hw {
namespace {

// Where a character stands: in a comment, in a string (with the quotes that end it), or in neither.
class Place {
 public:
  bool in_code() const { return !comment_ && quotes_.empty(); }

  // Takes the character at the front of `rest`; gives how many characters that was.
  std::size_t take(std::string_view rest) {
    const char c = rest.front();
    if (c == '\n') {
      comment_ = false;
      if (quotes_.size() == 1) quotes_ = {};
    } else if (comment_) {
      return 1;
    } else if (!quotes_.empty()) {
      if (c == '\\' && quotes_.front() == '"' && rest.size() > 1 && rest[1] != '\n') return 2;
      if (rest.starts_with(quotes_)) return std::exchange(quotes_, {}).size();
    } else if (c == '#') {
      comment_ = true;
    } else if (c == '"' || c == '\'') {
      quotes_ = rest.starts_with(R"(""")") || rest.starts_with("'''") ? rest.substr(0, 3) : rest.substr(0, 1);
      return quotes_.size();
    }
    return 1;
  }

 private:
  bool comment_ = false;
  std::string_view quotes_;
};

}  // namespace

void guard_toml(std::string_view text, const std::string& file) {
  // A key stands on one line. Dots of sentences count too; no line of ours comes near.
  constexpr int kMostDots = 64;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  int line = 1, dots = 0;
  Place place;
  while (!text.empty()) {
    const char c = text.front();
    if (c == '.' && ++dots > kMostDots)
      throw InputError(
          fmt::format("{}:{}: has more than {} dots; allowed: keys of a few parts", file, line, kMostDots));
    if (static_cast<unsigned char>(c) >= 0x80 && place.in_code())
      throw InputError(fmt::format(
          "{}:{}: not valid TOML: a character outside ASCII; allowed in strings and comments", file, line));
    if (c == '\n') {
      ++line;
      dots = 0;
    }
    text.remove_prefix(place.take(text));
  }
}

}  // namespace cm384::hw
