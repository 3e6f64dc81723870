// Predicted against published, figure by figure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/frame/published.h"

namespace cm384::studies {

// What a prediction may use.
struct ValidationContext {
  const hw::Machine& machine;
  std::uint64_t seed;
  Progress& progress;
  const volatile std::sig_atomic_t& interrupted;
};

// A prediction, in the figure's unit.
struct Reading {
  // Not explicit: most predictors give one number, and return it as it is.
  Reading(double v = 0) : value(v) {}  // NOLINT(google-explicit-constructor)
  double value;
  // Of an operator: by its task's duration, and by its kernel's alone. `value` is one of the two.
  std::optional<double> task{}, kernel{};
};
// Readings by the figure's id.
using Predictions = std::map<std::string, Reading>;

// Whether a figure is asked for, by its id.
using Wanted = std::function<bool(std::string_view id)>;

// Gives the figures whose id begins with one of `prefixes`; run once for all of them that are wanted.
struct Predictor {
  std::vector<std::string_view> prefixes;
  Predictions (*predict)(const ValidationContext& context, const Wanted& wanted);
};

// All predictors (predictors.cpp).
std::span<const Predictor> predictors();

struct Comparison {
  Figure figure;
  std::optional<Reading> reading;  // none: not modelled, or not run
  bool run = true;                 // false: interrupted before
  bool left_out = false;           // it takes long, and nobody asked for it
  double error() const;            // (predicted - published) / published
  bool within() const;             // of a predicted figure
};

// Compares the figures whose id begins with `only` (empty: all); those that take long as is_run() says.
// Throws InputError if there is none.
std::vector<Comparison> compare_with_published(const ValidationContext& context,
                                               std::span<const Predictor> from, std::string_view only = "",
                                               bool with_long = false);

// False if a validation figure is off by more than its tolerance, or a bound is not met.
bool holds(const std::vector<Comparison>& comparisons);

// Rows as kValidationFields declares them.
Rows to_rows(const std::vector<Comparison>& comparisons);
extern const std::span<const Field> kValidationFields;

// The page docs/validation.md.
std::string to_markdown(const std::vector<Comparison>& comparisons, const hw::Machine& machine);

}  // namespace cm384::studies
