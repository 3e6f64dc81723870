#include "lab/sweeps/history.h"

#include <map>
#include <sstream>

#include "base/text/error.h"
#include "lab/runs/database.h"

namespace cm384::sweeps {
namespace {

constexpr const char* kHistoryTables = R"(
  CREATE TABLE nights(
    number INTEGER PRIMARY KEY, date TEXT NOT NULL, commit_id TEXT NOT NULL, subject TEXT NOT NULL,
    build TEXT NOT NULL, commits_since TEXT NOT NULL);
  CREATE TABLE verdicts(
    night INTEGER NOT NULL, run TEXT NOT NULL, verdict TEXT NOT NULL, passes INTEGER NOT NULL,
    reason TEXT NOT NULL, command TEXT NOT NULL, wall_s REAL NOT NULL, peak_MB REAL NOT NULL,
    PRIMARY KEY(night, run)) WITHOUT ROWID;
  CREATE TABLE fields(
    number INTEGER PRIMARY KEY, run TEXT NOT NULL, row TEXT NOT NULL, field TEXT NOT NULL,
    UNIQUE(run, row, field));
  CREATE TABLE numbers(
    field INTEGER NOT NULL, night INTEGER NOT NULL, value REAL NOT NULL,
    PRIMARY KEY(field, night)) WITHOUT ROWID;
)";

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

struct History::Opened : runs::Database {
  Opened(const std::string& path, bool make)
      : runs::Database(path, {.application = 0x434d3848,  // "CM8H"
                              .version = 1,
                              .what = "history of nights",
                              .tables = kHistoryTables,
                              .may_make = make}) {}
};

History::History(const std::string& path, bool make) : opened_(std::make_unique<Opened>(path, make)) {}

History::~History() = default;

std::int64_t History::add(const report::Night& night, const std::vector<std::string>& between,
                          const std::vector<report::RunVerdict>& verdicts, const report::Baseline& baseline) {
  runs::Transaction transaction(*opened_);
  runs::Statement(*opened_,
                  "INSERT INTO nights(date, commit_id, subject, build, commits_since) VALUES(?, ?, ?, ?, ?)",
                  night.date, night.commit, night.subject, night.build, joined(between))
      .step();
  runs::Statement last(*opened_, "SELECT last_insert_rowid()");
  last.step();
  const std::int64_t number = last.integer(0);
  for (const report::RunVerdict& run : verdicts) {
    if (run.verdict == report::Verdict::not_run) continue;
    runs::Statement(*opened_, "INSERT INTO verdicts VALUES(?, ?, ?, ?, ?, ?, ?, ?)", number, run.name,
                    report::word_of(run.verdict), run.passes(baseline) ? 1 : 0, run.reason, run.command,
                    run.wall_s, run.peak_MB)
        .step();
    if (run.document.is_null()) continue;
    for (const report::MeasuredNumber& measured : report::measured_numbers(run.document)) {
      runs::Statement(*opened_, "INSERT OR IGNORE INTO fields(run, row, field) VALUES(?, ?, ?)", run.name,
                      measured.row, measured.field)
          .step();
      runs::Statement(
          *opened_,
          "INSERT OR REPLACE INTO numbers SELECT number, ?, ? FROM fields WHERE run = ? AND row = ? AND "
          "field = ?",
          number, measured.value, run.name, measured.row, measured.field)
          .step();
    }
  }
  transaction.commit();
  return number;
}

std::vector<RecordedNight> History::nights(std::size_t last) {
  std::vector<RecordedNight> nights;
  runs::Statement row(
      *opened_, "SELECT number, date, commit_id, subject, build, commits_since FROM nights ORDER BY number");
  while (row.step())
    nights.push_back(
        {row.integer(0), row.text(1), row.text(2), row.text(3), row.text(4), lines_of(row.text(5))});
  if (nights.size() > last) nights.erase(nights.begin(), nights.end() - static_cast<std::ptrdiff_t>(last));
  return nights;
}

std::vector<RecordedVerdict> History::verdicts(std::int64_t from_night) {
  std::vector<RecordedVerdict> verdicts;
  runs::Statement row(
      *opened_,
      "SELECT night, run, verdict, passes, reason, command, wall_s, peak_MB FROM verdicts WHERE night "
      ">= ? ORDER BY night, run",
      from_night);
  while (row.step()) {
    // A verdict of a later version: whether it passes is known all the same.
    const bool passes = row.integer(3) != 0;
    verdicts.push_back(
        {row.integer(0), row.text(1),
         report::verdict_of(row.text(2)).value_or(passes ? report::Verdict::passed : report::Verdict::moved),
         passes, row.text(4), row.text(5), row.real(6), row.real(7)});
  }
  return verdicts;
}

std::vector<Series> History::series(const std::string& run, const std::string& command) {
  std::vector<Series> all;
  runs::Statement row(
      *opened_,
      "SELECT fields.row, fields.field, numbers.night, numbers.value FROM fields JOIN numbers ON "
      "numbers.field = fields.number JOIN verdicts ON verdicts.night = numbers.night AND verdicts.run "
      "= fields.run WHERE fields.run = ? AND (? = '' OR verdicts.command = ?) ORDER BY fields.number, "
      "numbers.night",
      run, command, command);
  while (row.step()) {
    std::string of_row = row.text(0), field = row.text(1);
    if (all.empty() || all.back().row != of_row || all.back().field != field)
      all.push_back({run, std::move(of_row), std::move(field), {}});
    all.back().points.push_back({row.integer(2), row.real(3)});
  }
  return all;
}

}  // namespace cm384::sweeps
