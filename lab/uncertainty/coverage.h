// How well an ensemble's intervals hold published figures.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/uncertainty/ensemble.h"
#include "workloads/frame/published.h"

namespace cm384::uncertainty {

struct ScoredFigure {
  const studies::Figure* figure = nullptr;
  double own = 0;     // what the machine itself gives
  Interval interval;  // what the members give, discrepancy included
  bool inside() const { return figure->value >= interval.low && figure->value <= interval.high; }
  // Width of the interval as a share of the published value.
  double width() const { return (interval.high - interval.low) / figure->value; }
};

// Figures of one family and role together.
struct Coverage {
  std::string family;
  studies::Role role = studies::Role::validation;
  std::size_t figures = 0, inside = 0;
  double median_width = 0;
};

// What a run is of, by what it runs: bus, copies, memory, products, rows, attention, collectives, exchange,
// or the study's own name. `settings`: its options, as the command line has them.
std::string family_of(std::string_view study, const runs::Settings& settings);
// Of the run that gives it, or the figure's area if none does.
std::string family_of(const studies::Figure& figure);

// By role, then family. Bounds and what follows from other figures are not counted.
std::vector<Coverage> coverage_of(const std::vector<ScoredFigure>& figures);

// At least 90 % of the validation figures are inside, and their median width is at most 25 %.
bool is_enough(const std::vector<ScoredFigure>& figures);

}  // namespace cm384::uncertainty
