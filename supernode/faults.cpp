#include "supernode/faults.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw/error.h"
#include "hw/nearest_name.h"
#include "hw/quantity.h"
#include "ub_fabric/sub_plane.h"

namespace cm384::supernode {
namespace {

constexpr std::string_view kForm =
    "links as in plane=P,node=N,l2=K or die=D or all, and rate=X, or ber=X of every bit, and seed=S, "
    "kind=corrupt|lost";

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
    if (value != "corrupt" && value != "lost")
      throw InputError(fmt::format("kind={} is unknown; allowed: corrupt, lost", value));
    request.damage = value == "lost" ? ub::Damage::lost : ub::Damage::corrupted;
  } else {
    const std::vector<std::string> keys = {"plane", "die",  "socket", "node", "l1",   "l2",
                                           "l3",    "chip", "rate",   "ber",  "seed", "kind"};
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
    if (std::ranges::find(given, key) != given.end())
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
  if (!named || rates != 1)
    throw InputError(fmt::format("'{}' does not name links and a rate; allowed: {}", text, kForm));
  return request;
}

Faults::~Faults() {
  for (const Attached& a : attached_) {
    a.plane != nullptr ? a.plane->attach_fault(a.link, nullptr) : a.ports->attach_fault(a.link, nullptr);
  }
}

void Faults::put(ub::SubPlane* plane, ub::LinkBank* ports, unsigned link, std::uint64_t place,
                 const FaultRequest& request) {
  for (const Attached& a : attached_) {
    if (a.plane == plane && a.ports == ports && a.link == link)
      throw InputError("--fault: one link is named twice");
  }
  // Each direction of each link draws from a sequence of its own.
  const std::uint64_t seed = ub::mix(request.seed ^ ub::mix(place));
  attached_.push_back({plane, ports, link,
                       std::make_unique<ub::RandomFault>(
                           request.per_bit ? ub::RandomFault::of_bits(request.rate, request.damage, seed)
                                           : ub::RandomFault(request.rate, request.damage, seed))});
  ub::RandomFault* fault = attached_.back().fault.get();
  plane != nullptr ? plane->attach_fault(link, fault) : ports->attach_fault(link, fault);
}

void Faults::attach(const FaultRequest& request) {
  machine_.use_one_thread();  // dice are thrown in the order of transmissions
  const int planes = machine_.parameters().topology.sub_planes;
  try {
    request.links.check(machine_.plane(0).network(), planes);
  } catch (const InputError& error) {
    throw InputError(fmt::format("--fault: {}", error.what()));
  }
  for (const LinkName::End& part : request.links.parts) {
    if (part.part == "die") machine_.controller(part.number);  // takes part
  }
  bool found = false;
  for (int p = 0; p < planes; ++p) {
    ub::SubPlane& plane = machine_.plane(p);
    const ub::Network& network = plane.network();
    for (unsigned link = 0; link < network.links(); ++link) {
      if (!request.links.matches(name_of_link(network, p, link))) continue;
      found = true;
      const std::uint64_t place = static_cast<std::uint64_t>(p) << 40 | link;
      put(&plane, nullptr, link, place, request);
      const ub::Network::Link& l = network.link(link);
      if (l.peer != ub::Network::kNoLink || !machine_.takes_part(l.endpoint)) continue;
      put(nullptr, &machine_.controller(l.endpoint).ports(), static_cast<unsigned>(p),
          place | std::uint64_t{1} << 39, request);
    }
  }
  if (!found) throw InputError("--fault: there is no such link");
}

std::uint64_t Faults::strikes() const {
  std::uint64_t sum = 0;
  for (const Attached& a : attached_) sum += a.fault->strikes();
  return sum;
}

}  // namespace cm384::supernode
