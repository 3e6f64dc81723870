// The links of a supernode by name, and what listens to them.
#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "system/machine/supernode_parts.h"

namespace cm384::supernode {

bool Supernode::takes_part(int die) const {
  return die >= 0 && die < static_cast<int>(parts_->accelerators.size()) &&
         parts_->accelerators[static_cast<std::size_t>(die)] != nullptr;
}

npu::BackingStore* Supernode::memory_of(std::uint64_t address) {
  const auto unit = static_cast<int>(cm384_gm_unit(address));
  if (cm384_gm_is_cpu(address)) return parts_->sockets ? parts_->sockets->store(unit) : nullptr;
  return takes_part(unit) ? &accelerator(unit).store() : nullptr;
}

void Supernode::set_network(int number, std::shared_ptr<const ub::Network> network) {
  plane(number);  // exists
  parts_->bus->set_network(static_cast<std::size_t>(number), std::move(network));
  for (ForeignPort* port : foreign_.ports()) port->controller().networks_changed();
}

std::vector<ub::UbController*> Supernode::all_controllers() const {
  std::vector<ub::UbController*> all;
  for (const auto& controller : parts_->bus->controllers()) {
    if (controller) all.push_back(controller.get());
  }
  for (ForeignPort* port : foreign_.ports()) all.push_back(&port->controller());
  return all;
}

void Supernode::change_networks(int number, const std::vector<ub::NetworkChange>& changes) {
  for (const ub::NetworkChange& change : changes) plane(number).change_at(change);
  for (ub::UbController* controller : all_controllers()) {
    controller->networks_changed();
    for (const ub::NetworkChange& change : changes)
      controller->change_at(static_cast<unsigned>(number), change);
  }
}

void Supernode::narrow(int number, unsigned link, double width, Time at) {
  ub::SubPlane& sub_plane = plane(number);
  const ub::Network::Link& l = sub_plane.network().link(link);
  const bool of_die = l.peer == ub::Network::kNoLink && takes_part(l.endpoint);
  const auto port = static_cast<unsigned>(number);
  if (at == Time{}) {
    sub_plane.narrow(link, width);
    if (of_die) controller(l.endpoint).narrow(port, width);
  } else {
    sub_plane.narrow_at({at, link, width});
    if (of_die) controller(l.endpoint).narrow_at(at, port, width);
  }
}

// All directions of all links, with what puts an observer on one.
void Supernode::each_link(const LinkVisitor& visit) const {
  if (machine_.topology.supernodes > 1)
    throw InputError("links by their names: not in a machine of several supernodes");
  for (int p = 0; p < parts_->bus->planes(); ++p) {
    ub::SubPlane& sub_plane = plane(p);
    const ub::Network& network = sub_plane.network();
    for (unsigned link = 0; link < network.links(); ++link) {
      visit(name_of_link(network, p, link),
            [&sub_plane, link](ub::LinkObserver* tap) { sub_plane.attach_observer(link, tap); });
    }
    for (ub::UbController* controller : all_controllers()) {
      visit(name_of_port(network, p, controller->endpoint()), [controller, p](ub::LinkObserver* tap) {
        controller->ports().attach_observer(static_cast<unsigned>(p), tap);
      });
    }
  }
}

void Supernode::trace_links(const std::function<bool(const LinkName&)>& chosen) {
  if (!parts_->taps.empty()) return;
  each_link([&](const LinkName& name, const std::function<void(ub::LinkObserver*)>& attach) {
    if (chosen && !chosen(name)) return;
    parts_->taps.push_back(std::make_unique<LinkTap>(name, probes_.link_packet));
    attach(parts_->taps.back().get());
  });
}

const ub::PacketPool& Supernode::packets() const {
  return parts_->bus->packets();
}

void Supernode::visit_links(const std::function<void(const LinkName&)>& visit) const {
  each_link([&](const LinkName& name, const auto&) { visit(name); });
}

}  // namespace cm384::supernode
