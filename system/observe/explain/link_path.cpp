#include "system/observe/explain/link_path.h"

#include "ub_fabric/link_timing.h"

namespace cm384::observe {
namespace {

constexpr std::uint64_t kOfEndpoint = std::uint64_t{1} << 31;

Served served_of(ub::LinkClass of, bool own_rate) {
  const Part part = of == ub::LinkClass::die      ? Part::die_link
                    : of == ub::LinkClass::socket ? Part::socket_link
                                                  : Part::trunk;
  if (own_rate) return {part};
  return {part, resource_of(part), of == ub::LinkClass::socket ? Resource::none : Resource::link};
}

}  // namespace

std::uint64_t ExplainedLink::number_of(const supernode::LinkName& link) {
  const auto number = link.number >= 0 ? static_cast<std::uint64_t>(link.number)
                                       : kOfEndpoint | static_cast<std::uint64_t>(link.endpoint);
  return static_cast<std::uint64_t>(link.plane) << 32 | number;
}

void ExplainedLink::append_all(npu::TraceLog& log, const supernode::Supernode& machine) {
  const hw::Machine& m = machine.parameters();
  const ub::Parameters parameters{m.topology, m.ub, m.cpu, m.package_link};
  machine.visit_links([&](const supernode::LinkName& name) {
    const ub::Network& network = machine.plane(name.plane).network();
    const auto endpoint = static_cast<ub::Endpoint>(name.endpoint);
    const bool from_endpoint = name.number < 0;
    const unsigned number = from_endpoint ? network.link_to(endpoint) : static_cast<unsigned>(name.number);
    const ub::Network::Link& link = network.link(number);
    const ub::Wire& wire = from_endpoint ? network.uplink(endpoint) : link.wire;
    const ub::LinkTiming timing = from_endpoint
                                      ? ub::timing_of_port(parameters, network, endpoint, name.plane)
                                      : ub::timing_of_link(parameters, network, number, name.plane);
    const Time pipeline = from_endpoint ? Time{} : ub::pipeline_of(parameters, network, link.chip);
    const bool to_endpoint = name.kind == supernode::LinkName::Kind::to_endpoint;
    const int flags = (to_endpoint ? kToEndpoint : 0) | (from_endpoint ? kFromEndpoint : 0) |
                      (to_endpoint && network.layout().chips[link.chip].of_die ? kInsideDie : 0) |
                      (wire.rate.bytes_per_second != 0 ? kOwnRate : 0);
    log.append(
        {npu::TraceEntry::link, 0, 0, static_cast<std::uint16_t>(link.of), static_cast<std::uint16_t>(flags)},
        number_of(name), timing.latency.ps, pipeline.ps);
  });
}

LinkPath LinkPath::of(const npu::TraceEntry& entry, const std::uint64_t* words) {
  LinkPath made;
  made.to_endpoint = (entry.small & ExplainedLink::kToEndpoint) != 0;
  made.from_endpoint = (entry.small & ExplainedLink::kFromEndpoint) != 0;
  made.inside_die = (entry.small & ExplainedLink::kInsideDie) != 0;
  made.served =
      served_of(static_cast<ub::LinkClass>(entry.core), (entry.small & ExplainedLink::kOwnRate) != 0);
  made.latency = static_cast<double>(words[1]);
  made.pipeline = static_cast<double>(words[2]);
  return made;
}

}  // namespace cm384::observe
