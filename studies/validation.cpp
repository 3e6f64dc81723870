#include "studies/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hw/error.h"
#include "hw/nearest_name.h"

namespace cm384::studies {
namespace {

std::string status_of(const Comparison& comparison) {
  if (!comparison.run) return "not run";
  if (!comparison.predicted) return "not modelled";
  return comparison.within() ? "within" : "off";
}

std::string_view role_of(const Figure& figure) {
  return figure.calibration ? "calibration" : "validation";
}

std::string given_by(const Figure& figure) {
  return figure.conditions ? figure.conditions->command() : figure.missing;
}

std::string percent(double ratio) {
  return fmt::format("{:+.1f} %", ratio * 100);
}

std::string worst_line(const std::vector<Comparison>& comparisons, bool calibration) {
  const Comparison* worst = nullptr;
  const auto size = [](const Comparison& c) { return c.error() < 0 ? -c.error() : c.error(); };
  for (const Comparison& c : comparisons) {
    if (!c.predicted || c.figure.upper_bound || c.figure.calibration != calibration) continue;
    if (worst == nullptr || size(c) > size(*worst)) worst = &c;
  }
  const std::string_view role = calibration ? "calibration" : "validation";
  if (worst == nullptr) return fmt::format("No {} figure is modelled yet.\n", role);
  return fmt::format("The worst {} error is {} ({}).\n", role, percent(worst->error()), worst->figure.id);
}

}  // namespace

double Comparison::error() const {
  return predicted ? (*predicted - figure.value) / figure.value : 0;
}

bool Comparison::within() const {
  const double off = error();
  return predicted &&
         (figure.upper_bound ? off <= figure.tolerance : off <= figure.tolerance && -off <= figure.tolerance);
}

std::vector<Comparison> compare_with_published(const ValidationContext& context,
                                               std::span<const Predictor> from, std::string_view only) {
  std::vector<Comparison> comparisons;
  std::vector<std::string> ids;
  for (const Figure& figure : published_figures()) {
    ids.push_back(figure.id);
    if (figure.id.starts_with(only)) comparisons.push_back({figure, std::nullopt});
  }
  if (comparisons.empty())
    throw InputError(fmt::format("--only: no figure's id begins with '{}'{}; allowed: {}", only,
                                 hw::suggestion(only, ids), fmt::join(ids, ", ")));
  const auto wanted = [&](std::string_view id) {
    return std::ranges::any_of(comparisons, [&](const Comparison& c) { return c.figure.id == id; });
  };
  for (const Predictor& predictor : from) {
    const auto gives = [&](const Comparison& c) {
      return c.figure.conditions && std::ranges::any_of(predictor.prefixes, [&](std::string_view prefix) {
               return c.figure.id.starts_with(prefix);
             });
    };
    if (std::ranges::none_of(comparisons, gives)) continue;
    Predictions predictions;
    if (context.interrupted == 0) predictions = predictor.predict(context, wanted);
    for (Comparison& comparison : comparisons) {
      const auto prediction = predictions.find(comparison.figure.id);
      if (prediction != predictions.end()) {
        comparison.predicted = prediction->second;
      } else if (gives(comparison) && context.interrupted != 0) {
        comparison.run = false;
      }
    }
  }
  return comparisons;
}

bool holds(const std::vector<Comparison>& comparisons) {
  return std::ranges::all_of(
      comparisons, [](const Comparison& c) { return c.figure.calibration || !c.predicted || c.within(); });
}

Rows to_rows(const std::vector<Comparison>& comparisons) {
  Rows rows;
  for (const Comparison& c : comparisons) {
    rows.push_back({{"id", c.figure.id},
                    {"predicted", c.predicted},
                    {"published", c.figure.value},
                    {"unit", c.figure.unit},
                    {"error", c.predicted ? Value(c.error()) : Value()},
                    {"tolerance", c.figure.tolerance},
                    {"role", role_of(c.figure)},
                    {"status", status_of(c)},
                    {"given_by", given_by(c.figure)}});
  }
  return rows;
}

namespace {

constexpr std::array kFields{
    Field{"id", FieldType::text, "of the published figure", true},
    Field{"predicted", FieldType::number, "by this machine; empty: not modelled or not run", true},
    Field{"published", FieldType::number, "in the same unit", true},
    Field{"unit", FieldType::text, "of both", true},
    Field{"error", FieldType::ratio, "predicted over published, less 1", true},
    Field{"tolerance", FieldType::ratio, "largest error that is allowed", true},
    Field{"role", FieldType::text, "calibration: a parameter was fitted to it; otherwise validation", true},
    Field{"status", FieldType::text, "within, off, not modelled, not run", true},
    Field{"given_by", FieldType::text, "the command whose row holds the prediction, or why there is none"},
};

}  // namespace

constinit const std::span<const Field> kValidationFields = kFields;

std::string to_markdown(const std::vector<Comparison>& comparisons, const hw::Machine& machine) {
  std::string text = fmt::format(
      "# Validation\n\n"
      "Made by `cm384 validate --markdown` on the machine `{}`. A figure that a parameter was fitted to is\n"
      "reported as calibration, never as validation; a figure whose model is not built yet is `not "
      "modelled`.\n\n",
      machine.name);
  text += worst_line(comparisons, false) + worst_line(comparisons, true);
  text +=
      "\n| id | figure | conditions | published | predicted | error | tolerance | role | status | source | "
      "given by |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Comparison& c : comparisons) {
    const std::string predicted = c.predicted ? fmt::format("{:.4g} {}", *c.predicted, c.figure.unit) : "";
    const std::string tolerance =
        c.figure.upper_bound ? "at most" : fmt::format("{:.0f} %", c.figure.tolerance * 100);
    text += fmt::format("| `{}` | {} | {} | {} {} | {} | {} | {} | {} | {} | {} | {} |\n", c.figure.id,
                        c.figure.metric, c.figure.stated, c.figure.value, c.figure.unit, predicted,
                        c.predicted ? percent(c.error()) : "", tolerance, role_of(c.figure), status_of(c),
                        c.figure.source,
                        c.figure.conditions ? fmt::format("`{}`", given_by(c.figure)) : c.figure.missing);
  }
  return text;
}

}  // namespace cm384::studies
