// Since when, and by which commit: what a history says of tonight's verdicts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lab/sweeps/history.h"
#include "workloads/frame/fields.h"

namespace cm384::sweeps {
namespace {

using report::Onset;
using report::RunVerdict;
using report::Verdict;

// Nights of the history and tonight, which has the number behind the last.
class Nights {
 public:
  Nights(History& history, const report::Night& tonight, const std::vector<std::string>& between)
      : nights_(history.nights()) {
    RecordedNight now{nights_.empty() ? 1 : nights_.back().number + 1,
                      tonight.date,
                      tonight.commit,
                      tonight.subject,
                      tonight.build,
                      between};
    nights_.push_back(std::move(now));
  }
  std::int64_t tonight() const { return nights_.back().number; }

  // The onset at a night; good: the last one before it.
  Onset onset(std::int64_t first, std::optional<std::int64_t> good) const {
    Onset made;
    const RecordedNight& night = at(first);
    made.commit = night.commit;
    made.subject = night.subject;
    made.date = night.date;
    made.nights = static_cast<int>(&nights_.back() - &night) + 1;
    if (!good) return made;
    made.good_commit = at(*good).commit;
    // Nights in between, in which the run gave no verdict, count with theirs.
    for (const RecordedNight* n = &night; n->number > *good; --n)
      made.between.insert(made.between.end(), n->between.begin(), n->between.end());
    return made;
  }

