#include "system/machine/faults.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "base/text/nearest_name.h"
#include "base/text/quantity.h"
#include "ub_fabric/sub_plane.h"

namespace cm384::supernode {
namespace {

constexpr std::string_view kForm =
    "links as in plane=P,node=N,l2=K or die=D or all, and rate=X, or ber=X of every bit, and seed=S, "
    "kind=corrupt|lost; or parts and kind=down; or links and lanes=half|quarter; these two with at=TIME";

int number_of(std::string_view key, std::string_view text) {
  const std::int64_t value = hw::parse_integer(text);
  if (value < 0 || value > 100'000)
    throw InputError(fmt::format("{}={} is out of range; allowed: whole numbers from 0 on", key, text));
  return static_cast<int>(value);
}

void set(FaultRequest& request, std::string_view key, std::string_view value) {
  if (key == "seed") {
    request.seed = static_cast<std::uint64_t>(number_of(key, value));
  } else if (key == "rate" || key == "ber") {
    request.rate = hw::parse_real(value);
    request.per_bit = key == "ber";
    if (!(request.rate >= 0 && request.rate < 1))
      throw InputError(fmt::format("{}={} is out of range; allowed: from 0 to below 1", key, value));
  } else if (key == "kind") {
    if (value != "corrupt" && value != "lost" && value != "down")
      throw InputError(fmt::format("kind={} is unknown; allowed: corrupt, lost, down", value));
    request.damage = value == "lost" ? ub::Damage::lost : ub::Damage::corrupted;
    request.down = value == "down";
  } else if (key == "lanes") {
    if (value != "half" && value != "quarter")
      throw InputError(fmt::format("lanes={} is unknown; allowed: half, quarter", value));
    request.width = value == "half" ? 0.5 : 0.25;
  } else if (key == "at") {
    constexpr Time kLatest{100'000'000'000'000};
    request.at = hw::parse_time(value);
    if (request.at < Time{} || request.at > kLatest)
      throw InputError(fmt::format("at={} is out of range; allowed: 0us to 100s", value));
  } else {
    const std::vector<std::string> keys = {"plane", "die",  "socket", "node", "l1",   "l2",    "l3",
                                           "chip",  "rate", "ber",    "seed", "kind", "lanes", "at"};
    throw InputError(fmt::format("'{}': no such key{}; allowed: {}", key,
                                 hw::suggestion(std::string(key), keys), fmt::join(keys, ", ")));
  }
}

}  // namespace

FaultRequest parse_fault(std::string_view text) {
  FaultRequest request;
  std::vector<std::string_view> given;
  bool named = false;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos && item != "all")
      throw InputError(fmt::format("'{}' is not key=value; allowed: {}", item, kForm));
    const std::string_view key = item.substr(0, equals);
    // Two chips of one kind name the link between them.
    if (part_of_key(key).empty() && std::ranges::find(given, key) != given.end())
      throw InputError(fmt::format("'{}' names {} twice", text, key));
    given.push_back(key);
    if (take_link_item(request.links, item)) {
      named = true;
    } else {
      set(request, key, item.substr(equals + 1));
    }
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  const auto rates = std::ranges::count_if(given, [](auto key) { return key == "rate" || key == "ber"; });
  const bool has_rate = request.width == 1 && !request.down;
  if (!has_rate &&
      (rates != 0 || std::ranges::count(given, "seed") != 0 || (request.down && request.width != 1) ||
       (request.width != 1 && std::ranges::count(given, "kind") != 0)))
    throw InputError(
        fmt::format("'{}': kind=down and lanes=... stand without others; allowed: {}", text, kForm));
  if (has_rate && std::ranges::count(given, "at") != 0)
    throw InputError(fmt::format("'{}': at goes with kind=down and lanes; allowed: {}", text, kForm));
  if (!named || rates != (has_rate ? 1 : 0))
    throw InputError(fmt::format("'{}' does not name links and a rate; allowed: {}", text, kForm));
  return request;
}

Faults::~Faults() {
  for (const Attached& a : attached_) {
    a.plane != nullptr ? a.plane->attach_fault(a.link, nullptr) : a.ports->attach_fault(a.link, nullptr);
  }
}

void Faults::attach_to_link(ub::SubPlane* plane, ub::LinkBank* ports, unsigned link, std::uint64_t place,
                            const FaultRequest& request) {
  for (const Attached& a : attached_) {
    if (a.plane == plane && a.ports == ports && a.link == link)
      throw InputError("--fault: one link is named twice");
  }
  // Each direction of each link draws from a sequence of its own, in the order of its transmissions, which
  // all are the sending module's: what it draws does not depend on threads.
  const std::uint64_t seed = ub::mix(request.seed ^ ub::mix(place));
  attached_.push_back({plane, ports, link,
                       std::make_unique<ub::RandomFault>(
                           request.per_bit ? ub::RandomFault::of_bits(request.rate, request.damage, seed)
                                           : ub::RandomFault(request.rate, request.damage, seed))});
  ub::RandomFault* fault = attached_.back().fault.get();
  plane != nullptr ? plane->attach_fault(link, fault) : ports->attach_fault(link, fault);
}

void Faults::attach(const FaultRequest& request) {
  const int planes = machine_.parameters().topology.sub_planes;
  if (machine_.parameters().topology.supernodes > 1)
    throw InputError("--fault: not in a machine of several supernodes");
  try {
    request.links.check(machine_.plane(0).network(), planes);
  } catch (const InputError& error) {
    throw InputError(fmt::format("--fault: {}", error.what()));
  }
  for (const LinkName::End& part : request.links.parts) {
    if (part.part == "die") machine_.controller(part.number);  // takes part
  }
  if (request.down) return schedule_outage(request.links, request.at);
  bool found = false;
  for (int p = 0; p < planes; ++p) {
    ub::SubPlane& plane = machine_.plane(p);
    const ub::Network& network = plane.network();
    for (unsigned link = 0; link < network.links(); ++link) {
      if (!request.links.matches(name_of_link(network, p, link))) continue;
      found = true;
      const ub::Network::Link& l = network.link(link);
      if (request.width != 1) {
        if (l.peer == ub::Network::kNoLink || link < l.peer)
          machine_.narrow(p, link, request.width, request.at);
        continue;
      }
      const std::uint64_t place = static_cast<std::uint64_t>(p) << 40 | link;
      attach_to_link(&plane, nullptr, link, place, request);
      if (l.peer != ub::Network::kNoLink || !machine_.takes_part(l.endpoint)) continue;
      attach_to_link(nullptr, &machine_.controller(l.endpoint).ports(), static_cast<unsigned>(p),
                     place | std::uint64_t{1} << 39, request);
    }
  }
  if (!found) throw InputError("--fault: there is no such link");
}

// One chip: the chip. One die or socket: its links. Several parts: the links that touch them all. A sub-plane
// alone: all its chips.
void Faults::schedule_outage(const LinkSelection& parts, Time at) {
  if (parts.plane < 0 && parts.parts.empty()) throw InputError("--fault: all cannot be down");
  bool found = false;
  for (int p = 0; p < machine_.parameters().topology.sub_planes; ++p) {
    if (parts.plane >= 0 && parts.plane != p) continue;
    const ub::Network& network = machine_.plane(p).network();
    ub::Outage outage = at == Time{} ? network.outage() : breaks_[at][p];
    const bool chip =
        parts.parts.size() == 1 && parts.parts[0].part != "die" && parts.parts[0].part != "socket";
    if (parts.parts.empty()) {
      for (unsigned c = 0; c < network.chips(); ++c) outage.chips.push_back(c);
      found = true;
    } else if (chip) {
      outage.chips.push_back(network.chip(parts.parts[0].part, static_cast<unsigned>(parts.parts[0].number)));
      found = true;
    } else {
      for (unsigned link = 0; link < network.links(); ++link) {
        const ub::Network::Link& l = network.link(link);
        if (!parts.matches(name_of_link(network, p, link))) continue;
        found = true;
        if (l.peer == ub::Network::kNoLink) {
          outage.endpoints.push_back(l.endpoint);
        } else if (link < l.peer) {
          outage.cables.push_back(l.cable);
        }
      }
    }
    if (at == Time{}) {
      machine_.set_network(p, std::make_shared<const ub::Network>(network.layout(), std::move(outage)));
    } else {
      breaks_[at][p] = std::move(outage);
    }
  }
  if (!found) throw InputError("--fault: there is no such part");
  down_ = true;
}

void Faults::apply_breaks() {
  const int planes = machine_.parameters().topology.sub_planes;
  std::vector<std::shared_ptr<const ub::Network>> tables;
  for (int p = 0; p < planes; ++p) tables.push_back(machine_.plane(p).shared_network());
  if (down_) check_ways(tables, Time{});
  std::map<int, std::vector<ub::NetworkChange>> changes;
  for (const auto& [at, outages] : breaks_) {
    for (const auto& [p, more] : outages) {
      auto& table = tables[static_cast<std::size_t>(p)];
      table = std::make_shared<const ub::Network>(table->layout(), table->outage() + more);
      changes[p].push_back({at, table});
    }
    check_ways(tables, at);
  }
  for (const auto& [p, of_plane] : changes) machine_.change_networks(p, of_plane);
}

void Faults::check_ways(const std::vector<std::shared_ptr<const ub::Network>>& tables, Time from) const {
  const hw::Topology& topology = machine_.parameters().topology;
  const auto reached = [&](int a, int b) {
    const auto from_a = static_cast<ub::Endpoint>(a), to_b = static_cast<ub::Endpoint>(b);
    return std::ranges::any_of(tables, [&](const auto& table) {
      return table->reaches(from_a, to_b) && table->reaches(to_b, from_a);
    });
  };
  const std::string when = from == Time{} ? "" : fmt::format("from {:g} us on ", from.us());
  const std::vector<int> dies = machine_.dies();
  for (const int a : dies) {
    for (const int b : dies) {
      if (a != b && !topology.in_one_package(a, b) && !reached(a, b))
        throw InputError(fmt::format("--fault: {}no path is left between die {} and die {}", when, a, b));
    }
    for (const int socket : machine_.sockets()) {
      if (!reached(a, topology.socket_endpoint(socket)))
        throw InputError(
            fmt::format("--fault: {}no path is left between die {} and CPU socket {}", when, a, socket));
    }
  }
}

std::uint64_t Faults::strikes() const {
  std::uint64_t sum = 0;
  for (const Attached& a : attached_) sum += a.fault->strikes();
  return sum;
}

}  // namespace cm384::supernode
