#include "lab/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/text/error.h"

namespace cm384::report {
namespace {

struct Name {
  Verdict verdict;
  std::string_view text;
};
constexpr std::array kNames{Name{Verdict::crashed, "crash"},
                            Name{Verdict::faulted, "fault"},
                            Name{Verdict::hung, "hang"},
                            Name{Verdict::timed_out, "time limit"},
                            Name{Verdict::refused, "bad input"},
                            Name{Verdict::check_failed, "check failed"},
                            Name{Verdict::worse, "worse"},
                            Name{Verdict::moved, "moved"},
                            Name{Verdict::differs, "other conditions"},
                            Name{Verdict::no_golden, "no golden result"},
                            Name{Verdict::drifted, "drifted"},
                            Name{Verdict::improved, "improved"},
                            Name{Verdict::passed, "passed"},
                            Name{Verdict::not_run, "not run"}};

bool may_differ(const BaselineRun& run, const std::string& condition) {
  return std::ranges::any_of(run.may_differ,
                             [&](const std::string& pattern) { return fits(pattern, condition); });
}

// What kind of end the machine's report says it is.
Verdict stopped_as(const Json& fresh) {
  const Json stopped = fresh.is_object() ? fresh.value("stopped", Json()) : Json();
  const std::string kind = stopped.is_object() ? stopped.value("kind", std::string()) : std::string();
  if (kind == "hang") return Verdict::hung;
  if (kind == "time limit") return Verdict::timed_out;
  return Verdict::faulted;
}

Verdict ended_as(const RunEnd& end, const Json& fresh) {
  if (end.timed_out) return Verdict::timed_out;
  switch (end.exit_code) {
    case 0:
      return Verdict::passed;
    case 1:
      return Verdict::check_failed;
    case 2:
      return Verdict::refused;
    case 3:
      return stopped_as(fresh);
    default:
      return Verdict::crashed;
  }
}

std::string one_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string worst_change(const std::vector<std::pair<const RowComparison*, const Change*>>& changes) {
  const auto size = [](const Change& change) {
    return change.relative ? std::abs(*change.relative) : std::numeric_limits<double>::infinity();
  };
  const auto worst = std::ranges::max_element(
      changes, [&](const auto& a, const auto& b) { return size(*a.second) < size(*b.second); });
  const Change& change = *worst->second;
  std::string text = change.field;
  if (change.relative) text += fmt::format(" {:+.3g} %", *change.relative * 100);
  text += fmt::format(", allowed: {}", change.allowed);
  if (worst->first != nullptr && !worst->first->key.empty()) text += fmt::format(" ({})", worst->first->key);
  if (changes.size() > 1) text += fmt::format(", and {} more", changes.size() - 1);
  return text;
}

// Of a run that ended well: what moved decides.
void judge_by_golden(RunVerdict& made, const BaselineRun& run, const Json& golden) {
  made.comparison = compare_results(golden, made.document, run.tolerances);
  ResultComparison& comparison = *made.comparison;
  for (Change& change : comparison.conditions) change.within = change.within || may_differ(run, change.field);
  std::vector<std::pair<const RowComparison*, const Change*>> worse, better, other;
  for (const Change& change : comparison.whole) {
    if (!change.within) other.emplace_back(nullptr, &change);
  }
  std::size_t lonely = 0;
  for (const RowComparison& row : comparison.rows) {
    lonely += row.in_before && row.in_after ? 0 : 1;
    for (const Change& change : row.changes) {
      if (change.within) continue;
      const Tolerance& tolerance = run.tolerances.of(change.field);
      const bool numbers = change.before.is_number() && change.after.is_number();
      const double before = numbers ? change.before.get<double>() : 0,
                   after = numbers ? change.after.get<double>() : 0;
      auto& list = numbers && tolerance.improves(change.field, before, after)   ? better
                   : numbers && tolerance.improves(change.field, after, before) ? worse
                                                                                : other;
      list.emplace_back(&row, &change);
    }
  }
  if (!worse.empty()) {
    made.verdict = Verdict::worse;
    made.reason = worst_change(worse);
  } else if (lonely > 0) {
    made.verdict = Verdict::moved;
    made.reason = fmt::format("{} rows are in one result only", lonely);
  } else if (!other.empty()) {
    made.verdict = Verdict::moved;
    made.reason = worst_change(other);
  } else if (!comparison.same_conditions()) {
    made.verdict = Verdict::differs;
    for (const Change& change : comparison.conditions) {
      if (!change.within) made.reason += (made.reason.empty() ? "" : ", ") + change.field;
    }
    made.reason += " differ from the golden result's";
  } else if (!better.empty()) {
    made.verdict = Verdict::improved;
    made.reason = worst_change(better);
  }
}

void add_numbers(const std::string& row, const std::string& name, const Json& value,
                 std::vector<MeasuredNumber>& into) {
  if (value.is_number()) into.push_back({row, name, value.get<double>()});
}

}  // namespace

std::string_view text_of(Verdict verdict) {
  return std::ranges::find(kNames, verdict, &Name::verdict)->text;
}

std::string word_of(Verdict verdict) {
  std::string word(text_of(verdict));
  std::ranges::replace(word, ' ', '-');
  return word;
}

std::optional<Verdict> verdict_of(std::string_view word) {
  for (const Name& name : kNames) {
    if (word_of(name.verdict) == word) return name.verdict;
  }
  return std::nullopt;
}

bool RunVerdict::passes(const Baseline& baseline) const {
  return verdict == Verdict::passed || (verdict == Verdict::improved && baseline.improved_passes);
}

void judge(RunVerdict& made, const BaselineRun& run, const RunEnd& end, const Json& fresh,
           const std::optional<Json>& golden) {
  made.verdict = ended_as(end, fresh);
  made.reason = one_line(end.reason);
  if (fresh.is_object()) {
    made.rows = fresh.value("rows", Json::array());
    const Json stopped = fresh.value("stopped", Json());
    if (stopped.is_object()) made.report = stopped.value("report", std::string());
    if (const auto simulator = fresh.find("simulator"); simulator != fresh.end() && simulator->is_object())
      made.simulated_us = simulator->value("simulated_us", 0.0);
  }
  if (end.timed_out)
    made.reason = fmt::format("did not end within {:g} s of the host's time (wall_limit)", run.wall_limit_s);
  if (made.verdict != Verdict::passed) return;
  try {
    made.document = parse_result(golden_text(fresh), run.name);
    if (!golden) {
      made.verdict = Verdict::no_golden;
      made.reason = "`cm384 baseline update` makes it";
      return;
    }
    judge_by_golden(made, run, *golden);
  } catch (const InputError& error) {
    made.verdict = Verdict::refused;
    made.reason = one_line(error.what());
  }
}

std::string summary_line(const std::vector<RunVerdict>& verdicts) {
  std::map<Verdict, std::size_t> counts;
  for (const RunVerdict& verdict : verdicts) ++counts[verdict.verdict];
  std::string line = fmt::format("{} runs:", verdicts.size());
  const char* between = " ";
  for (const auto& [verdict, count] : counts) {
    line += fmt::format("{}{} {}", between, count, text_of(verdict));
    between = ", ";
  }
  return line;
}

std::vector<MeasuredNumber> measured_numbers(const Json& document) {
  std::vector<MeasuredNumber> numbers;
  for_each_measure(document, [&](const std::string& row, const std::string& field, const Json& value) {
    add_numbers(row, field, value, numbers);
  });
  return numbers;
}

}  // namespace cm384::report
