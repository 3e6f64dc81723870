#include "traces/importers/imported_collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/csv_table.h"
#include "base/text/number.h"

namespace cm384::traces {
namespace {

const std::vector<std::string> kCollectiveColumns{"collective",   "name",       "bytes",    "rank",
                                                  "begin_record", "end_record", "begin_us", "end_us"};
constexpr std::int64_t kMostCount = std::int64_t{1} << 50;

}  // namespace

std::string text_of(const std::vector<ImportedCollective>& collectives) {
  std::string text = fmt::format("{}\n", fmt::join(kCollectiveColumns, ","));
  for (const ImportedCollective& c : collectives) {
    std::string name = c.name;
    std::ranges::replace_if(
        name, [](char one) { return one == ',' || one == '\n' || one == '\r'; }, ' ');
    text += fmt::format("{},{},{},{},{},{},{:.3f},{:.3f}\n", c.collective, name, c.bytes, c.rank,
                        c.begin_record, c.end_record, c.begin_us, c.end_us);
  }
  return text;
}

std::vector<ImportedCollective> read_collectives(const std::string& path) {
  hw::CsvTable table(path, kCollectiveColumns);
  std::vector<ImportedCollective> all;
  table.each([&](const FieldReader& fields) {
    const auto us = [&](std::size_t column) {
      const auto value = hw::number_of<double>(fields.text(column));
      if (!value || !(*value >= -1e15 && *value <= 1e15)) fields.fail(column, "microseconds");
      return *value;
    };
    ImportedCollective c;
    c.collective = static_cast<std::size_t>(fields.integer(0, 0, kMostCount));
    c.name = fields.text(1);
    c.bytes = fields.integer(2, 0, kMostCount);
    c.rank = fields.integer(3, 0, kMostCount);
    c.begin_record = static_cast<std::uint64_t>(fields.integer(4, 0, kMostCount));
    c.end_record = static_cast<std::uint64_t>(fields.integer(5, 0, kMostCount));
    c.begin_us = us(6);
    c.end_us = us(7);
    all.push_back(std::move(c));
  });
  return all;
}

}  // namespace cm384::traces
