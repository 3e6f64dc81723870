// Lines of words between blanks, for formats that have no columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/lines.h"

namespace cm384::traces {

class WordLines {
 public:
  // `c_like`: comments of C are left out, and braces are words of their own.
  explicit WordLines(const std::string& path, bool c_like = false)
      : path_(path), lines_(path), c_like_(c_like) {}

  // The next line that has words; false at the end.
  bool next();
  const std::vector<std::string_view>& words() const { return words_; }
  // The n-th word; fails where there are fewer.
  std::string_view word(std::size_t n, std::string_view what) const;
  std::int64_t integer(std::size_t n, std::string_view what, std::int64_t low, std::int64_t high) const;
  // An integer from a text of the line.
  std::int64_t integer_of(std::string_view text, std::string_view what, std::int64_t low,
                          std::int64_t high) const;
  [[noreturn]] void fail(const std::string& what) const { lines_.fail(what); }
  std::string where() const;

 private:
  void blank_out_comments();

  std::string path_;
  LineReader lines_;
  bool c_like_ = false, in_comment_ = false;
  std::string line_;
  std::vector<std::string_view> words_;
};

}  // namespace cm384::traces
