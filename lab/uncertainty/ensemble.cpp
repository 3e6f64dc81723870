#include "lab/uncertainty/ensemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

constexpr int kSchema = 3, kWithoutFamilies = 2, kUnchecked = 1;  // 1: without a checksum

Json parse(const std::string& path) {
  Json document = Json::parse(read_input(path), nullptr, false);
  const Json schema = document.is_object() ? document.value("schema", Json()) : Json();
  if ((schema != kSchema && schema != kWithoutFamilies && schema != kUnchecked) ||
      !document.contains("members") || !document["members"].is_array() || document["members"].empty())
    throw InputError(fmt::format("{}: is not an ensemble; `cm384 ensemble build` makes one", path));
  if (!has_good_checksum(document, path) && schema != kUnchecked)
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

// What a kernel of a layer is counted in.
std::string family_of_kernel(std::string_view name) {
  if (name == "dispatch" || name == "combine") return "exchange";
  if (name.find("attention") != std::string_view::npos) return "attention";
  static constexpr std::array<std::string_view, 5> kProducts{"prolog", "output", "experts", "network",
                                                             "gate_product"};
  return std::ranges::find(kProducts, name) != kProducts.end() ? "products" : "rows";
}

// Of a row, by its kernels where it lists them: each as often as it comes, and each off by something of its
// own.
double discrepancy_of(const Json& row, const Ensemble& ensemble, std::string_view family) {
  if (ensemble.families.empty() || !row.contains("kernels") || !row["kernels"].is_array())
    return discrepancy_of(ensemble, family);
  std::map<std::string, double> times;
  for (const Json& kernel : row["kernels"]) {
    if (!kernel.contains("name") || !kernel.contains("start_us") || !kernel.contains("end_us"))
      return discrepancy_of(ensemble, family);
    times[kernel["name"].get<std::string>()] +=
        kernel["end_us"].get<double>() - kernel["start_us"].get<double>();
  }
  std::vector<Part> parts;
  for (const auto& [name, time] : times) parts.push_back({family_of_kernel(name), time});
  return share_of_parts(ensemble.families, parts);
}

// A number that several machines give to the bit is no prediction of theirs: an option, a count, bytes.
bool of_no_machine(const std::vector<double>& values) {
  return values.size() > 1 && std::ranges::all_of(values, [&](double v) { return v == values.front(); });
}

Json add_to_row(Json& row, const std::vector<const Json*>& members, const Ensemble& ensemble,
                std::string_view family) {
  const double share = discrepancy_of(row, ensemble, family);
  Json plain = Json::object(), numbers = Json::object();
  for (auto& [name, value] : row.items()) {
    if (value.is_number_float()) {
      if (const auto values = numbers_of(members, name); !values.empty() && !of_no_machine(values)) {
        plain[name] = pair_of(interval_of(values, ensemble, share));
        numbers[name] = values;
      }
    } else if (value.is_object() && value.contains("mean") && value["mean"].is_number()) {
      std::vector<const Json*> inner;
      for (const Json* member : members) {
        if (member->contains(name)) inner.push_back(&(*member)[name]);
      }
      if (const auto values = numbers_of(inner, "mean"); !values.empty() && values.size() == members.size()) {
        value["interval"] = pair_of(interval_of(values, ensemble, share));
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
    for (const Json& entry : document.value("families", Json::array()))
      ensemble.families.push_back({entry.at("family").get<std::string>(), entry.at("rows").get<std::size_t>(),
                                   entry.at("held").get<std::size_t>(), entry.at("share").get<double>()});
    for (const Json& entry : document.at("members")) {
      Member& member = ensemble.members.emplace_back();
      member.name = entry.at("name").get<std::string>();
      for (const auto& [key, value] : entry.at("overrides").items())
        member.overrides.emplace_back(key, value.get<std::string>());
      for (const auto& [id, value] : entry.at("figures").items()) member.figures[id] = value.get<double>();
    }
  } catch (const Json::exception& error) {
    throw InputError(fmt::format("{}: is not an ensemble: {}", path, error.what()));
  }
  if (!(ensemble.discrepancy >= 0 && ensemble.discrepancy < 1))
    throw InputError(
        fmt::format("{}: discrepancy {}; allowed: from 0 to below 1", path, ensemble.discrepancy));
  for (const FamilyDiscrepancy& family : ensemble.families) {
    if (!(family.share >= 0))
      throw InputError(fmt::format("{}: share {}; allowed: from 0", path, family.share));
  }
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
  Json families = Json::array();
  for (const FamilyDiscrepancy& one : ensemble.families)
    families.push_back(
        {{"family", one.family}, {"rows", one.rows}, {"held", one.held}, {"share", one.share}});
  Json document{{"schema", kSchema},
                {"machine", ensemble.machine},
                {"command", ensemble.command},
                {"build", ensemble.build},
                {"model", ensemble.model},
                {"ranges", ensemble.ranges},
                {"discrepancy", ensemble.discrepancy},
                {"families", std::move(families)},
                {"members", std::move(members)}};
  document[kChecksum] = checksum_of(document);
  return document.dump(1) + "\n";
}

std::vector<std::string> doubts_of(const Ensemble& ensemble) {
  std::vector<std::string> doubts;
  if (!ensemble.checked)
    doubts.emplace_back("the ensemble has no checksum: it cannot be checked for changes");
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

double discrepancy_of(const Ensemble& ensemble, std::string_view family) {
  return ensemble.families.empty() ? ensemble.discrepancy : discrepancy_of(ensemble.families, family).share;
}

Interval interval_of(std::vector<double> values, const Ensemble& ensemble, std::string_view family) {
  return interval_of(std::move(values), ensemble, discrepancy_of(ensemble, family));
}

Interval interval_of(std::vector<double> values, const Ensemble& ensemble, double discrepancy) {
  const auto [low, high] = studies::middle_of(std::move(values));
  if (!ensemble.families.empty()) return widened({low, high}, discrepancy);
  return {low - discrepancy * std::abs(low), high + discrepancy * std::abs(high)};
}

Json add_intervals(Json& rows, const std::vector<Json>& rows_of_members, const Ensemble& ensemble,
                   std::string_view family) {
  for (const Json& other : rows_of_members) {
    if (other.size() != rows.size())
      throw InputError(
          fmt::format("--ensemble: a member gives {} rows, the machine {}", other.size(), rows.size()));
  }
  Json numbers = Json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<const Json*> members;
    for (const Json& other : rows_of_members) members.push_back(&other[i]);
    numbers.push_back(add_to_row(rows[i], members, ensemble, family));
  }
  return numbers;
}

}  // namespace cm384::uncertainty
