// The table of predictors: what gives the published figures. All of them are read off the rows of studies,
// run under the figure's conditions.
#include <algorithm>
#include <array>
#include <map>

#include "system/machine/workers.h"
#include "workloads/frame/validation.h"

namespace cm384::studies {
namespace {

const Study& study_of(const Figure& figure) {
  return *std::ranges::find(registry(), figure.conditions->study, &Study::name);
}

// A run, and the figures that its rows give.
struct Measurement {
  std::vector<std::string> arguments;
  std::vector<const Figure*> figures;
};

// In the order of the figures; what the same command gives is run once.
std::vector<Measurement> measurements_of(const Wanted& wanted) {
  std::vector<Measurement> all;
  std::map<std::string, std::size_t> by_command;
  for (const Figure& figure : published_figures()) {
    if (!figure.conditions || !wanted(figure.id)) continue;
    const auto [known, fresh] = by_command.emplace(figure.conditions->command(), all.size());
    if (fresh) all.push_back({figure.conditions->arguments(), {}});
    all[known->second].figures.push_back(&figure);
  }
  return all;
}

// Of an operator's row, which has both durations; a rate is the same work over either.
Reading reading_of(const Figure& figure, const Row& row, double predicted) {
  Reading reading = predicted;
  if (!row.contains("task_us") || !row.contains("kernel_us")) return reading;
  const double task = row["task_us"].number(), kernel = row["kernel_us"].number();
  const Conditions::Settings& options = figure.conditions->options;
  const bool by_task =
      std::ranges::find(options, std::pair<std::string, std::string>("measure", "task")) != options.end();
  const double ratio = figure.unit == "us" ? kernel / task : task / kernel;
  reading.task = by_task ? predicted : predicted / ratio;
  reading.kernel = by_task ? predicted * ratio : predicted;
  return reading;
}

Predictions predict(const ValidationContext& context, const Wanted& wanted) {
  Predictions predictions;
  SimulatorCounts counts;
  const std::vector<Measurement> all = measurements_of(wanted);
  const auto part = [&](std::size_t done) {
    return static_cast<double>(done) / static_cast<double>(all.size());
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    PartOfProgress progress(context.progress, part(i), part(i + 1), counts);
    StudyContext run{context.machine, context.seed, progress, context.interrupted};
    run.threads = supernode::host_cores();
    const Study& study = study_of(*all[i].figures.front());
    const StudyResult result = StudySettings(study, all[i].arguments).run(run);
    // A row of a run that was cut short may be no measurement.
    if (context.interrupted != 0) break;
    counts.simulated += result.simulator.simulated;
    counts.events += result.simulator.events;
    for (const Figure* figure : all[i].figures) {
      for (const Row& row : result.rows) {
        if (const auto value = figure->conditions->predicted_by(row))
          predictions[figure->id] = reading_of(*figure, row, *value);
      }
    }
  }
  return predictions;
}

}  // namespace

std::span<const Predictor> predictors() {
  static const std::array<Predictor, 1> table{Predictor{{""}, predict}};
  return table;
}

}  // namespace cm384::studies