 private:
  const RecordedNight& at(std::int64_t number) const {
    return *std::ranges::find(nights_, number, &RecordedNight::number);
  }
  std::vector<RecordedNight> nights_;
};

// A run that did not end: since the first of the nights in a row in which it did not.
Onset since_it_ended(const Nights& nights, const RunVerdict& run,
                     const std::vector<RecordedVerdict>& before) {
  std::int64_t first = nights.tonight();
  for (auto past = before.rbegin(); past != before.rend(); ++past) {
    if (past->run != run.name) continue;
    if (past->verdict > Verdict::check_failed) return nights.onset(first, past->night);
    first = past->night;
  }
  return nights.onset(first, std::nullopt);
}

// A field past its tolerance: since the first of the nights in a row in which its value was so.
Onset since_it_moved(const Nights& nights, const report::Change& change, const report::Tolerance& tolerance,
                     const Series* series) {
  std::int64_t first = nights.tonight();
  std::optional<std::int64_t> good;
  const double golden = change.before.get<double>();
  if (series != nullptr) {
    for (auto past = series->points.rbegin(); past != series->points.rend(); ++past) {
      if (tolerance.allows(golden, past->value)) {
        good = past->night;
        break;
      }
      first = past->night;
    }
  }
  return nights.onset(first, good);
}

const Series* find_series(const std::vector<Series>& all, const std::string& row, const std::string& field) {
  const auto found = std::ranges::find_if(
      all, [&](const Series& series) { return series.row == row && series.field == field; });
  return found == all.end() ? nullptr : &*found;
}

void add_moved(const Nights& nights, const report::Tolerances& tolerances, const std::vector<Series>& series,
               RunVerdict& run) {
  for (const report::RowComparison& row : run.comparison->rows) {
    for (const report::Change& change : row.changes) {
      if (change.within || !change.before.is_number() || !change.after.is_number()) continue;
      Onset onset = since_it_moved(nights, change, tolerances.of(change.field),
                                   find_series(series, row.key, change.field));
      onset.row = row.key;
      onset.field = change.field;
      run.onsets.push_back(std::move(onset));
    }
  }
  // The longest standing first: what it began with.
  std::ranges::stable_sort(run.onsets, std::greater{}, &Onset::nights);
}

// The value of the golden result, where tonight's is another.
std::optional<double> golden_value(const RunVerdict& run, const report::MeasuredNumber& number) {
  for (const report::RowComparison& row : run.comparison->rows) {
    if (row.key != number.row) continue;
    for (const report::Change& change : row.changes) {
      if (change.field == number.field && change.before.is_number()) return change.before.get<double>();
    }
  }
  return std::nullopt;
}

// A drift that ends tonight, or one of before that has not been gone back on, nor been taken over into the
// golden result.
std::optional<Move> drift_until(const Series& series, const report::DriftRule& rule,
                                std::optional<double> golden) {
  if (auto drift = drift_of(series, rule)) return drift;
  if (!golden || *golden == 0) return std::nullopt;
  const double now = series.points.back().value, moved = (now - *golden) / std::abs(*golden);
  if (std::abs(moved) < rule.share * (1 - 1e-9)) return std::nullopt;
  Series past = series;
  while (past.points.size() > static_cast<std::size_t>(rule.nights) + 1) {
    past.points.pop_back();
    auto drift = drift_of(past, rule);
    if (!drift) continue;
    drift->after = now;
    if ((drift->after > drift->before) == (moved > 0)) return drift;
  }
  return std::nullopt;
}

// What has drifted; what is past its tolerance anyway, or better, is no drift.
void add_drifts(const Nights& nights, const report::Baseline& baseline, const report::Tolerances& tolerances,
                const std::vector<Series>& past, RunVerdict& run) {
  if (baseline.drift.share <= 0) return;
  for (const report::MeasuredNumber& number : report::measured_numbers(run.document)) {
    const Series* known = find_series(past, number.row, number.field);
    const report::Tolerance& tolerance = tolerances.of(number.field);
    if (known == nullptr || tolerance.ignore) continue;
    Series series = *known;
    series.points.push_back({nights.tonight(), number.value});
    const auto drift = drift_until(series, baseline.drift, golden_value(run, number));
    if (!drift || tolerance.improves(number.field, drift->before, drift->after)) continue;
    Onset onset = nights.onset(drift->night, drift->before_night);
    onset.row = number.row;
    onset.field = number.field;
    onset.before = drift->before;
    onset.after = drift->after;
    onset.drift = (drift->after - drift->before) / std::abs(drift->before);
    run.onsets.push_back(std::move(onset));
  }
  if (run.onsets.empty()) return;
  std::ranges::stable_sort(run.onsets, std::greater{},
                           [](const Onset& onset) { return std::abs(onset.drift.value_or(0)); });
  const Onset& largest = run.onsets.front();
  run.verdict = Verdict::drifted;
  run.reason = fmt::format("{} {:+.3g} % in {} nights, each step within its tolerance", largest.field,
                           *largest.drift * 100, largest.nights);
  if (!largest.row.empty()) run.reason += fmt::format(" ({})", largest.row);
}

}  // namespace

std::vector<Move> moves_of(const Series& series) {
  std::vector<Move> moves;
  for (std::size_t n = 1; n < series.points.size(); ++n) {
    const Series::Point &before = series.points[n - 1], &after = series.points[n];
    if (before.value != after.value) moves.push_back({after.night, before.night, before.value, after.value});
  }
  return moves;
}

std::optional<Move> drift_of(const Series& series, const report::DriftRule& rule) {
  const auto& points = series.points;
  const auto steps = static_cast<std::size_t>(rule.nights);
  if (rule.share <= 0 || points.size() <= steps) return std::nullopt;
  const std::size_t last = points.size() - 1;
  const double from = points[last - steps].value, total = points[last].value - from;
  // As rounded as the shares that files and people write: 2 % of 100 is 2.
  if (from == 0 || std::abs(total) < rule.share * std::abs(from) * (1 - 1e-9)) return std::nullopt;
  const auto step = [&](std::size_t n) { return points[n].value - points[n - 1].value; };
  std::size_t first = last - steps + 1;
  for (std::size_t n = first; n <= last; ++n) {
    const double size = step(n) * (total < 0 ? -1 : 1);
    if (size < 0 || size >= rule.share * std::abs(points[n - 1].value)) return std::nullopt;
  }
  // It may have begun earlier, in the same way.
  while (first > 1) {
    const double size = step(first - 1) * (total < 0 ? -1 : 1);
    if (size <= 0 || size >= rule.share * std::abs(points[first - 2].value)) break;
    --first;
  }
  while (step(first) == 0) ++first;
  return Move{points[first].night, points[first - 1].night, points[first - 1].value, points[last].value};
}

void find_onsets(History& history, const report::Night& tonight, const std::vector<std::string>& between,
                 const report::Baseline& baseline, std::vector<RunVerdict>& verdicts) {
  const Nights nights(history, tonight, between);
  const std::vector<RecordedVerdict> before = history.verdicts();
  for (RunVerdict& run : verdicts) {
    const auto declared = std::ranges::find(baseline.runs, run.name, &report::BaselineRun::name);
    if (run.verdict == Verdict::not_run || declared == baseline.runs.end()) continue;
    if (run.verdict <= Verdict::check_failed) {
      run.onsets.push_back(since_it_ended(nights, run, before));
      continue;
    }
    const std::vector<Series> series = history.series(run.name, run.command);
    if (run.comparison) add_moved(nights, declared->tolerances, series, run);
    if (run.verdict == Verdict::passed) add_drifts(nights, baseline, declared->tolerances, series, run);
  }
}

}  // namespace cm384::sweeps
