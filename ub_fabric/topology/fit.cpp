#include "ub_fabric/topology/fit.h"

#include <fmt/format.h>

#include "base/text/error.h"
#include "ub_fabric/routing.h"
#include "ub_fabric/topology/kinds.h"
#include "ub_fabric/topology/network.h"

namespace cm384::ub {
namespace {

constexpr int kMostLanes = 16;  // that the specification and a packet have

bool given_by_user(const hw::Machine& machine, const std::string& key) {
  const auto found = machine.provenance.find(key);
  return found != machine.provenance.end() &&
         (found->second.from == hw::Origin::user_file || found->second.from == hw::Origin::command_line);
}

}  // namespace

int least_lanes(const hw::Machine& machine) {
  Layout layout = layout_of(machine.topology);
  const bool detours = layout.detours && draws_chips(routing_policy(machine.ub.switch_chip.routing));
  const unsigned classes = layout.count_hops ? Network(std::move(layout)).classes() : layout.classes;
  return static_cast<int>(2 * classes * (detours ? 2 : 1)) * machine.ub.qos.classes;
}

void fit_to_topology(hw::Machine& machine) {
  const std::string key = "ub.link.lanes";
  const int least = least_lanes(machine);
  int& lanes = machine.ub.link.lanes;
  const int services = machine.ub.qos.classes;
  if (least > kMostLanes)
    throw InputError(
        fmt::format("ub.qos.classes: {} take {} lanes with topology.kind={} and routing {}; allowed: "
                    "at most {}, for {} lanes",
                    services, least, machine.topology.kind, machine.ub.switch_chip.routing,
                    kMostLanes / (least / services), kMostLanes));
  if (lanes < least && !given_by_user(machine, key)) {
    machine.notes.push_back(
        fmt::format("{}: {} instead of {}: what topology.kind={} with routing {}{} takes", key, least, lanes,
                    machine.topology.kind, machine.ub.switch_chip.routing,
                    services == 1 ? "" : fmt::format(" and {} service classes", services)));
    lanes = least;
    machine.provenance[key] = {hw::Origin::derived, "lane classes of the topology and its routing"};
    machine.overrides[key] = std::to_string(least);
  }
  if (services > 1 && lanes > least && lanes % least != 0)
    machine.notes.push_back(fmt::format("{}: {} of {} are not used: {} service classes have equally many",
                                        key, lanes % least, lanes, services));
  if (services == 1 && given_by_user(machine, "ub.qos.die_levels"))
    machine.notes.push_back("ub.qos.die_levels: with ub.qos.classes=1 levels are names alone");
  const std::string& routing = machine.ub.switch_chip.routing;
  if ((routing == "adaptive" || routing == "flow") && given_by_user(machine, "ub.switch.routing") &&
      !has_choice(*Network::of(machine.topology)))
    machine.notes.push_back(
        fmt::format("ub.switch.routing={}: topology.kind={} has one shortest way between any two chips, so "
                    "there is nothing to choose from",
                    routing, machine.topology.kind));
}

}  // namespace cm384::ub
