// What the fields of a study's rows mean: declared once, beside the study. Tables, the schema of result.json
// and its page are made from these declarations; a row with another field is an error of the study.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/frame/row.h"

namespace cm384::studies {

enum class FieldType {
  text,
  integer,
  number,
  ratio,  // 1 is all of it; tables show percent
  bytes,
  boolean,
  object,  // of `parts`
  list,    // of objects of `parts`
};

// What a field says: a condition is what the row is of (an option, a case), and rows of two results are
// paired by their conditions; a measure is what came out.
enum class FieldRole : std::uint8_t { measure, condition };

// Which way a measure improves.
enum class Better : std::uint8_t { neither, lower, higher };

struct Field {
  std::string_view name;  // ends with its unit, if it has one: latency_us, bandwidth_GBps
  FieldType type = FieldType::number;
  std::string_view sentence;
  bool column = false;  // of the table, unless --columns says otherwise
  std::span<const Field> parts{};
  std::size_t width = 0;  // of a column of text whose first row may be short
  FieldRole role = FieldRole::measure;

  constexpr Field as_condition() const {
    Field field = *this;
    field.role = FieldRole::condition;
    return field;
  }
};

// Parts of fields that several studies have: of a summary (confidence.h), of each phase in a list.
inline constexpr std::array kSummaryParts{
    Field{"mean", FieldType::number, "mean", true},
    Field{"p50", FieldType::number, "median, a value that was measured"},
    Field{"p99", FieldType::number, "99th percentile, the nearest rank above: a value that was measured",
          true},
    Field{"max", FieldType::number, "largest"},
    Field{
        "ci95", FieldType::number,
        "half-width of the 95 % confidence interval of the mean (Student's t, samples taken as independent)",
        true},
};
inline constexpr std::array kPhaseParts{
    Field{"name", FieldType::text, "of the phase"},
    Field{"mean_us", FieldType::number, "mean time in it"},
};

// The unit at the end of a name, in words that JSON schemas and pages show: "us", "GB/s"; empty: none.
std::string_view unit_of(std::string_view name);

// Which way a number of this flattened name improves, by the last unit in it: of times the lower, of rates
// and throughputs the higher one.
Better better_of(std::string_view flattened);

// A row as tables and CSV have it: {"latency_us.mean": 1, "phases.send.mean_us": 51.0}; values are never
// objects or lists. Elements of a list go by their `name`, or by their number.
Row flatten(const Row& row);

// Throws std::logic_error that names the first field of a row that `fields` does not declare, or of another
// type. Any field may be empty.
void check_row(const Row& row, std::span<const Field> fields);

// The declared field of a flattened name; nullptr: none.
const Field* find_field(std::span<const Field> fields, std::string_view flattened);

// Names of the fields that are conditions, in the order of the declarations.
std::vector<std::string> condition_names(std::span<const Field> fields);

// Names of the columns of a table, flattened, in the order of the declarations.
std::vector<std::string> default_columns(std::span<const Field> fields);

}  // namespace cm384::studies
