#include "ub_fabric/link_timing.h"

#include <algorithm>

#include "ub_fabric/wire_format.h"

namespace cm384::ub {
namespace {

LinkTiming with_own(LinkTiming timing, const Wire& wire, const Parameters& p, int plane) {
  if (wire.rate.bytes_per_second != 0)
    timing.flit = Clock(Bytes{kFlitBytes}, p.ub.link.of_plane(wire.rate, plane));
  if (wire.latency != Time::never()) timing.latency = wire.latency;
  return timing;
}

LinkTiming of_class(const Parameters& p, LinkClass link_class, int plane) {
  const hw::UbLink& link = p.ub.link;
  switch (link_class) {
    case LinkClass::die:
      return {Clock(Bytes{kFlitBytes}, link.die_bandwidth(plane)), link.endpoint_latency};
    case LinkClass::socket:
      return {socket_port_clock(p, plane), link.endpoint_latency};
    case LinkClass::trunk:
      break;
  }
  return {Clock(Bytes{kFlitBytes}, link.trunk_bandwidth(plane)), link.trunk_latency};
}

}  // namespace

LinkTiming timing_of_link(const Parameters& parameters, const Network& network, unsigned link, int plane) {
  const Network::Link& l = network.link(link);
  return with_own(of_class(parameters, l.of, plane), l.wire, parameters, plane);
}

LinkTiming timing_of_port(const Parameters& parameters, const Network& network, Endpoint endpoint,
                          int plane) {
  const LinkClass of = network.link(network.link_to(endpoint)).of;
  return with_own(of_class(parameters, of, plane), network.uplink(endpoint), parameters, plane);
}

Time pipeline_of(const Parameters& parameters, const Network& network, unsigned chip) {
  const Time own = network.layout().chips[chip].pipeline;
  return own == Time::never() ? parameters.ub.switch_chip.pipeline_latency : own;
}

Clock narrowed(const Clock& flit, double width) {
  const double rate = kFlitBytes * 1e12 * static_cast<double>(flit.denominator()) /
                      static_cast<double>(flit.numerator()) * width;
  return {Bytes{kFlitBytes}, hw::rounded_rate(rate)};
}

Time shortest_endpoint_latency(const Parameters& parameters, const Network& network) {
  Time least = Time::never();
  for (unsigned e = 0; e < network.endpoints(); ++e) {
    const auto endpoint = static_cast<Endpoint>(e);
    least = std::min({least, timing_of_port(parameters, network, endpoint, 0).latency,
                      timing_of_link(parameters, network, network.link_to(endpoint), 0).latency});
  }
  return least;
}

Time shortest_way_in(const Parameters& parameters, const Network& network) {
  Time least = Time::never();
  for (unsigned e = 0; e < network.endpoints(); ++e) {
    const auto endpoint = static_cast<Endpoint>(e);
    least = std::min(least, timing_of_port(parameters, network, endpoint, 0).latency +
                                pipeline_of(parameters, network, network.chip_of(endpoint)));
  }
  return least;
}

}  // namespace cm384::ub
