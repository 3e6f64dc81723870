// Summaries of repeated measurements.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/frame/row.h"

namespace cm384::studies {

struct Summary {
  std::int64_t count = 0;
  double mean = 0;
  double p50 = 0, p99 = 0;  // nearest rank: a value that was measured
  double min = 0, max = 0;
  // Half width of the 95 % confidence interval of the mean (Student's t, independent samples); NaN with fewer
  // than two samples.
  double ci95 = 0;
};

// Summarises the samples; without any all fields are 0.
Summary summarise(std::vector<double> samples);

// {mean, p50, p99, max, ci95}; ci95 is empty if there is none.
Row to_row(const Summary& summary);

// Student's t for a two-sided 95 % interval.
double student_t95(std::int64_t degrees_of_freedom);

}  // namespace cm384::studies
