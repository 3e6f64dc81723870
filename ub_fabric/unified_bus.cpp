#include "ub_fabric/unified_bus.h"

namespace cm384::ub {

UnifiedBus::UnifiedBus(const Parameters& parameters, sim::PayloadPool& payloads, std::uint32_t first_source,
                       unsigned workers)
    : topology_(parameters.topology), payloads_(payloads), workers_(workers) {
  check(parameters);
  packets_.set_workers(workers);
  controllers_.resize(static_cast<std::size_t>(topology_.endpoints()));
  Parameters one = parameters;
  one.topology = topology_.one_supernode();
  one.supernodes = topology_.supernodes;
  const auto network = Network::of(one.topology);
  for (int supernode = 0; supernode < topology_.supernodes; ++supernode) {
    one.first_die = supernode * one.topology.dies();
    one.first_socket = supernode * one.topology.sockets();
    parameters_.push_back(one);
    for (unsigned p = 0; p < static_cast<unsigned>(one.topology.sub_planes); ++p) {
      const auto number = static_cast<std::uint32_t>(planes_.size());
      planes_.push_back(std::make_unique<SubPlane>(p, parameters_.back(), packets_, first_source + number,
                                                   std::uint64_t{number} + 1, network));
      planes_.back()->set_workers(workers);
      modules_.push_back(planes_.back().get());
    }
  }
  // Latencies are the same in all planes.
  endpoint_latency_ = planes_.front()->timings().shortest_endpoint_latency();
  way_in_ = planes_.front()->timings().shortest_way_in();
}

UbController& UnifiedBus::attach(const Seat& seat) {
  const int number = static_cast<int>(seat.endpoint), dies = topology_.dies();
  const hw::Topology& one = parameters_.front().topology;
  const bool die = number < dies;
  const int supernode = die ? number / one.dies() : (number - dies) / one.sockets();
  const Parameters& parameters = parameters_[static_cast<std::size_t>(supernode)];
  const int place =
      die ? number - parameters.first_die : one.socket_endpoint(number - dies - parameters.first_socket);
  auto& controller = controllers_[seat.endpoint];
  controller = std::make_unique<UbController>(parameters, static_cast<Endpoint>(place), seat.queue, seat.unit,
                                              packets_, payloads_);
  controller->set_target(seat.target);
  if (seat.client != nullptr) controller->set_client(*seat.client);
  join(*controller, static_cast<std::size_t>(supernode) * static_cast<std::size_t>(one.sub_planes));
  const int sibling = number ^ 1;
  if (die && sibling < dies && topology_.in_one_package(number, sibling) &&
      controllers_[static_cast<std::size_t>(sibling)])
    controller->join(*controllers_[static_cast<std::size_t>(sibling)]);
  return *controller;
}

void UnifiedBus::join(UbController& controller) {
  join(controller, 0);
}

void UnifiedBus::join(UbController& controller, std::size_t first_plane) {
  const Parameters& parameters = parameters_.front();  // limits are the same in all
  controller.ports().set_workers(workers_);
  for (std::size_t p = 0; p < static_cast<std::size_t>(topology_.sub_planes); ++p)
    controller.attach(*planes_[first_plane + p]);
  const bool die = controller.endpoint() < parameters.topology.dies();
  const hw::UbController& limits = die ? parameters.ub.controller : parameters.cpu.controller;
  holds_requests_ = holds_requests_ || holds_requests(limits);
}

// A packet passes a link and its chip before it meets anything there. So soon only where each endpoint gives
// back the cells of its receive buffer as packets are delivered, which the sub-plane itself knows; where it
// does not, as where a chip of another model has its own idea of a pipeline, the link alone counts. Back to
// an endpoint credits take the link alone.
sim::Fabric::Lookahead UnifiedBus::lookahead() const {
  return {holds_requests_ || foreign_chips_ ? endpoint_latency_ : way_in_, endpoint_latency_};
}

void UnifiedBus::declare_statistics(std::size_t module, sim::Statistics& to) const {
  planes_[module]->declare_statistics(to, sim::StatisticPath{}.part("plane", module));
}

void UnifiedBus::set_network(std::size_t plane, std::shared_ptr<const Network> network) {
  planes_[plane]->set_network(std::move(network));
  for (const auto& controller : controllers_) {
    if (controller) controller->networks_changed();
  }
}

void UnifiedBus::install(std::size_t plane, unsigned chip, SwitchChip& model) {
  planes_[plane]->install(chip, &model);
  foreign_chips_ = true;
}

}  // namespace cm384::ub
