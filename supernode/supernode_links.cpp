// The links of a supernode by name, and what listens to them.
#include "supernode/supernode_parts.h"

namespace cm384::supernode {

// All directions of all links, with what puts an observer on one.
void Supernode::each_link(const LinkVisitor& visit) const {
  for (int p = 0; p < static_cast<int>(parts_->planes.size()); ++p) {
    ub::SubPlane& sub_plane = plane(p);
    const ub::ClosShape& shape = sub_plane.shape();
    const auto of_plane = [&](unsigned link, const LinkName& name) {
      visit(name, [&sub_plane, link](ub::LinkObserver* tap) { sub_plane.attach_observer(link, tap); });
    };
    for (unsigned e = 0; e < shape.endpoints(); ++e) {
      const auto endpoint = static_cast<ub::Endpoint>(e);
      of_plane(sub_plane.link_to_endpoint(endpoint), {LinkName::Kind::to_endpoint, p, static_cast<int>(e),
                                                      static_cast<int>(shape.node(endpoint)), 0});
    }
    for (unsigned node = 0; node < shape.nodes(); ++node) {
      for (unsigned l2 = 0; l2 < shape.l2_switches(); ++l2) {
        const auto n = static_cast<int>(node), k = static_cast<int>(l2);
        of_plane(sub_plane.link_up(node, l2), {LinkName::Kind::up, p, 0, n, k});
        of_plane(sub_plane.link_down(l2, node), {LinkName::Kind::down, p, 0, n, k});
      }
    }
    const auto of_port = [&](ub::UbController& controller) {
      const ub::Endpoint endpoint = controller.endpoint();
      visit({LinkName::Kind::from_endpoint, p, endpoint, static_cast<int>(shape.node(endpoint)), 0},
            [&controller, p](ub::LinkObserver* tap) {
              controller.ports().attach_observer(static_cast<unsigned>(p), tap);
            });
    };
    for (const auto& controller : parts_->controllers) {
      if (controller) of_port(*controller);
    }
    if (!parts_->sockets) continue;
    for (const auto& controller : parts_->sockets->controllers()) of_port(*controller);
  }
}

void Supernode::trace_links(const std::function<bool(const LinkName&)>& chosen) {
  if (!parts_->taps.empty()) return;
  use_one_thread();
  each_link([&](const LinkName& name, const std::function<void(ub::LinkObserver*)>& attach) {
    if (chosen && !chosen(name)) return;
    parts_->taps.push_back(std::make_unique<LinkTap>(name, probes_.link_packet));
    attach(parts_->taps.back().get());
  });
}

void Supernode::visit_links(const std::function<void(const LinkName&)>& visit) const {
  each_link([&](const LinkName& name, const auto&) { visit(name); });
}

}  // namespace cm384::supernode
