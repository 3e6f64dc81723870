#include "base/text/lines.h"

#include <fmt/format.h>

#include "base/text/error.h"
#include "base/text/number.h"
#include "base/text/unpacked_input.h"

namespace cm384 {
namespace {

constexpr std::size_t kLongestLine = 4u << 20;

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

}  // namespace

LineReader::LineReader(const std::string& path) : path_(path), stream_(open_unpacked(path)) {
  // A byte order mark, with which some tools begin a text, is no part of its first field.
  if (stream_->peek() == 0xef) stream_->ignore(3);
}

bool LineReader::next(std::string& line) {
  line.clear();
  ++number_;
  std::streambuf& from = *stream_->rdbuf();
  for (int c = from.sbumpc(); c != std::istream::traits_type::eof(); c = from.sbumpc()) {
    if (c == '\n') return true;
    if (line.size() == kLongestLine) fail("line: longer than 4 MiB");
    line.push_back(static_cast<char>(c));
  }
  return !line.empty();
}

void LineReader::fail(const std::string& what) const {
  throw InputError(fmt::format("{}:{}: {}", path_, number_, what));
}

std::vector<std::string_view> split_fields(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t end = line.find(separator);
    fields.push_back(without_blanks(line.substr(0, end)));
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + 1);
  }
}

std::int64_t FieldReader::integer(std::size_t k, std::int64_t low, std::int64_t high) const {
  const auto value = hw::number_of<std::int64_t>(fields_[k]);
  if (!value || *value < low || *value > high)
    fail(k, fmt::format("a whole number from {} to {}", low, high));
  return *value;
}

void FieldReader::fail(std::size_t k, const std::string& allowed) const {
  lines_.fail(fmt::format("{}: '{}'; allowed: {}", names_[k], fields_[k].substr(0, 80), allowed));
}

}  // namespace cm384
