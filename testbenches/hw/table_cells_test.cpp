// How the cells of a table show sizes, shares and numbers, at the limits between two forms.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/text/error.h"
#include "workloads/frame/table.h"

namespace cm384::studies::table_cells_test {
namespace {

constexpr std::array kFields{Field{"bytes", FieldType::bytes, "size", true},
                             Field{"share", FieldType::ratio, "of all", true},
                             Field{"mean_us", FieldType::number, "mean", true}};

// The last line of a table of one row, its blanks made one.
std::string cells(std::int64_t bytes, double share, double mean) {
  TablePrinter printer(kFields, "");
  std::string text = printer.add({{"bytes", bytes}, {"share", share}, {"mean_us", mean}});
  text.pop_back();
  std::string line;
  for (const char c : text.substr(text.rfind('\n') + 1))
    if (c != ' ' || (!line.empty() && line.back() != ' ')) line += c;
  return line;
}

TEST(TableCells, ShowSizesSharesAndNumbers) {
  EXPECT_EQ(cells(1023, 0.5, 9.9994), "1023 B 50.0 % 9.999");
  EXPECT_EQ(cells(1024, 1, 10), "1 KiB 100.0 % 10.00");
  EXPECT_EQ(cells(7680, 0.001, 100), "7.5 KiB 0.1 % 100.0");
  EXPECT_EQ(cells(std::int64_t{1} << 30, -0.25, 1000), "1 GiB -25.0 % 1000");
  EXPECT_EQ(cells((1 << 20) - 1024, 0, -100), "1023 KiB 0.0 % -100.0");
}

TEST(TableCells, AWidthIsGivenWhereTheFirstRowIsShort) {
  static constexpr std::array kNamed{Field{"name", FieldType::text, "of it", true, {}, 6},
                                     Field{"mean_us", FieldType::number, "mean", true}};
  TablePrinter printer(kNamed, "");
  EXPECT_EQ(printer.add({{"name", "a"}, {"mean_us", 10.0}}),
            "name     mean_us\n------  --------\na          10.00\n");
  EXPECT_EQ(printer.add({{"name", "longer"}, {"mean_us", 10.0}}), "longer     10.00\n");
}

std::string refusal(std::span<const Field> fields, std::string_view asked) {
  try {
    TablePrinter printer(fields, asked);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

// Few names are all said; of very many those that a table shows by itself.
TEST(TableColumns, AWrongNameIsToldInALineThatCanBeRead) {
  EXPECT_EQ(refusal(kFields, "bites"),
            "--columns: 'bites': no such column; did you mean bytes?; allowed: all, bytes, share, mean_us");
  std::vector<std::string> names;
  for (int k = 0; k < 100; ++k) names.push_back("field_" + std::to_string(k));
  std::vector<Field> fields{Field{"rate", FieldType::number, "usual", true}};
  for (const std::string& name : names) fields.push_back(Field{name, FieldType::number, "rare", false});
  EXPECT_EQ(refusal(fields, "x"),
            "--columns: 'x': no such column; allowed: all, rate and others, which all shows");
  EXPECT_EQ(refusal(fields, "field_7"), "");
}

}  // namespace
}  // namespace cm384::studies::table_cells_test
