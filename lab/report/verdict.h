// What became of the runs of a baseline in one night: a verdict for each, and what it stands on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/report/baseline.h"
#include "lab/report/comparison.h"

namespace cm384::report {

// The worst first.
enum class Verdict : std::uint8_t {
  crashed,       // an internal error, a signal, no result
  faulted,       // the simulated machine faulted
  hung,          // it hung
  timed_out,     // past its limit, of the host's time or of simulated time
  refused,       // bad input
  check_failed,  // a check of the study failed
  worse,         // a field is past its tolerance, and that is worse
  moved,         // a field is past its tolerance, rows are missing or new
  differs,       // options, machine, seed or inputs are others than those of the golden result
  no_golden,     // there is no golden result to compare with
  drifted,       // within tolerance, but it has gone one way for nights
  improved,      // past tolerance only where that is better
  passed,
  not_run  // interrupted before
};

// "time limit", "no golden result"; and as a word without blanks, for JSON and attributes: "time-limit".
std::string_view text_of(Verdict verdict);
std::string word_of(Verdict verdict);
// What a word stands for; nothing: for none.
std::optional<Verdict> verdict_of(std::string_view word);

// A field that has drifted, or the night from which on it is past its tolerance; from the history.
struct Onset {
  std::string row{}, field{};       // empty: the run as a whole
  std::string commit{}, subject{};  // the first bad one
  std::string date{};
  std::string good_commit{};           // the last night's before; empty: there is none
  std::vector<std::string> between{};  // commits from there to the first bad one, the youngest first
  std::optional<double> drift{};       // a share, where it has drifted
  int nights = 0;                      // since, tonight included
  double before = 0, after = 0;        // of a drift
};

struct RunVerdict {
  std::string name;
  Verdict verdict = Verdict::not_run;
  std::string reason;   // one line; empty: it passed
  std::string report;   // of the machine that hung or faulted: several lines
  std::string command;  // that repeats it
  std::string folder;   // of what it left, kept; empty: it is not
  double wall_s = 0, peak_MB = 0, simulated_us = 0;
  std::optional<ResultComparison> comparison{};
  Json rows = Json::array();  // of the fresh result
  Json document;              // the fresh result as golden_text() keeps it; null: there is none
  std::vector<Onset> onsets{};

  bool passes(const Baseline& baseline) const;
};

// How a run ended, beside its result.
struct RunEnd {
  int exit_code = 0;
  std::string reason;      // its last message
  bool timed_out = false;  // ended by the limit of the host's time
};

// The verdict of a run by how it ended and by its golden result (nothing: there is none). `fresh`: its
// result, null where it wrote none. Sets verdict, reason, report, comparison, rows and document.
void judge(RunVerdict& made, const BaselineRun& run, const RunEnd& end, const Json& fresh,
           const std::optional<Json>& golden);

// One line for the end of a night: "12 runs: 1 fault, 1 hang, 1 improved, 9 passed".
std::string summary_line(const std::vector<RunVerdict>& verdicts);

// Every measured number of the rows, for the history: row key, flattened field, value.
struct MeasuredNumber {
  std::string row, field;
  double value = 0;
};
std::vector<MeasuredNumber> measured_numbers(const Json& document);

}  // namespace cm384::report
