#include "lab/uncertainty/ensemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/content_hash.h"
#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/sealed_json.h"
#include "lab/uncertainty/unknowns.h"
#include "workloads/frame/build_info.h"
#include "workloads/frame/middle.h"

namespace cm384::uncertainty {
namespace {

constexpr int kSchema = 2, kUnchecked = 1;  // 1: without a checksum

Json parse(const std::string& path) {
  Json document = Json::parse(read_input(path), nullptr, false);
  const Json schema = document.is_object() ? document.value("schema", Json()) : Json();
  if ((schema != kSchema && schema != kUnchecked) || !document.contains("members") ||
      !document["members"].is_array() || document["members"].empty())
    throw InputError(fmt::format("{}: is no ensemble; `cm384 ensemble build` makes one", path));
  if (!has_good_checksum(document, path) && schema == kSchema)
    throw InputError(fmt::format("{}: has no checksum; allowed without one: schema {}", path, kUnchecked));
  return document;
}

void check_member(const Ensemble& ensemble, const Member& member, const std::string& path) {
  std::vector<std::string> assignments;
  for (const auto& [key, value] : member.overrides) assignments.push_back(key + "=" + value);
  try {
    hw::load_machine(ensemble.machine, assignments);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}: no longer fits the machine: {}", path, member.name, error.what()));
  }
}

Json pair_of(const Interval& interval) {
  return Json::array({interval.low, interval.high});
}

// The same number of each member's row; throws if one of them has none.
std::vector<double> numbers_of(const std::vector<const Json*>& members, const std::string& name) {
  std::vector<double> values;
  for (const Json* member : members) {
    if (!member->is_object() || !member->contains(name) || !(*member)[name].is_number()) return {};
    values.push_back((*member)[name].get<double>());
  }
  return values;
}

Json add_to_row(Json& row, const std::vector<const Json*>& members, double discrepancy) {
  Json plain = Json::object(), numbers = Json::object();
  for (auto& [name, value] : row.items()) {
    if (value.is_number_float()) {
      if (const auto values = numbers_of(members, name); !values.empty()) {
        plain[name] = pair_of(interval_of(values, discrepancy));
        numbers[name] = values;
      }
    } else if (value.is_object() && value.contains("mean") && value["mean"].is_number()) {
      std::vector<const Json*> inner;
      for (const Json* member : members) {
        if (member->contains(name)) inner.push_back(&(*member)[name]);
      }
      if (const auto values = numbers_of(inner, "mean"); !values.empty() && values.size() == members.size()) {
        value["interval"] = pair_of(interval_of(values, discrepancy));
        numbers[name + ".mean"] = values;
      }
    }
  }
  if (!plain.empty()) row["intervals"] = std::move(plain);
  row["ensemble"] = members.size();
  return numbers;
}

}  // namespace

std::string ranges_fingerprint(const hw::Machine& machine) {
  std::string text;
  for (const Unknown& unknown : unknowns_of(machine))
    text += fmt::format("{}={} in {}\n", unknown.key, unknown.own, unknown.range());
  return hash_of(text);
}

Ensemble read_ensemble(const std::string& path) {
  const Json document = parse(path);
  Ensemble ensemble;
  try {
    ensemble.machine = document.at("machine").get<std::string>();
    ensemble.command = document.at("command").get<std::string>();
    ensemble.build = document.at("build").get<std::string>();
    ensemble.model = document.at("model").get<std::string>();
    ensemble.ranges = document.at("ranges").get<std::string>();
    ensemble.checked = document.contains(kChecksum);
    ensemble.discrepancy = document.at("discrepancy").get<double>();
    for (const Json& entry : document.at("members")) {
      Member& member = ensemble.members.emplace_back();
      member.name = entry.at("name").get<std::string>();
      for (const auto& [key, value] : entry.at("overrides").items())
        member.overrides.emplace_back(key, value.get<std::string>());
      for (const auto& [id, value] : entry.at("figures").items()) member.figures[id] = value.get<double>();
    }
  } catch (const Json::exception& error) {
    throw InputError(fmt::format("{}: is no ensemble: {}", path, error.what()));
  }
  if (!(ensemble.discrepancy >= 0 && ensemble.discrepancy < 1))
    throw InputError(
        fmt::format("{}: discrepancy {}; allowed: from 0 to below 1", path, ensemble.discrepancy));
  for (const Member& member : ensemble.members) check_member(ensemble, member, path);
  return ensemble;
}

std::string to_text(const Ensemble& ensemble) {
  Json members = Json::array();
  for (const Member& member : ensemble.members) {
    Json overrides = Json::object(), figures = Json::object();
    for (const auto& [key, value] : member.overrides) overrides[key] = value;
    for (const auto& [id, value] : member.figures) figures[id] = value;
    members.push_back({{"name", member.name}, {"overrides", overrides}, {"figures", figures}});
  }
  Json document{{"schema", kSchema},
                {"machine", ensemble.machine},
                {"command", ensemble.command},
                {"build", ensemble.build},
                {"model", ensemble.model},
                {"ranges", ensemble.ranges},
                {"discrepancy", ensemble.discrepancy},
                {"members", std::move(members)}};
  document[kChecksum] = checksum_of(document);
  return document.dump(1) + "\n";
}

std::vector<std::string> doubts_of(const Ensemble& ensemble) {
  std::vector<std::string> doubts;
  if (!ensemble.checked)
    doubts.emplace_back("the ensemble has no checksum: whether it is as it was made is not known");
  if (ensemble.ranges != ranges_fingerprint(hw::load_machine(ensemble.machine)))
    doubts.emplace_back(
        "values or plausible ranges of the machine have changed since the ensemble was made; `cm384 ensemble "
        "check` says which members still hold");
  if (!studies::is_same_model(ensemble.model))
    doubts.push_back(fmt::format(
        "golden results have changed since the ensemble was made by {}; `cm384 ensemble check` says which "
        "members still hold",
        ensemble.build));
  return doubts;
}

Interval interval_of(std::vector<double> values, double discrepancy) {
  const auto [low, high] = studies::middle_of(std::move(values));
  return {low - discrepancy * std::abs(low), high + discrepancy * std::abs(high)};
}

Json add_intervals(Json& rows, const std::vector<Json>& rows_of_members, double discrepancy) {
  for (const Json& other : rows_of_members) {
    if (other.size() != rows.size())
      throw InputError(
          fmt::format("--ensemble: a member gives {} rows, the machine {}", other.size(), rows.size()));
  }
  Json numbers = Json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<const Json*> members;
    for (const Json& other : rows_of_members) members.push_back(&other[i]);
    numbers.push_back(add_to_row(rows[i], members, discrepancy));
  }
  return numbers;
}

}  // namespace cm384::uncertainty
