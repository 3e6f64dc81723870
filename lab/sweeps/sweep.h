// A plan, carried out: its points as rows, what was looked for, and the best trade-offs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/runs/executor.h"
#include "lab/sweeps/plan.h"
#include "workloads/frame/row.h"

namespace cm384::sweeps {

struct SweepResult {
  // In the order of the plan: the axes, the fields of the study's row, the costs, `failed` with the reason if
  // the point has no row, `pareto` if the plan has such goals. A point may have several rows.
  studies::Rows rows;
  // Of `find`: the other axes, then the axis and the metric at its best value, or `failed`.
  studies::Rows found;
  std::size_t points = 0;
  std::size_t missing = 0;  // not in the store (with lookup), or not reached before an interrupt
  std::size_t failed = 0;
  // What each row's point is: its arguments, and its key in the store.
  std::vector<runs::Job> jobs;  // one per row
};

class Sweep {
 public:
  // How far it is: points that have ended, of those known so far.
  using Progress = std::function<void(std::size_t done, std::size_t known)>;
  using RowDone = std::function<void(const studies::Row& row)>;

  Sweep(const Plan& plan, Subject& subject, runs::Executor& executor);
  ~Sweep();
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;

  // `row_done` gets each row in the order of the plan as soon as those before it are there; without `pareto`,
  // which is known at the end. Throws InputError if every point is refused, OutputError.
  SweepResult run(const RowDone& row_done = {}, const Progress& progress = {});

 private:
  struct Point;
  struct Line;

  void add(Line& line, std::vector<Setting> settings);
  void record(Point& point, std::optional<runs::Outcome> outcome);
  void advance(Line& line);
  studies::Rows rows_of(const Point& point) const;
  std::optional<bool> meets(const Point& point) const;
  void finish(Line& line, SweepResult& result, const RowDone& row_done) const;

  const Plan& plan_;
  Subject& subject_;
  runs::Executor& executor_;
  std::vector<std::unique_ptr<Line>> lines_;
  std::vector<std::unique_ptr<Point>> points_;
};

// Sets `pareto` in each row: true if no other row is at least as good in all goals and better in one. Rows
// without all the numbers are not compared.
void mark_pareto(studies::Rows& rows, const std::vector<Goal>& goals);

}  // namespace cm384::sweeps
