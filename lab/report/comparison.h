// Two results, field by field: what moved, by how much, and whether that is allowed.
//
// Rows are matched by their conditions (row_conditions.h). A row without its counterpart is past every
// tolerance.
// The objects `invocation` (command line, date) and `simulator` (wall time, memory, build) are not looked at.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/report/result_file.h"
#include "lab/report/row_conditions.h"
#include "lab/report/tolerances.h"
#include "workloads/frame/row.h"

namespace cm384::report {

struct Change {
  std::string field;               // flattened: "latency_us.mean", "phases.send.mean_us"
  Json before, after;              // null also where there is no such field
  std::optional<double> relative;  // of two numbers, where `before` is not 0
  std::string allowed;
  bool within = false;
  // Of a number of which both results have the values of the same members of an ensemble: whether at least
  // nine in ten of them change in the same direction.
  std::optional<bool> significant{};
  // Of their relative changes the middle nine in ten, as [low, high]: what the members share is in both
  // results and is none of it. Nothing where a member's value before is 0.
  std::optional<std::pair<double, double>> interval{};
};

struct RowComparison {
  std::string key;  // its conditions: "op=read target=npu bytes=512"
  bool in_before = true, in_after = true;
  std::size_t fields = 0;       // compared
  std::vector<Change> changes;  // those that moved

  bool within() const;
};

struct ResultComparison {
  std::string study;
  std::vector<Change> conditions;   // options, machine, seed, inputs: why figures may have moved
  std::vector<RowComparison> rows;  // in the order of the first result, then those of the second alone
  std::vector<Change> whole;        // `complete`, `notes`

  std::size_t fields() const;
  std::size_t moved() const;
  // Everything but the conditions is within its tolerance.
  bool within() const;
  // No condition differs, but for those that the first result does not know: an option that came since.
  bool same_conditions() const;
};

// Throws InputError where they are of different studies.
ResultComparison compare_results(const Json& before, const Json& after, const Tolerances& tolerances);

// Each leaf of the rows that is no condition, flattened.
void for_each_measure(
    const Json& document,
    const std::function<void(const std::string& row, const std::string& field, const Json& value)>& visit);

// One row per change: row, field, before, after, change, allowed, status.
studies::Rows change_rows(const ResultComparison& comparison);
// "4 rows, 32 fields compared: 3 moved, 1 past its tolerance".
std::string summary_line(const ResultComparison& comparison);

}  // namespace cm384::report
