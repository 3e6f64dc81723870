// What the runs of a baseline gave, night by night and commit by commit: one SQLite file. From it comes since
// when a run is not good, at which commit a field moved, and what drifts too slowly for any one night to see.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/report/junit.h"
#include "lab/report/verdict.h"

namespace cm384::sweeps {

struct RecordedNight {
  std::int64_t number = 0;  // from 1 on
  std::string date, commit, subject, build;
  std::vector<std::string>
      between;  // commits since the night before, the youngest first; with their subjects
};

struct RecordedVerdict {
  std::int64_t night = 0;
  std::string run;
  report::Verdict verdict = report::Verdict::passed;
  bool passes = true;
  std::string reason, command;
  double wall_s = 0, peak_MB = 0;
};

// A number over the nights that have it.
struct Series {
  std::string run, row, field;
  struct Point {
    std::int64_t night;
    double value;
  };
  std::vector<Point> points;  // in the order of nights
};

class History {
 public:
  // Opens it, or makes it where `make`. Throws OutputError with the reason, InputError if the file is none.
  explicit History(const std::string& path, bool make = true);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // Adds a night with its verdicts and their numbers, whole or not at all; gives its number. What was not run
  // is left out. These throw OutputError.
  std::int64_t add(const report::Night& night, const std::vector<std::string>& between,
                   const std::vector<report::RunVerdict>& verdicts, const report::Baseline& baseline);

  // All nights, or the last so many, in their order.
  std::vector<RecordedNight> nights(std::size_t last = SIZE_MAX);
  std::vector<RecordedVerdict> verdicts(std::int64_t from_night = 0);
  // Of a run, in nights in which it had this command; with an empty command in all.
  std::vector<Series> series(const std::string& run, const std::string& command = "");

 private:
  struct Opened;
  std::unique_ptr<Opened> opened_;
};

// A step of a series: where its value is another one than the night before.
struct Move {
  std::int64_t night = 0, before_night = 0;
  double before = 0, after = 0;
};
std::vector<Move> moves_of(const Series& series);

// Whether a series has gone one way for nights: as far as the rule says over so many nights, each step less
// than that, and none back. From the first step on; nothing: it has not.
std::optional<Move> drift_of(const Series& series, const report::DriftRule& rule);

// Looks up what tonight's verdicts go back to, before they are added: since when a run is not good, since
// which night each field past its tolerance is so, and what has drifted, which may change a verdict from
// passed to drifted. `between`: commits since the last night.
void find_onsets(History& history, const report::Night& tonight, const std::vector<std::string>& between,
                 const report::Baseline& baseline, std::vector<report::RunVerdict>& verdicts);

}  // namespace cm384::sweeps
