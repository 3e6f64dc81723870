// What is predicted of a run, against runs with the parameters changed, as --explain-check compares them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "system/observe/observers.h"
#include "testbenches/system/machine/study_stand.h"
#include "workloads/moe/combine.h"
#include "workloads/moe/dispatch.h"

namespace cm384::observe {

using Run = std::function<void(const studies::StudyContext&)>;

// With what is asked for, on the machine with parameters set.
inline Observers observed(const Run& run, const ObserverRequest& request,
                          const std::vector<std::string>& set) {
  supernode::StudyStand stand;
  for (const std::string& assignment : set) hw::override_parameter(stand.machine, assignment);
  Observers observers(request);
  studies::StudyContext context = stand.context();
  context.observers = &observers;
  run(context);
  return observers;
}

inline Explanation explained(const Run& run, const std::vector<std::string>& set = {}) {
  ObserverRequest request;
  request.explain = true;
  return observed(run, request, set).explanations().back();
}

// With parameters changed as well.
inline double span_us(const Run& run, std::vector<std::string> set, const std::vector<std::string>& changes) {
  set.insert(set.end(), changes.begin(), changes.end());
  ObserverRequest request;
  request.span = true;
  return observed(run, request, set).spans_us().back();
}

// Dispatch or combine on so many ranks, without warm-up.
inline Run operator_run(std::string_view study, int ranks, int batch, std::string placement = "linear") {
  return [=, combines = study == "combine"](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    studies::CombineCase setting;
    setting.ranks = ranks;
    setting.batch = batch;
    setting.warmup = 0;
    setting.placement = placement;
    if (combines) {
      studies::measure_combine(context, setting, counts);
    } else {
      studies::measure_dispatch(context, setting, counts);
    }
  };
}

// Checks all of to_check(): within a fifth of what is measured, or within the error that the explanation owns
// to where that is more; what is "at least" no more than that above. Returns the explanation, with what was
// measured, and appends a line for each to `table`.
inline Explanation check_predictions(const Run& run, const std::vector<std::string>& set,
                                     const std::string& name, std::string* table = nullptr) {
  constexpr double kFifth = 0.2;
  Explanation why = explained(run, set);
  for (const std::size_t k : why.to_check()) {
    Explanation::Gain& gain = why.gains[k];
    gain.measured_us = why.span_us - span_us(run, set, gain.changes);
    gain.checked = true;
    const bool told = gain.at_most_us == 0;
    const std::string line = fmt::format("| {} | {:.1f} | {} | {}{:.1f} | {:.1f} |\n", name, why.span_us,
                                         text_of(gain.resource).name,
                                         !told           ? "at most "
                                         : gain.at_least ? "at least "
                                                         : "",
                                         told ? gain.us : gain.at_most_us, gain.measured_us);
    if (table != nullptr) *table += line;
    const double allowed = std::max(kFifth * std::abs(gain.measured_us), why.error_us);
    EXPECT_LE(gain.us, gain.measured_us + allowed) << line;
    if (!gain.at_least) {
      EXPECT_GE(gain.us, gain.measured_us - allowed) << line;
    }
  }
  return why;
}

}  // namespace cm384::observe
