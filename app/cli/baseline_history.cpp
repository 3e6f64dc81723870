// `cm384 baseline history`: what the nights of a baseline gave, and at which commit a number moved.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/cli/baseline_runs.h"
#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "base/text/error.h"
#include "base/text/nearest_name.h"
#include "lab/report/tolerances.h"
#include "lab/sweeps/history.h"
#include "workloads/frame/result_json.h"
#include "workloads/frame/table.h"

namespace cm384::cli {
namespace {

using studies::Form;
using studies::Range;
using studies::Row;
using studies::Rows;
using sweeps::RecordedNight;

struct HistoryOptions {
  std::string file, run, field;
  int nights = 0;
  std::string format = "table";

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("file", self.file, Form{"FILE"}, "made by `cm384 baseline check --history FILE`");
    visit("run", self.run, Form{"NAME"}, "every change of every number of this run instead, with its commit");
    visit("field", self.field, Form{"PATTERN"}, "only changes of these fields, such as latency_us.*",
          studies::Needs{"run", {}});
    visit("nights", self.nights, Range{0, 1'000'000}, "of them at most, the latest ones; 0: all");
    visit("format", self.format, studies::OneOf{{"table", "json", "csv"}}, "of the list, on standard output");
  }
};

void print(const Rows& rows, const std::string& format) {
  if (format == "json") {
    fmt::print("{}\n", studies::to_json(rows).dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    fmt::print("{}", format == "csv" ? studies::to_csv(rows) : studies::to_table(rows));
  }
}

// One row per night: what became of its runs.
Rows night_rows(sweeps::History& history, const std::vector<RecordedNight>& nights) {
  Rows rows;
  const auto verdicts =
      nights.empty() ? std::vector<sweeps::RecordedVerdict>{} : history.verdicts(nights.front().number);
  for (const RecordedNight& night : nights) {
    std::string bad;
    int passed = 0, failed = 0;
    for (const sweeps::RecordedVerdict& one : verdicts) {
      if (one.night != night.number) continue;
      (one.passes ? passed : failed) += 1;
      if (!one.passes || one.verdict != report::Verdict::passed)
        bad += fmt::format("{}{}: {}", bad.empty() ? "" : ", ", one.run, report::text_of(one.verdict));
    }
    rows.push_back({{"night", night.number},
                    {"date", night.date},
                    {"commit", night.commit},
                    {"subject", night.subject},
                    {"passed", passed},
                    {"failed", failed},
                    {"runs", bad}});
  }
  return rows;
}

// One row per step of a number.
Rows move_rows(sweeps::History& history, const std::vector<RecordedNight>& nights,
               const HistoryOptions& options) {
  Rows rows;
  for (const sweeps::Series& series : history.series(options.run)) {
    if (!options.field.empty() && !report::fits(options.field, series.field)) continue;
    for (const sweeps::Move& move : sweeps::moves_of(series)) {
      const auto night = std::ranges::find(nights, move.night, &RecordedNight::number);
      if (night == nights.end()) continue;
      rows.push_back({{"night", move.night},
                      {"date", night->date},
                      {"commit", night->commit},
                      {"subject", night->subject},
                      {"row", series.row},
                      {"field", series.field},
                      {"before", move.before},
                      {"after", move.after},
                      {"change", move.before == 0 ? studies::Value()
                                                  : studies::Value(fmt::format(
                                                        "{:+.3g} %", (move.after - move.before) /
                                                                         std::abs(move.before) * 100))}});
    }
  }
  std::ranges::stable_sort(
      rows, [](const Row& a, const Row& b) { return *a["night"].integer() < *b["night"].integer(); });
  return rows;
}

int show(const Program&, const HistoryOptions& options, const studies::Given&) {
  if (options.file.empty()) throw InputError("baseline history: no file given; allowed: a history of nights");
  sweeps::History history(options.file, false);
  const auto nights =
      history.nights(options.nights == 0 ? SIZE_MAX : static_cast<std::size_t>(options.nights));
  if (options.run.empty()) {
    print(night_rows(history, nights), options.format);
    return kDone;
  }
  std::vector<std::string> names;
  for (const sweeps::RecordedVerdict& one : history.verdicts()) {
    if (std::ranges::find(names, one.run) == names.end()) names.push_back(one.run);
  }
  if (std::ranges::find(names, options.run) == names.end())
    throw InputError(fmt::format("--run: '{}': no such run{}; allowed: {}", options.run,
                                 hw::suggestion(options.run, names), fmt::join(names, ", ")));
  const Rows rows = move_rows(history, nights, options);
  print(rows, options.format);
  if (rows.empty() && options.format == "table")
    fmt::print("{}: no number has moved in {} nights\n", options.run, nights.size());
  return kDone;
}

}  // namespace

Json history_data(sweeps::History& history, const std::vector<report::RunVerdict>& verdicts) {
  constexpr std::size_t kShown = 60;
  const std::vector<RecordedNight> nights = history.nights(kShown);
  const std::int64_t first = nights.empty() ? 0 : nights.front().number;
  Json listed = Json::array(), of_runs = Json::object(), series = Json::object();
  for (const RecordedNight& night : nights)
    listed.push_back({{"number", night.number},
                      {"date", night.date},
                      {"commit", night.commit},
                      {"subject", night.subject},
                      {"between", night.between}});
  for (const sweeps::RecordedVerdict& one : history.verdicts(first))
    of_runs[one.run].push_back({{"night", one.night},
                                {"verdict", report::word_of(one.verdict)},
                                {"passes", one.passes},
                                {"reason", one.reason}});
  for (const report::RunVerdict& run : verdicts) {
    Json list = Json::array();
    for (const sweeps::Series& one : history.series(run.name, run.command)) {
      Json points = Json::array();
      for (const auto& point : one.points) {
        if (point.night >= first) points.push_back({point.night, point.value});
      }
      // The first number of a run, and whatever moves.
      const bool moves = std::ranges::any_of(points, [&](const Json& p) { return p[1] != points[0][1]; });
      if (moves || list.empty()) list.push_back({{"row", one.row}, {"field", one.field}, {"points", points}});
    }
    series[run.name] = std::move(list);
  }
  return {{"nights", listed}, {"verdicts", of_runs}, {"series", series}};
}

constinit const Command kBaselineHistoryCommand = make_command<HistoryOptions, show>(
    "baseline history", "FILE", "verdicts of past nights, and the commit that moved a number", "file");

}  // namespace cm384::cli
