#include "workloads/frame/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/text/error.h"
#include "base/text/nearest_name.h"

namespace cm384::studies {
namespace {

std::string status_of(const Comparison& comparison) {
  if (!comparison.run) return "not run";
  if (comparison.left_out) return "left out";
  if (!comparison.reading) return "not modelled";
  return comparison.within() ? "within" : "off";
}

std::string given_by(const Figure& figure) {
  if (!figure.conditions) return figure.missing;
  const std::string& takes = figure.conditions->takes;
  return figure.conditions->command() + (takes.empty() ? "" : fmt::format(" ({}: --long)", takes));
}

std::string percent(double ratio) {
  return fmt::format("{:+.1f} %", ratio * 100);
}

std::string worst_line(const std::vector<Comparison>& comparisons, Role role) {
  const Comparison* worst = nullptr;
  for (const Comparison& c : comparisons) {
    if (!c.reading || c.figure.role != role) continue;
    if (worst == nullptr || std::abs(c.error()) > std::abs(worst->error())) worst = &c;
  }
  if (worst == nullptr) return fmt::format("No {} figure is modelled yet.\n", to_string(role));
  return fmt::format("The worst {} error is {} ({}).\n", to_string(role), percent(worst->error()),
                     worst->figure.id);
}

// "2 of 3 validation figures are within their tolerance." for each role that is asked of a machine.
std::string count_lines(const std::vector<Comparison>& comparisons) {
  std::string text;
  for (const Role role : {Role::calibration, Role::selected, Role::validation, Role::bound}) {
    const auto of_role = [&](const Comparison& c) { return c.reading && c.figure.role == role; };
    const auto all = std::ranges::count_if(comparisons, of_role);
    if (all == 0) continue;
    const auto within =
        std::ranges::count_if(comparisons, [&](const Comparison& c) { return of_role(c) && c.within(); });
    text += fmt::format("{}{} {} of {}", text.empty() ? "" : ", ", to_string(role), within, all);
  }
  return text.empty() ? "" : fmt::format("Within tolerance: {}.\n", text);
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// A line for each role and family of figures of which some have a prediction, with its errors; one line names
// the families without any. Calibration, which says nothing, comes last.
std::string family_table(const std::vector<Comparison>& comparisons) {
  std::string text =
      "| role | family | figures | predicted | within | median error | worst |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  std::string without;
  for (const Role role : {Role::validation, Role::selected, Role::bound, Role::calibration}) {
    std::map<std::string, std::vector<const Comparison*>> families;
    std::string none;
    for (const Comparison& c : comparisons) {
      if (c.figure.role == role) families[c.figure.area].push_back(&c);
    }
    for (const auto& [family, all] : families) {
      std::vector<double> errors;
      const Comparison* worst = nullptr;
      std::size_t within = 0;
      for (const Comparison* c : all) {
        if (!c->reading) continue;
        errors.push_back(std::abs(c->error()));
        within += c->within() ? 1 : 0;
        if (worst == nullptr || errors.back() > std::abs(worst->error())) worst = c;
      }
      if (worst == nullptr) {
        none += fmt::format("{} {} {}", none.empty() ? to_string(role) : ",", family, all.size());
        continue;
      }
      text += fmt::format("| {} | {} | {} | {} | {} | {:.1f} % | {} `{}` |\n", to_string(role), family,
                          all.size(), errors.size(), within, median_of(errors) * 100, percent(worst->error()),
                          worst->figure.id);
    }
    if (!none.empty()) without += (without.empty() ? "" : "; ") + none;
  }
  if (!without.empty()) text += fmt::format("\nWithout a prediction: {}.\n", without);
  return text;
}

std::string reading_text(const std::optional<double>& value, const Figure& figure) {
  return value ? fmt::format("{:.4g} {}", *value, figure.unit) : "";
}

}  // namespace

double Comparison::error() const {
  return reading ? (reading->value - figure.value) / figure.value : 0;
}

bool Comparison::within() const {
  const double off = error();
  return reading && off <= figure.tolerance && (figure.role == Role::bound || -off <= figure.tolerance);
}

std::vector<Comparison> compare_with_published(const ValidationContext& context,
                                               std::span<const Predictor> from, std::string_view only,
                                               bool with_long) {
  std::vector<Comparison> comparisons;
  std::vector<std::string> ids;
  const std::string machine = machine_of_figures(context.machine);
  for (const Figure& figure : published_figures()) {
    const std::string_view of = figure.conditions ? figure.conditions->machine : hw::kDefaultMachine;
    if (of != machine) continue;
    ids.push_back(figure.id);
    if (!figure.id.starts_with(only)) continue;
    comparisons.push_back({figure, std::nullopt});
    comparisons.back().left_out = figure.conditions && !is_run(figure, only, with_long);
  }
  if (comparisons.empty())
    throw InputError(fmt::format("--only: no figure's id begins with '{}'{}; allowed: {}", only,
                                 hw::suggestion(only, ids), fmt::join(ids, ", ")));
  const auto wanted = [&](std::string_view id) {
    return std::ranges::any_of(comparisons,
                               [&](const Comparison& c) { return c.figure.id == id && !c.left_out; });
  };
  for (const Predictor& predictor : from) {
    const auto gives = [&](const Comparison& c) {
      return c.figure.conditions && !c.left_out &&
             std::ranges::any_of(predictor.prefixes,
                                 [&](std::string_view prefix) { return c.figure.id.starts_with(prefix); });
    };
    if (std::ranges::none_of(comparisons, gives)) continue;
    Predictions predictions;
    if (context.interrupted == 0) predictions = predictor.predict(context, wanted);
    for (Comparison& comparison : comparisons) {
      const auto prediction = predictions.find(comparison.figure.id);
      if (prediction != predictions.end()) {
        comparison.reading = prediction->second;
      } else if (gives(comparison) && context.interrupted != 0) {
        comparison.run = false;
      }
    }
  }
  return comparisons;
}

bool holds(const std::vector<Comparison>& comparisons) {
  return std::ranges::all_of(comparisons, [](const Comparison& c) {
    const bool asked = c.figure.role == Role::validation || c.figure.role == Role::bound;
    return !asked || !c.reading || c.within();
  });
}

Rows to_rows(const std::vector<Comparison>& comparisons) {
  Rows rows;
  for (const Comparison& c : comparisons) {
    rows.push_back({{"id", c.figure.id},
                    {"predicted", c.reading ? Value(c.reading->value) : Value()},
                    {"published", c.figure.value},
                    {"unit", c.figure.unit},
                    {"error", c.reading ? Value(c.error()) : Value()},
                    {"tolerance", c.figure.tolerance},
                    {"role", to_string(c.figure.role)},
                    {"status", status_of(c)},
                    {"task", c.reading ? Value(c.reading->task) : Value()},
                    {"kernel", c.reading ? Value(c.reading->kernel) : Value()},
                    {"because", c.figure.because},
                    {"given_by", given_by(c.figure)}});
  }
  return rows;
}

namespace {

constexpr std::array kAllValidationFields{
    Field{"id", FieldType::text, "of the published figure", true}.as_condition(),
    Field{"predicted", FieldType::number, "by this machine; empty: not modelled or not run", true},
    Field{"published", FieldType::number, "in the same unit", true},
    Field{"unit", FieldType::text, "of both", true},
    Field{"error", FieldType::ratio, "predicted over published, less 1", true},
    Field{"tolerance", FieldType::ratio, "largest error that is allowed", true},
    Field{"role", FieldType::text,
          "calibration: a parameter was fitted to it; selected: one of several alternatives was chosen after "
          "it had been seen; bound: published as a limit; follows: other figures added up; validation: none "
          "of these",
          true},
    Field{"status", FieldType::text, "within, off, not modelled, left out, not run", true},
    Field{"task", FieldType::number, "of an operator: predicted by its task's duration", true},
    Field{"kernel", FieldType::number, "of an operator: predicted by its kernel's duration alone", true},
    Field{"because", FieldType::text, "what was selected, or which figures it follows from"},
    Field{"given_by", FieldType::text, "the command whose row holds the prediction, or why there is none"},
};

}  // namespace

constinit const std::span<const Field> kValidationFields = kAllValidationFields;

namespace {

// A figure that is not modelled, and whose conditions say why.
bool no_study_gives(const Comparison& comparison) {
  return !comparison.figure.conditions && status_of(comparison) == "not modelled";
}

// What the page says of figures that no study gives: a row for each reason.
std::string not_modelled_table(const std::vector<Comparison>& comparisons) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Comparison& c : comparisons) {
    if (!no_study_gives(c)) continue;
    const std::string figure = fmt::format("`{}` ({} {})", c.figure.id, c.figure.value, c.figure.unit);
    const auto row = std::ranges::find(rows, c.figure.missing, &std::pair<std::string, std::string>::first);
    if (row == rows.end())
      rows.emplace_back(c.figure.missing, figure);
    else
      row->second += ", " + figure;
  }
  if (rows.empty()) return "";
  std::string text =
      "\n## Not modelled\n\n"
      "No study gives these figures; `hw/published/published.csv` has their conditions, sources and "
      "roles.\n\n"
      "| why | figures |\n| --- | --- |\n";
  for (const auto& [why, figures] : rows) text += fmt::format("| {} | {} |\n", why, figures);
  return text;
}

}  // namespace

