// Declares the counters of links, controllers and sub-planes.
#include "base/engine/statistics.h"

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
  to.declare(ub, "resent", "requests",
             "sent again, as they or their responses were lost in what went out of order", c.resent);
  to.declare(ub, "repeated", "requests", "of others that had been performed and were answered again",
             c.repeated);
  to.declare(ub, "late", "requests",
             "not lost, but completed later than ub.controller.resend_timeout after they were sent; counted "
             "where parts go out of order at a time",
             c.late);
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
  to.declare(at, "lost", "packets", "lost in parts that went out of order", [this] { return lost(); });
  to.declare(at, "rerouted", "packets", "that waited for an output which went out of order and took another",
             [this] { return rerouted(); });
  const auto& chips = network_->layout().chips;
  for (unsigned n = 0; n < network_->links(); ++n) {
    const Network::Link& l = network_->link(n);
    const auto chip = at.part(chips[l.chip].kind, chips[l.chip].number);
    if (l.peer == Network::kNoLink) {
      const unsigned dies = network_->layout().dies;
      if (attached_[l.endpoint].queue == nullptr) continue;
      links_.declare_statistics(
          to, l.endpoint < dies ? chip.part("to_die", l.endpoint) : chip.part("to_socket", l.endpoint - dies),
          n);
      continue;
    }
    const unsigned other = network_->link(l.peer).chip;
    const auto link = chip.part("to_" + chips[other].kind, chips[other].number);
    // Several cables between two chips count by themselves.
    const unsigned first = network_->link_between(l.chip, other);
    links_.declare_statistics(to, n == first ? link : link.part("cable", l.cable), n);
  }
}

}  // namespace cm384::ub
