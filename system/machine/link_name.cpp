#include "system/machine/link_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "base/text/quantity.h"

namespace cm384::supernode {
namespace {

LinkName::End end_of(const ub::Network& network, ub::Endpoint endpoint) {
  const auto dies = static_cast<int>(network.layout().dies);
  return endpoint < dies ? LinkName::End{"die", endpoint} : LinkName::End{"socket", endpoint - dies};
}

LinkName::End end_of_chip(const ub::Network& network, unsigned chip) {
  return {network.layout().chips[chip].kind, static_cast<int>(network.layout().chips[chip].number)};
}

// Chips of files have the numbers of their nodes.
void require_chip(const ub::Network& network, const LinkName::End& part) {
  if (network.chip(part.part, static_cast<unsigned>(part.number)) != ub::Network::kNoLink) return;
  unsigned count = 0, least = ~0u, most = 0;
  for (const ub::ChipName& chip : network.layout().chips) {
    if (chip.kind != part.part) continue;
    ++count;
    least = std::min(least, chip.number);
    most = std::max(most, chip.number);
  }
  if (count == 0) throw InputError(fmt::format("{}: this topology has none", part.part));
  throw InputError(fmt::format("{} {} does not exist; allowed: {}{} to {}", part.part, part.number,
                               most - least + 1 == count ? "" : "some from ", least, most));
}

}  // namespace

std::string LinkName::text() const {
  return fmt::format("plane {}, {}{} to {}{}", plane, from.part, from.number, to.part, to.number);
}

std::string LinkName::signal() const {
  return fmt::format("plane{}_{}{}_to_{}{}", plane, from.part, from.number, to.part, to.number);
}

LinkName name_of_port(const ub::Network& network, int plane, ub::Endpoint endpoint) {
  return {LinkName::Kind::from_endpoint, plane, endpoint, end_of(network, endpoint),
          end_of_chip(network, network.chip_of(endpoint))};
}

LinkName name_of_link(const ub::Network& network, int plane, unsigned number) {
  const ub::Network::Link& link = network.link(number);
  const LinkName::End from = end_of_chip(network, link.chip);
  if (link.peer == ub::Network::kNoLink)
    return {LinkName::Kind::to_endpoint, plane, link.endpoint, from, end_of(network, link.endpoint),
            static_cast<int>(number)};
  return {LinkName::Kind::trunk,   plane, -1, from, end_of_chip(network, network.link(link.peer).chip),
          static_cast<int>(number)};
}

bool LinkSelection::matches(const LinkName& link) const {
  return (plane < 0 || link.plane == plane) && std::ranges::all_of(parts, [&](const LinkName::End& part) {
           return part == link.from || part == link.to;
         });
}

void LinkSelection::check(const ub::Network& network, int planes) const {
  const auto require = [](std::string_view what, int number, int count) {
    if (count == 0) throw InputError(fmt::format("{}: this topology has none", what));
    if (number >= count)
      throw InputError(fmt::format("{} {} does not exist; allowed: 0 to {}", what, number, count - 1));
  };
  if (plane >= 0) require("plane", plane, planes);
  const auto dies = static_cast<int>(network.layout().dies);
  for (const LinkName::End& part : parts) {
    if (part.part == "die") {
      require("die", part.number, dies);
    } else if (part.part == "socket") {
      require("socket", part.number, static_cast<int>(network.endpoints()) - dies);
    } else {
      require_chip(network, part);
    }
  }
}

std::string_view part_of_key(std::string_view key) {
  if (key == "node" || key == "l1") return "l1chip";
  if (key == "l2") return "l2chip";
  if (key == "l3") return "l3chip";
  if (key == "die" || key == "socket" || key == "chip") return key;
  return {};
}

bool take_link_item(LinkSelection& selection, std::string_view item) {
  if (item == "all") return true;
  const std::size_t equals = item.find('=');
  const std::string_view key = item.substr(0, equals), part = part_of_key(key);
  if (equals == std::string_view::npos || (key != "plane" && part.empty())) return false;
  const std::int64_t number = hw::parse_integer(item.substr(equals + 1));
  if (number < 0 || number > 100'000)
    throw InputError(fmt::format("{} is out of range; allowed: whole numbers from 0 on", item));
  if (key == "plane") {
    selection.plane = static_cast<int>(number);
  } else {
    selection.parts.push_back({std::string(part), static_cast<int>(number)});
  }
  return true;
}

LinkSelection parse_link_selection(std::string_view text) {
  LinkSelection selection;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    if (!take_link_item(selection, rest.substr(0, comma)))
      throw InputError(
          fmt::format("'{}': allowed: all, or KEY=N with {}, separated by commas", text, kLinkKeys));
    if (comma == std::string_view::npos) return selection;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace cm384::supernode
