// Lines of a text file, and the fields of a CSV line: shared by all readers of text.
#pragma once

#include <concepts>
#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cm384 {

class LineReader {
 public:
  // A file that gzip packed is unpacked. Throws InputError where it cannot be opened.
  explicit LineReader(const std::string& path);
  // False at the end. Throws InputError for a line of more than 4 MiB.
  bool next(std::string& line);
  std::uint64_t number() const { return number_; }  // of the line given last, from 1
  // Throws InputError: "path:line: what".
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string path_;
  std::unique_ptr<std::istream> stream_;
  std::uint64_t number_ = 0;
};

// A line's fields between commas, without blanks around them; nothing is quoted in these files.
std::vector<std::string_view> split_fields(std::string_view line, char separator = ',');
// Of a text that is gone when they are read: refused.
template <std::same_as<std::string> Text>
std::vector<std::string_view> split_fields(Text&& line, char separator = ',') = delete;

// Whole numbers in a field; fail() of `lines` names the field where it holds none.
class FieldReader {
 public:
  FieldReader(const LineReader& lines, std::vector<std::string_view> fields,
              const std::vector<std::string>& names)
      : lines_(lines), fields_(std::move(fields)), names_(names) {}

  std::string_view text(std::size_t k) const { return fields_[k]; }
  std::int64_t integer(std::size_t k, std::int64_t low, std::int64_t high) const;
  [[noreturn]] void fail(std::size_t k, const std::string& allowed) const;

 private:
  const LineReader& lines_;
  std::vector<std::string_view> fields_;
  const std::vector<std::string>& names_;
};

}  // namespace cm384
