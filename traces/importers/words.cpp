#include "traces/importers/words.h"

#include <fmt/format.h>

#include "base/text/number.h"

namespace cm384::traces {

bool WordLines::next() {
  constexpr std::string_view kBlanks = " \t\r";
  do {
    if (!lines_.next(line_)) return false;
    words_.clear();
    if (c_like_) blank_out_comments();
    for (std::string_view rest = line_;;) {
      const std::size_t begin = rest.find_first_not_of(kBlanks);
      if (begin == std::string_view::npos) break;
      rest.remove_prefix(begin);
      std::size_t end = std::min(rest.find_first_of(kBlanks), rest.size());
      if (c_like_) end = rest[0] == '{' || rest[0] == '}' ? 1 : std::min(rest.find_first_of("{}"), end);
      words_.push_back(rest.substr(0, end));
      rest.remove_prefix(end);
    }
  } while (words_.empty());
  return true;
}

void WordLines::blank_out_comments() {
  for (std::size_t at = 0; at < line_.size();) {
    const std::size_t begin = in_comment_ ? at : std::min(line_.find("/*", at), line_.find("//", at));
    if (begin == std::string::npos) return;
    if (!in_comment_ && line_[begin + 1] == '/') return line_.resize(begin);
    const std::size_t close = line_.find("*/", in_comment_ ? begin : begin + 2),
                      end = close == std::string::npos ? line_.size() : close + 2;
    in_comment_ = close == std::string::npos;
    line_.replace(begin, end - begin, end - begin, ' ');
    at = end;
  }
}

std::string_view WordLines::word(std::size_t n, std::string_view what) const {
  if (n >= words_.size()) fail(fmt::format("{}: is missing", what));
  return words_[n];
}

std::int64_t WordLines::integer(std::size_t n, std::string_view what, std::int64_t low,
                                std::int64_t high) const {
  return integer_of(word(n, what), what, low, high);
}

std::int64_t WordLines::integer_of(std::string_view text, std::string_view what, std::int64_t low,
                                   std::int64_t high) const {
  const auto value = hw::number_of<std::int64_t>(text);
  if (!value || *value < low || *value > high)
    fail(fmt::format("{}: '{}'; allowed: a whole number from {} to {}", what, text.substr(0, 60), low, high));
  return *value;
}

std::string WordLines::where() const {
  return fmt::format("{}:{}", path_, lines_.number());
}

}  // namespace cm384::traces
