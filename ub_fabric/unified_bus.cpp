#include "ub_fabric/unified_bus.h"

#include "ub_fabric/link_timing.h"

namespace cm384::ub {

UnifiedBus::UnifiedBus(const Parameters& parameters, sim::PayloadPool& payloads, std::uint32_t first_source,
                       unsigned workers)
    : parameters_(parameters), payloads_(payloads), workers_(workers) {
  check(parameters);
  packets_.set_workers(workers);
  controllers_.resize(static_cast<std::size_t>(parameters.topology.endpoints()));
  const auto network = Network::of(parameters.topology);
  endpoint_latency_ = shortest_endpoint_latency(parameters_, *network);
  way_in_ = shortest_way_in(parameters_, *network);
  for (unsigned p = 0; p < static_cast<unsigned>(parameters.topology.sub_planes); ++p) {
    planes_.push_back(std::make_unique<SubPlane>(p, parameters_, packets_, first_source + p,
                                                 std::uint64_t{p} + 1, network));
    planes_.back()->set_workers(workers);
    modules_.push_back(planes_.back().get());
  }
}

UbController& UnifiedBus::attach(const Seat& seat) {
  auto& controller = controllers_[seat.endpoint];
  controller = std::make_unique<UbController>(parameters_, static_cast<Endpoint>(seat.endpoint), seat.queue,
                                              seat.unit, packets_, payloads_);
  controller->set_target(seat.target);
  if (seat.client != nullptr) controller->set_client(*seat.client);
  join(*controller);
  const auto dies = static_cast<unsigned>(parameters_.topology.dies());
  const unsigned sibling = seat.endpoint ^ 1;
  const bool together =
      parameters_.topology.in_one_package(static_cast<int>(seat.endpoint), static_cast<int>(sibling));
  if (together && seat.endpoint < dies && sibling < dies && controllers_[sibling])
    controller->join(*controllers_[sibling]);
  return *controller;
}

void UnifiedBus::join(UbController& controller) {
  controller.ports().set_workers(workers_);
  for (auto& plane : planes_) controller.attach(*plane);
  const bool die = controller.endpoint() < parameters_.topology.dies();
  const hw::UbController& limits = die ? parameters_.ub.controller : parameters_.cpu.controller;
  holds_requests_ = holds_requests_ || UbController::holds_requests(limits);
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
