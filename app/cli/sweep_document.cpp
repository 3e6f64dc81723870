#include "app/cli/sweep_document.h"

#include <fmt/format.h>

#include <map>

#include "base/text/error.h"
#include "hw/machine.h"
#include "workloads/frame/result_json.h"

namespace cm384::cli {
namespace {

// The machine that all points have in common.
hw::Machine machine_of(const sweeps::Plan& plan) {
  std::string preset(hw::kDefaultMachine);
  std::vector<std::string> overrides;
  for (const auto& [key, value] : plan.fixed) {
    if (key == "machine") preset = value;
    if (key.find('.') != std::string::npos) overrides.push_back(key + '=' + value);
  }
  try {
    return hw::load_machine(preset, overrides);
  } catch (const InputError&) {
    // Settings that only fit together with those of the axes; every point has checked its own.
    hw::Machine machine = hw::load_machine(preset);
    for (const auto& [key, value] : plan.fixed) {
      if (key.find('.') != std::string::npos) machine.overrides[key] = value;
    }
    return machine;
  }
}

Json published_value(const Json& parameters, const std::string& key) {
  if (!parameters.contains(key)) return nullptr;
  Json value = parameters[key];
  value.erase("allowed");
  return value;
}

Json axes_of(const sweeps::Plan& plan, const Json& published) {
  Json axes = Json::array();
  for (const sweeps::Axis& axis : plan.axes) {
    Json values = Json::array();
    for (const std::string& value : axis.values) values.push_back(value);
    Json one = {{"key", axis.key},
                {"values", std::move(values)},
                {"scale", axis.logarithmic ? "logarithmic" : "linear"},
                {"range", axis.range.has_value()},
                {"zip", axis.zip}};
    if (Json value = published_value(published, axis.key); !value.is_null())
      one["published"] = std::move(value);
    axes.push_back(std::move(one));
  }
  return axes;
}

Json changed_of(const hw::Machine& machine, const sweeps::Plan& plan, const Json& published) {
  Json changed = Json::array();
  for (const auto& [key, value] : machine.overrides) {
    if (plan.axis(key) != nullptr) continue;
    changed.push_back({{"key", key}, {"value", value}, {"published", published_value(published, key)}});
  }
  return changed;
}

// Points in the order in which their rows begin; the names are those of `sweep export`.
Json points_of(const sweeps::SweepResult& result) {
  Json points = Json::array();
  std::map<std::string, std::size_t> known;
  for (std::size_t row = 0; row < result.jobs.size(); ++row) {
    const runs::Job& job = result.jobs[row];
    if (job.key.empty()) continue;
    const auto [at, fresh] = known.emplace(job.key, points.size());
    if (fresh) {
      std::vector<std::string> words{"cm384", "run"};
      words.insert(words.end(), job.arguments.begin(), job.arguments.end());
      points.push_back({{"name", fmt::format("{:04}", points.size() + 1)},
                        {"key", job.key},
                        {"command", studies::shell_command(words)},
                        {"rows", Json::array()}});
    }
    points[at->second]["rows"].push_back(row);
  }
  return points;
}

Json find_of(const sweeps::Find& find) {
  return {{"axis", find.axis},
          {"metric", find.metric},
          {find.at_most ? "at_most" : "at_least", find.target},
          {"best", find.smallest ? "smallest" : "largest"}};
}

Json description_of(const sweeps::Plan& plan, const sweeps::SweepResult& result, const SweepFacts& facts,
                    const hw::Machine& machine) {
  const std::string preset = machine.preset.empty() ? std::string(hw::kDefaultMachine) : machine.preset;
  const Json published = Json::parse(hw::to_json(hw::load_machine(preset)))["parameters"];
  Json costs = Json::array(), goals = Json::array(), conditions = Json::array();
  for (const sweeps::Cost& cost : plan.costs)
    costs.push_back({{"name", cost.name}, {"formula", cost.formula.text()}});
  for (const sweeps::Goal& goal : plan.pareto)
    goals.push_back({{"metric", goal.metric}, {"best", goal.smallest ? "smallest" : "largest"}});
  for (const sweeps::Expression& condition : plan.conditions) conditions.push_back(condition.text());
  Json sweep = {{"name", plan.name},
                {"study", plan.study},
                {"design", plan.design == sweeps::Design::grid ? "grid" : "latin-hypercube"},
                {"preset", preset},
                {"axes", axes_of(plan, published)},
                {"changed", changed_of(machine, plan, published)},
                {"where", std::move(conditions)},
                {"metrics", plan.metrics},
                {"costs", std::move(costs)},
                {"goals", std::move(goals)}};
  if (plan.find) sweep["find"] = find_of(*plan.find);
  if (!facts.store.empty()) sweep["store"] = facts.store;
  sweep["points"] = points_of(result);
  return sweep;
}

}  // namespace

Json sweep_document(const sweeps::Plan& plan, const sweeps::SweepResult& result, const SweepFacts& facts) {
  studies::StudyResult whole;
  whole.parameters.set("study", plan.study);
  for (const auto& [key, value] : plan.fixed) whole.parameters.set(key, value);
  whole.rows = result.rows;
  whole.complete = result.missing == 0;
  whole.passed = result.failed == 0;
  whole.input_files = {facts.file};
  const hw::Machine machine = machine_of(plan);
  Json document = studies::to_document(whole, machine,
                                       {.study = "sweep",
                                        .seed = 1,
                                        .wall_s = facts.wall_s,
                                        .arguments = {"sweep", facts.file},
                                        .date = studies::date_now()});
  document["conditions"] = facts.conditions;
  if (plan.find) document["found"] = studies::to_json(result.found);
  document["sweep"] = description_of(plan, result, facts, machine);
  return document;
}

}  // namespace cm384::cli
