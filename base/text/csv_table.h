// CSV files with a header, whose columns are checked and named in messages. base/text/lines.h says how fields
// are cut.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/lines.h"

namespace cm384::hw {

class CsvTable {
 public:
  using Names = std::vector<std::string>;

  enum class Order : std::uint8_t { fixed, any };
  // The first line names the columns: those required, in their order, then any of the further ones; or all of
  // them in any order, where column() tells which is which. Throws InputError.
  CsvTable(const std::string& path, Names required, const Names& further = {}, Order order = Order::fixed);

  // Every line behind the header but blank ones. Throws InputError for another number of fields.
  template <class Take>
  void each(Take&& take) {
    std::vector<std::string_view> fields;
    while (next(fields)) take(FieldReader(lines_, fields, names_));
  }
  // The text of a further column; empty where the file has none.
  std::string_view further(const FieldReader& fields, std::string_view name) const;
  std::size_t column(std::string_view name) const;
  const LineReader& lines() const { return lines_; }
  const Names& names() const { return names_; }

 private:
  bool next(std::vector<std::string_view>& fields);

  LineReader lines_;
  Names names_;
  std::string line_;
};

}  // namespace cm384::hw
