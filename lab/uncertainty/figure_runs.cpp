#include "lab/uncertainty/figure_runs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lab/uncertainty/recipes.h"

namespace cm384::uncertainty {

runs::Settings settings_of(const studies::Conditions& conditions) {
  const std::vector<std::string> words = conditions.arguments();
  runs::Settings settings;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2)
    settings.emplace_back(words[i].substr(2), words[i + 1]);
  return settings;
}

FigureRuns::FigureRuns(std::span<const studies::Figure* const> figures, runs::Runs& runs)
    : figures_(figures.begin(), figures.end()), runs_(runs) {
  for (std::size_t i = 0; i < figures_.size(); ++i) {
    const studies::Conditions& conditions = *figures_[i]->conditions;
    runs::Settings settings = settings_of(conditions);
    const auto same = std::ranges::find_if(groups_, [&](const Group& group) {
      return group.study == conditions.study && group.settings == settings;
    });
    if (same != groups_.end()) {
      same->figures.push_back(i);
    } else {
      groups_.push_back({conditions.study, std::move(settings), {i}});
    }
  }
}

std::vector<std::vector<double>> FigureRuns::of(const std::vector<runs::Settings>& machines, bool stop_early,
                                                std::span<const std::size_t> recipes) {
  const std::vector<double> none(figures_.size(), std::numeric_limits<double>::quiet_NaN());
  std::vector<std::vector<double>> predicted(machines.size(), none);
  std::vector<std::size_t> alive(machines.size());
  for (std::size_t i = 0; i < alive.size(); ++i) alive[i] = i;
  const auto run = [&](std::span<const Group> groups) {
    std::vector<runs::Runs::Request> requests;
    for (const Group& group : groups) {
      for (const std::size_t i : alive) {
        requests.push_back({group.study, recipes.empty()
                                             ? group.settings
                                             : by_recipe(group.study, group.settings, recipes[i])});
        runs::Settings& settings = requests.back().settings;
        settings.insert(settings.end(), machines[i].begin(), machines[i].end());
      }
    }
    const std::vector<runs::Run> ended = runs_.run(requests);
    auto at = ended.begin();
    for (const Group& group : groups) {
      for (const std::size_t i : alive) {
        const runs::Run& one = *at++;
        if (!one.good()) continue;
        for (const studies::Row& row : one.rows) {
          for (const std::size_t f : group.figures) {
            if (const auto value = figures_[f]->conditions->predicted_by(row)) predicted[i][f] = *value;
          }
        }
      }
    }
  };
  if (!stop_early) {
    run(groups_);
    return predicted;
  }
  for (std::size_t g = 0; g < groups_.size() && !runs_.interrupted(); ++g) {
    run(std::span(groups_).subspan(g, 1));
    std::erase_if(alive, [&](std::size_t i) {
      return std::ranges::any_of(groups_[g].figures, [&](std::size_t f) {
        const double off = predicted[i][f] / figures_[f]->value - 1;
        return !(std::abs(off) <= figures_[f]->tolerance);
      });
    });
  }
  return predicted;
}

}  // namespace cm384::uncertainty
