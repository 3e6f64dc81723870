// What links, controllers and sub-planes count, told to the registry.
#include "sim/statistics.h"

#include "ub_fabric/controller.h"
#include "ub_fabric/sub_plane.h"

namespace cm384::ub {

void LinkBank::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at, unsigned link) const {
  to.declare(at, "packets", "packets", "sent, retransmissions excluded",
             [this, link] { return links_[link].packets; });
  to.declare(at, "flits", "flits", "of 20 B that those packets took",
             [this, link] { return links_[link].flits; });
  to.declare(at, "retransmissions", "packets", "sent again because of a fault",
             [this, link] { return std::uint64_t{links_[link].retransmissions}; });
  to.declare(at, "busy_ps", "ps", "its flits have taken on the wire",
             [this, link] { return static_cast<std::uint64_t>(busy(link).ps); });
}

void UbController::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const {
  const ControllerCounters& c = counters_;
  const auto ub = at.part("ub");
  to.declare(ub, "reads", "requests", "reads taken from the own cores", c.reads);
  to.declare(ub, "writes", "requests", "writes and atomic adds taken from the own cores", c.writes);
  to.declare(ub, "atomics", "requests", "atomic adds among the writes", c.atomics);
  to.declare(ub, "bytes_read", "B", "brought back by completed reads", c.bytes_read);
  to.declare(ub, "bytes_written", "B", "of completed writes and atomic adds", c.bytes_written);
  to.declare(ub, "completions", "requests", "completed", c.completions);
  to.declare(ub, "faults", "requests", "completed with an address fault", c.faults);
  to.declare(ub, "served", "requests", "of others served as target", c.served);
  to.declare(ub, "translation_hits", "requests", "whose page was in the translation cache",
             [this] { return translation_.hits(); });
  to.declare(ub, "translation_misses", "requests", "whose page was not in the translation cache",
             c.translation_misses);
  to.declare(ub, "package_requests", "requests", "that took the link to the other die of the package",
             c.package_requests);
  to.declare(ub.part("package"), "packets", "packets", "requests and responses sent to the other die",
             [this] { return package_.packets(); });
  to.declare(ub.part("package"), "bytes", "B", "sent to the other die, headers included",
             [this] { return package_.bytes(); });
  to.declare(ub.part("package"), "busy_ps", "ps", "that the link to the other die was taken",
             [this] { return static_cast<std::uint64_t>(package_.busy().ps); });
  for (unsigned port = 0; port < planes_.size(); ++port)
    ports_.declare_statistics(to, ub.part("port", port), port);
}

void SubPlane::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const {
  to.declare(at, "events", "events", "of the simulator that the sub-plane handled",
             [this] { return queue_.handled(); });
  to.declare(at, "injected", "packets", "that entered from dies and sockets", [this] { return injected(); });
  to.declare(at, "delivered", "packets", "that left to dies and sockets", delivered_);
  for (unsigned n = 0; n < peer_.size(); ++n) {
    if ((peer_[n] & kToEndpoint) == 0) continue;
    const unsigned endpoint = peer_[n] & ~kToEndpoint;
    if (attached_[endpoint].queue == nullptr) continue;
    const auto chip = at.part("l1chip", chip_of_[n]);
    links_.declare_statistics(
        to, endpoint < dies_ ? chip.part("to_die", endpoint) : chip.part("to_socket", endpoint - dies_), n);
  }
  for (unsigned node = 0; node < shape_.nodes(); ++node) {
    for (unsigned l2 = 0; l2 < shape_.l2_switches(); ++l2) {
      links_.declare_statistics(to, at.part("l1chip", node).part("to_l2chip", l2), link_up(node, l2));
      links_.declare_statistics(to, at.part("l2chip", l2).part("to_l1chip", node), link_down(l2, node));
    }
  }
}

}  // namespace cm384::ub
