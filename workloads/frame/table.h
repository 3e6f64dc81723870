// Rows as a table for people and as CSV for programs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/frame/fields.h"

namespace cm384::studies {

// A table that is printed row by row, as the rows come. Columns are those that the fields declare for tables,
// or those asked for: "all", or names as flatten() gives them, separated by commas. Ratios are shown as
// percent, bytes with their unit. Widths follow the names, the first row and what numbers usually take.
class TablePrinter {
 public:
  // Throws InputError for a name that `fields` does not declare.
  TablePrinter(std::span<const Field> fields, std::string_view asked);

  // The lines of a row, those of the heading before the first.
  std::string add(const Row& row);

 private:
  struct Column {
    std::string name;
    const Field* field = nullptr;
    std::size_t width = 0;
    bool right = false;
  };
  void begin(const Row& flat);

  std::span<const Field> fields_;
  bool all_ = false;
  bool begun_ = false;
  std::vector<Column> columns_;
};

// All columns of rows without declarations, each as wide as it must be.
std::string to_table(const Rows& rows);

// All columns, numbers as exact as they are.
std::string to_csv(const Rows& rows);

}  // namespace cm384::studies
