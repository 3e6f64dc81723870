#include "ub_fabric/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "hw/error.h"

namespace cm384::ub {

void check(const Parameters& p) {
  const hw::Topology& t = p.topology;
  const int l1_ports = t.dies_per_node + t.sockets_per_node + t.l2_switches;
  if (l1_ports > 64) {
    throw InputError(fmt::format(
        "topology: an L1 switch chip has {} ports (dies_per_node + sockets_per_node + l2_switches); allowed: "
        "at most 64",
        l1_ports));
  }
  if (t.endpoints() > 2048) {
    throw InputError(
        fmt::format("topology: {} dies and sockets; allowed: at most 2048 endpoints", t.endpoints()));
  }
  if (p.ub.link.lanes % 2 != 0) {
    throw InputError(fmt::format(
        "ub.link.lanes: {} is odd; allowed: an even number, requests and their responses in pairs",
        p.ub.link.lanes));
  }
  const hw::UbTranslation& tr = p.ub.translation;
  if (!std::has_single_bit(static_cast<std::uint64_t>(tr.page.count))) {
    throw InputError(
        fmt::format("ub.translation.page: {} B is no power of two; allowed: a power of two", tr.page.count));
  }
  if (tr.entries % tr.ways != 0) {
    throw InputError(fmt::format(
        "ub.translation.entries: {} is no multiple of ways ({}); allowed: a multiple", tr.entries, tr.ways));
  }
}

Time lookahead(const Parameters& p) {
  return std::min(p.ub.link.endpoint_latency, p.package_link.latency);
}

}  // namespace cm384::ub