std::string to_markdown(const std::vector<Comparison>& comparisons, const hw::Machine& machine) {
  std::string text = fmt::format(
      "# Validation\n\n"
      "Made by `cm384 validate --markdown` on the machine `{}`. What agreement with a figure says is its "
      "role:\n\n"
      "- calibration: nothing, a parameter was fitted to it\n"
      "- selected: little, one of several alternatives was chosen after the figure had been seen\n"
      "- validation: something, nothing was fitted to it or chosen by it\n"
      "- bound: that the machine does not contradict it, no more\n"
      "- follows: nothing of its own, it is other figures added up, and is not counted again\n\n"
      "A figure whose model is not built yet is `not modelled`; one that takes five minutes or more is `left "
      "out`\n"
      "unless `--long` or `--only` with its whole id asks for it. Of an operator both readings stand side by "
      "side:\n"
      "its task's duration with launch and teardown, and its kernel's alone.\n\n",
      machine.name);
  text += count_lines(comparisons) + worst_line(comparisons, Role::validation) +
          worst_line(comparisons, Role::selected) + worst_line(comparisons, Role::calibration) + "\n" +
          family_table(comparisons);
  text +=
      "\n| id | figure | conditions | published | predicted | error | tolerance | task | kernel | role | "
      "status | source | given by |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Comparison& c : comparisons) {
    if (no_study_gives(c)) continue;
    const std::string predicted = c.reading ? reading_text(c.reading->value, c.figure) : "";
    const std::string tolerance =
        c.figure.role == Role::bound ? "at most" : fmt::format("{:.0f} %", c.figure.tolerance * 100);
    const std::string role = c.figure.because.empty()
                                 ? std::string(to_string(c.figure.role))
                                 : fmt::format("{}: {}", to_string(c.figure.role), c.figure.because);
    text += fmt::format("| `{}` | {} | {} | {} {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                        c.figure.id, c.figure.metric, c.figure.stated, c.figure.value, c.figure.unit,
                        predicted, c.reading ? percent(c.error()) : "", tolerance,
                        c.reading ? reading_text(c.reading->task, c.figure) : "",
                        c.reading ? reading_text(c.reading->kernel, c.figure) : "", role, status_of(c),
                        c.figure.source,
                        c.figure.conditions ? fmt::format("`{}`", given_by(c.figure)) : c.figure.missing);
  }
  return text + not_modelled_table(comparisons);
}

}  // namespace cm384::studies
