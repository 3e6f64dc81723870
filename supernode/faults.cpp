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
    "plane=P,node=N,l2=K,rate=X or plane=P,die=D,rate=X, with ber=X, of every bit, in place of rate; "
    "and seed=S, kind=corrupt|lost";

int number_of(std::string_view key, std::string_view text) {
  const std::int64_t value = hw::parse_integer(text);
  if (value < 0 || value > 100'000)
    throw InputError(fmt::format("{}={} is out of range; allowed: whole numbers from 0 on", key, text));
  return static_cast<int>(value);
}

void set(FaultRequest& request, std::string_view key, std::string_view value) {
  if (key == "plane") {
    request.plane = number_of(key, value);
  } else if (key == "die") {
    request.die = number_of(key, value);
  } else if (key == "node") {
    request.node = number_of(key, value);
  } else if (key == "l2") {
    request.l2 = number_of(key, value);
  } else if (key == "seed") {
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
    const std::vector<std::string> keys = {"plane", "die", "node", "l2", "rate", "ber", "seed", "kind"};
    throw InputError(fmt::format("'{}': no such key{}; allowed: {}", key,
                                 hw::suggestion(std::string(key), keys), fmt::join(keys, ", ")));
  }
}

}  // namespace

FaultRequest parse_fault(std::string_view text) {
  FaultRequest request;
  std::vector<std::string_view> given;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      throw InputError(fmt::format("'{}' is not key=value; allowed: {}", item, kForm));
    const std::string_view key = item.substr(0, equals);
    if (std::ranges::find(given, key) != given.end())
      throw InputError(fmt::format("'{}' names {} twice", text, key));
    given.push_back(key);
    set(request, key, item.substr(equals + 1));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  const bool trunk = request.node >= 0 && request.l2 >= 0 && request.die < 0;
  const bool port = request.die >= 0 && request.node < 0 && request.l2 < 0;
  const auto rates = std::ranges::count_if(given, [](auto key) { return key == "rate" || key == "ber"; });
  if (request.plane < 0 || (!trunk && !port) || rates != 1)
    throw InputError(fmt::format("'{}' does not name one link and a rate; allowed: {}", text, kForm));
  return request;
}

Faults::~Faults() {
  for (const Attached& a : attached_) {
    a.plane != nullptr ? a.plane->attach_fault(a.link, nullptr) : a.ports->attach_fault(a.link, nullptr);
  }
}

void Faults::put(ub::SubPlane* plane, ub::LinkBank* ports, unsigned link, const FaultRequest& request) {
  for (const Attached& a : attached_) {
    if (a.plane == plane && a.ports == ports && a.link == link)
      throw InputError("--fault: one link is named twice");
  }
  // The two directions draw from sequences of their own.
  const std::uint64_t seed = ub::mix(request.seed ^ ub::mix(link + (plane != nullptr ? 0 : 1'000'000)));
  attached_.push_back({plane, ports, link,
                       std::make_unique<ub::RandomFault>(
                           request.per_bit ? ub::RandomFault::of_bits(request.rate, request.damage, seed)
                                           : ub::RandomFault(request.rate, request.damage, seed))});
  ub::RandomFault* fault = attached_.back().fault.get();
  plane != nullptr ? plane->attach_fault(link, fault) : ports->attach_fault(link, fault);
}

void Faults::attach(const FaultRequest& request) {
  machine_.use_one_thread();  // dice are thrown in the order of transmissions
  const hw::Topology& topology = machine_.parameters().topology;
  const auto check = [](const char* what, int value, int count) {
    if (value >= count)
      throw InputError(
          fmt::format("--fault: {} {} does not exist; allowed: 0 to {}", what, value, count - 1));
  };
  check("plane", request.plane, topology.sub_planes);
  ub::SubPlane& plane = machine_.plane(request.plane);
  if (request.die >= 0) {
    check("die", request.die, topology.dies());
    put(nullptr, &machine_.controller(request.die).ports(), static_cast<unsigned>(request.plane), request);
    put(&plane, nullptr, plane.link_to_endpoint(static_cast<ub::Endpoint>(request.die)), request);
    return;
  }
  check("node", request.node, topology.nodes);
  check("l2", request.l2, topology.l2_switches);
  const auto node = static_cast<unsigned>(request.node), l2 = static_cast<unsigned>(request.l2);
  put(&plane, nullptr, plane.link_up(node, l2), request);
  put(&plane, nullptr, plane.link_down(l2, node), request);
}

std::uint64_t Faults::strikes() const {
  std::uint64_t sum = 0;
  for (const Attached& a : attached_) sum += a.fault->strikes();
  return sum;
}

}  // namespace cm384::supernode
