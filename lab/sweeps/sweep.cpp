#include "lab/sweeps/sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "base/text/number.h"
#include "lab/runs/runs.h"
#include "lab/sweeps/search.h"
#include "workloads/frame/fields.h"

namespace cm384::sweeps {

using studies::Row;
using studies::Rows;
using studies::Value;

struct Sweep::Point {
  Line* line = nullptr;
  std::vector<Setting> settings;  // of the axes
  std::optional<runs::Job> job;   // nothing: refused
  std::optional<runs::Outcome> outcome;
  bool ended = false;
};

// A point of the plan, or with `find` all that were run for one.
struct Sweep::Line {
  std::vector<Setting> settings;  // of the axes, but for that of `find`
  std::optional<Search> search;
  std::map<std::string, Point*> points;  // by the value of that axis; "" without
  bool done() const {
    if (search) return search->done();
    return !points.empty() && points.begin()->second->ended;
  }
};

Sweep::Sweep(const Plan& plan, Subject& subject, runs::Executor& executor)
    : plan_(plan), subject_(subject), executor_(executor) {}
Sweep::~Sweep() = default;

namespace {

Value cell(const Axis& axis, const std::string& text) {
  if (axis.scale.whole()) {
    if (const auto whole = hw::number_of<std::int64_t>(text)) return *whole;
  }
  const auto number = axis.scale.plain() ? axis.scale.number(text) : std::nullopt;
  if (!number) return text;
  return axis.scale.whole() ? Value(static_cast<std::int64_t>(*number)) : Value(*number);
}

}  // namespace

void Sweep::add(Line& line, std::vector<Setting> settings) {
  auto& point = *points_.emplace_back(std::make_unique<Point>());
  point.line = &line;
  point.settings = std::move(settings);
  const std::string at = line.search ? point.settings.back().second : "";
  line.points[at] = &point;
  try {
    const std::vector<Setting> all = plan_.settings(point.settings);
    point.job = runs::Job{subject_.identity(all), plan_.study, subject_.arguments(all), all};
  } catch (const InputError& error) {
    record(point, runs::Outcome{2, error.what(), "", "", 0, 0});
    return;
  }
  executor_.add(points_.size() - 1, *point.job);
}

void Sweep::record(Point& point, std::optional<runs::Outcome> outcome) {
  point.outcome = std::move(outcome);
  point.ended = true;
  if (!point.line->search) return;
  point.line->search->tell(point.settings.back().second, meets(point));
  advance(*point.line);
}

void Sweep::advance(Line& line) {
  for (const std::string& value : line.search->ask()) {
    std::vector<Setting> settings = line.settings;
    settings.emplace_back(plan_.find->axis, value);
    add(line, std::move(settings));
  }
}

// The rows of a point that has ended.
Rows Sweep::rows_of(const Point& point) const {
  Row axes;
  for (const auto& [key, text] : point.settings) axes.set(key, cell(*plan_.axis(key), text));
  Row end;
  const auto meaning = [&](const std::string& key) {
    const std::string text = subject_.value(plan_.settings(point.settings), key);
    return Expression::Meaning{subject_.name_scale(key).number(text), text};
  };
  const bool refused = !point.job;
  for (const Cost& cost : plan_.costs)
    end.set(cost.name, refused ? Value() : Value(cost.formula.value(meaning)));
  const runs::Run run = runs::run_of(point.outcome);
  end.set("failed", run.failed.empty() ? Value() : Value(run.failed));
  Rows rows;
  for (const Row& own : run.rows) {
    Row row = axes;
    row.append(own);
    row.append(end);
    rows.push_back(std::move(row));
  }
  if (rows.empty()) {
    axes.append(end);
    rows.push_back(std::move(axes));
  }
  return rows;
}

std::optional<bool> Sweep::meets(const Point& point) const {
  if (!point.outcome || point.outcome->failed()) return std::nullopt;
  for (const Row& row : rows_of(point)) {
    const Row flat = studies::flatten(row);
    if (flat[plan_.find->metric].empty()) return std::nullopt;
    const double value = flat[plan_.find->metric].number();
    if (plan_.find->at_most ? value > plan_.find->target : value < plan_.find->target) return false;
  }
  return true;
}

void Sweep::finish(Line& line, SweepResult& result, const RowDone& row_done) const {
  std::vector<const Point*> order;
  if (line.search) {
    for (const std::string& value : line.search->values()) order.push_back(line.points.at(value));
  } else {
    order.push_back(line.points.begin()->second);
  }
  for (const Point* point : order) {
    if (!point->outcome) {
      ++result.missing;
      continue;
    }
    if (point->outcome->failed()) ++result.failed;
    for (Row& row : rows_of(*point)) {
      if (row_done) row_done(row);
      result.rows.push_back(std::move(row));
      result.jobs.push_back(point->job.value_or(runs::Job{}));
    }
  }
  if (!line.search) return;
  Row found;
  for (const auto& [key, text] : line.settings) found.set(key, cell(*plan_.axis(key), text));
  const auto& best = line.search->found();
  found.set(plan_.find->axis, best ? cell(*plan_.axis(plan_.find->axis), *best) : Value());
  found.set(plan_.find->metric,
            best ? studies::flatten(rows_of(*line.points.at(*best)).front())[plan_.find->metric] : Value());
  found.set("failed", line.search->reason().empty() ? Value() : Value(line.search->reason()));
  result.found.push_back(std::move(found));
}

SweepResult Sweep::run(const RowDone& row_done, const Progress& progress) {
  for (std::vector<Setting>& settings : points_of(plan_, subject_)) {
    Line& line = *lines_.emplace_back(std::make_unique<Line>());
    line.settings = settings;
    if (plan_.find) {
      line.search.emplace(*plan_.find, *plan_.axis(plan_.find->axis));
      advance(line);
    } else {
      add(line, std::move(settings));
    }
  }
  const auto refused = [](const auto& point) { return !point->job; };
  if (std::ranges::all_of(points_, refused)) throw InputError(points_.front()->outcome->reason);

  SweepResult result;
  std::size_t printed = 0, ended = 0;
  const auto tell = [&] {
    while (printed < lines_.size() && lines_[printed]->done()) finish(*lines_[printed++], result, row_done);
    if (progress) progress(ended, points_.size());
  };
  tell();
  while (auto finished = executor_.next(tell)) {
    record(*points_[finished->ticket], std::move(finished->outcome));
    ++ended;
    tell();
  }
  // Interrupted, or a search that misses a point: the rows so far are reported all the same.
  for (; printed < lines_.size(); ++printed) {
    Line& line = *lines_[printed];
    if (line.done()) {
      finish(line, result, row_done);
      continue;
    }
    for (const auto& [value, point] : line.points) {
      if (!point->ended) ++result.missing;
    }
  }
  result.points = points_.size();
  if (!plan_.pareto.empty()) mark_pareto(result.rows, plan_.pareto);
  return result;
}

void mark_pareto(Rows& rows, const std::vector<Goal>& goals) {
  // The goals' numbers, all to be made small; empty: not compared.
  std::vector<std::vector<double>> numbers;
  for (const Row& row : rows) {
    const Row flat = studies::flatten(row);
    auto& own = numbers.emplace_back();
    for (const Goal& goal : goals) {
      if (flat[goal.metric].empty() || !flat["failed"].empty()) {
        own.clear();
        break;
      }
      own.push_back(goal.smallest ? flat[goal.metric].number() : -flat[goal.metric].number());
    }
  }
  const auto dominates = [](const std::vector<double>& a, const std::vector<double>& b) {
    return !a.empty() && a != b && std::ranges::equal(a, b, std::less_equal<>());
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool beaten = std::ranges::any_of(
        numbers, [&](const std::vector<double>& other) { return dominates(other, numbers[i]); });
    rows[i].set("pareto", !numbers[i].empty() && !beaten);
  }
}

}  // namespace cm384::sweeps
