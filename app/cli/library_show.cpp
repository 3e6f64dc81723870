// `cm384 library show`: what a library has, over which range its curves may be asked, and how far they miss.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "app/cli/commands.h"
#include "app/cli/common_options.h"
#include "app/cli/exit_code.h"
#include "workloads/frame/build_info.h"
#include "workloads/frame/result_json.h"
#include "workloads/frame/table.h"
#include "workloads/service/library_points.h"

namespace cm384::cli {
namespace {

using studies::Field;
using studies::FieldType;
using studies::Row;
using studies::Rows;

struct LibraryShowOptions {
  std::string library = std::string(hw::kDefaultMachine);
  RowOptions rows;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("library", self.library, studies::Form{"NAME|FILE"},
          "a machine whose library comes with cm384, or a file");
    RowOptions::describe(self.rows, visit);
  }
};

constexpr std::array kPointFields{
    Field{"kind", FieldType::text, "decode, attention, prefill, or a study", true, {}, 9},
    Field{"at", FieldType::text, "its coordinates", true, {}, 40},
    Field{"metric", FieldType::text, "what was measured", true, {}, 15},
    Field{"value", FieldType::number, "of it", true},
    Field{"p50", FieldType::number, "median, where the run gave one"},
    Field{"p99", FieldType::number, "99th percentile, where the run gave one"},
    Field{"ci95", FieldType::number, "half-width of the 95 % confidence interval, where the run gave one"},
    Field{"seconds", FieldType::number, "of one core of the host; empty: not recorded", true},
    Field{"date", FieldType::text, "when it was measured; empty: not recorded"},
    Field{"from", FieldType::text, "measured, or scaled from another machine's", true, {}, 8},
    Field{"error", FieldType::ratio,
          "of scaled points: what those that were run to check them were off by; empty: none was, or "
          "measured"},
    Field{"same_model", FieldType::boolean, "golden results have not changed since", true},
    Field{"model", FieldType::text, "fingerprint of the golden results when it was measured"},
    Field{"command", FieldType::text, "that measured it"},
};
constexpr std::array kCurveFields{
    Field{"curve", FieldType::text, "kind of its points", true, {}, 9},
    Field{"at", FieldType::text, "what they have in common", true, {}, 40},
    Field{"over", FieldType::text, "the coordinate", true, {}, 9},
    Field{"from", FieldType::number, "least that was measured", true},
    Field{"to", FieldType::number, "most", true},
    Field{"points", FieldType::integer, "of it", true},
    Field{"leave_one_out", FieldType::ratio, "worst miss of an inner point; empty: it has none", true},
};

// The number `metric.PART` where the metric is a mean, otherwise nothing.
studies::Value part_of(const service::LibraryPoint& point, std::string_view part) {
  std::string name = point.values.front().first;
  if (!name.ends_with(".mean")) return {};
  name.replace(name.size() - 4, 4, part);
  const auto found = std::ranges::find(point.values, name, &std::pair<std::string, double>::first);
  return found == point.values.end() ? studies::Value() : studies::Value(found->second);
}

Row row_of(const service::LibraryPoint& point) {
  Row row{{"kind", point.kind}, {"at", point.place()}};
  const bool known = !point.values.empty();
  row.set("metric", known ? studies::Value(point.values.front().first) : studies::Value());
  row.set("value", known ? studies::Value(point.values.front().second) : studies::Value());
  for (const char* part : {"p50", "p99", "ci95"})
    row.set(part, known ? part_of(point, part) : studies::Value());
  row.set("seconds", point.seconds > 0 ? studies::Value(point.seconds) : studies::Value());
  row.set("date", point.date.empty() ? studies::Value() : studies::Value(point.date));
  row.set("from", point.from.empty() ? "measured" : point.from);
  row.set("error", point.error > 0 ? studies::Value(point.error) : studies::Value());
  row.set("same_model", studies::is_same_model(point.model));
  row.set("model", point.model).set("command", point.command);
  return row;
}

Row row_of(const service::LibraryCurve& curve) {
  Row row{{"curve", curve.kind}, {"at", service::text_of(curve.at)}, {"over", curve.over}};
  row.set("from", curve.points.front().first).set("to", curve.points.back().first);
  row.set("points", curve.points.size());
  row.set("leave_one_out",
          curve.points.size() > 2 ? studies::Value(curve.leave_one_out()) : studies::Value());
  return row;
}

int show(const Program&, const LibraryShowOptions& options, const studies::Given&) {
  studies::TablePrinter printer(kPointFields, options.rows.columns), curve_printer(kCurveFields, "");
  const service::Library library = service::Library::load(options.library);
  const std::vector<service::LibraryPoint> measured = service::points_of(library);
  Rows points, curves;
  for (const service::LibraryPoint& point : measured) points.push_back(row_of(point));
  for (const service::LibraryCurve& curve : service::curves_of(measured)) curves.push_back(row_of(curve));
  if (options.rows.format == "json") {
    const Json document{{"machine", library.machine()},
                        {"changes", library.changes()},
                        {"model", studies::build_info().model},
                        {"points", studies::to_json(points)},
                        {"curves", studies::to_json(curves)}};
    print_now(document.dump(2) + "\n");
    return kDone;
  }
  if (options.rows.format == "csv") {
    print_now(studies::to_csv(points));
    return kDone;
  }
  for (const Row& row : points) print_now(printer.add(row));
  const auto old =
      std::ranges::count_if(measured, [](const auto& point) { return !studies::is_same_model(point.model); });
  const auto [first, last] = service::dates_of(measured);
  const std::string when = first.empty()   ? ""
                           : first == last ? fmt::format(" of {}", first)
                                           : fmt::format(" of {} to {}", first, last);
  print_now(fmt::format("\n{}: {} points{}; {} of them from before golden results changed\n",
                        library.machine_text(), points.size(), when, old));
  const auto scaled = std::ranges::count_if(measured, [](const auto& point) { return !point.from.empty(); });
  double error = 0;
  for (const service::LibraryPoint& point : measured) error = std::max(error, point.error);
  if (scaled > 0)
    print_now(fmt::format(
        "{} of them are scaled from another machine's; {}\n", scaled,
        error > 0 ? fmt::format("those that were run to check it were off by {:.1f} % at worst", error * 100)
                  : "none was run to check it"));
  if (!curves.empty()) print_now("\n");
  for (const Row& row : curves) print_now(curve_printer.add(row));
  return kDone;
}

}  // namespace

constinit const Command kLibraryShowCommand = make_command<LibraryShowOptions, show>(
    "library show", "[NAME|FILE]", "measured times that the service stands on, and its curves", "library");

}  // namespace cm384::cli
