#include "hw/ns3ub_classes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "base/text/lines.h"
#include "hw/ns3ub_settings.h"

namespace cm384::hw {
namespace {

constexpr int kMostNs3UbClasses = 8, kMostNs3UbLanes = 16;              // of the bus
constexpr int kMostWeight = 1000, kLeastTurn = 20, kMostTurn = 65'536;  // of ub.qos.weights, ub.qos.quantum

std::vector<int> priorities_in(const std::string& traffic) {
  const std::vector<std::string> names{"taskId",         "sourceNode", "destNode",
                                       "dataSize(Byte)", "opType",     "priority"};
  std::set<int> used;
  LineReader lines(traffic);
  std::string line;
  for (bool header = true; lines.next(line); header = false) {
    if (header || line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto parts = split_fields(line);
    if (parts.size() < names.size()) lines.fail(fmt::format("line: allowed: {},...", fmt::join(names, ",")));
    used.insert(static_cast<int>(FieldReader(lines, std::move(parts), names).integer(5, 0, 15)));
  }
  return {used.begin(), used.end()};
}

}  // namespace

Ns3UbClasses ns3ub_classes(const std::string& folder, const Ns3UbQuanta& quanta, int lanes) {
  Ns3UbClasses made;
  const std::string traffic = (std::filesystem::path(folder) / "traffic.csv").string();
  const auto leave = [&](const std::string& why) {
    made.note =
        fmt::format("{}: UbSwitch::VlScheduler DWRR: ignored, lanes have equal turns: {}", quanta.where, why);
    return made;
  };
  if (!std::filesystem::exists(traffic)) return leave("no traffic.csv says which priorities there are");
  const std::vector<int> used = priorities_in(traffic);
  if (used.size() < 2) return made;  // nobody to take turns with
  const auto count = static_cast<int>(used.size());
  if (count > kMostNs3UbClasses)
    return leave(fmt::format("traffic.csv has {} priorities; allowed: {}", count, kMostNs3UbClasses));
  std::vector<int> turns;
  for (const int priority : used) {
    const auto named = quanta.quanta.find(priority);
    turns.push_back(named == quanta.quanta.end() ? quanta.others : named->second);
    if (turns.back() == 0) return leave(fmt::format("nothing says the quantum of priority {}", priority));
  }
  const int unit =
      std::accumulate(turns.begin(), turns.end(), 0, [](int a, int b) { return std::gcd(a, b); });
  std::vector<int> weights;
  for (const int turn : turns) weights.push_back(turn / unit);
  if (unit < kLeastTurn || unit > kMostTurn || std::ranges::max(weights) > kMostWeight)
    return leave(fmt::format("quanta of {} B have {} B in common; allowed: {} to {}, {} times it at most",
                             fmt::join(turns, ", "), unit, kLeastTurn, kMostTurn, kMostWeight));
  made.priorities = used;
  // Each class has as many pairs of lanes.
  const int pairs =
      std::max(1, std::min(lanes == 0 ? kMostNs3UbLanes / 2 : lanes, kMostNs3UbLanes) / 2 / count) * count;
  made.machine = {{"ub.qos.classes", std::to_string(count)},
                  {"ub.qos.arbitration", "\"drr\""},
                  {"ub.qos.weights", fmt::format("\"{}\"", fmt::join(weights, ","))},
                  {"ub.qos.quantum", fmt::format("\"{}B\"", unit)},
                  {"ub.link.lanes", std::to_string(2 * pairs)}};
  made.note = fmt::format(
      "{}: UbSwitch::VlScheduler DWRR: priorities {} are service classes 0 to {} in deficit round robin; "
      "transfers of one die share its cores in turn before",
      quanta.where, fmt::join(used, ", "), count - 1);
  return made;
}

std::vector<int> priorities_of_case(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "network_attribute.txt").string();
  if (!std::filesystem::exists(path)) return {};
  const Ns3UbSettings settings = read_ns3ub_settings(path);
  if (!settings.quanta) return {};
  return ns3ub_classes(folder, *settings.quanta, settings.lanes).priorities;
}

}  // namespace cm384::hw
