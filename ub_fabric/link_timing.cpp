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
      // Its share of the socket's bandwidth.
      return {Clock(Bytes{kFlitBytes * p.topology.sub_planes}, link.of_plane(p.cpu.bandwidth, plane)),
              link.endpoint_latency};
    case LinkClass::trunk:
      break;
  }
  return {Clock(Bytes{kFlitBytes}, link.trunk_bandwidth(plane)), link.trunk_latency};
}

Clock narrowed(const Clock& flit, double width) {
  const double rate = kFlitBytes * 1e12 * static_cast<double>(flit.denominator()) /
                      static_cast<double>(flit.numerator()) * width;
  return {Bytes{kFlitBytes}, hw::rounded_rate(rate)};
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

LinkTimings::LinkTimings(const Parameters& parameters, const Network& network, int plane)
    : die_flit_(of_class(parameters, LinkClass::die, plane).flit),
      trunk_flit_(of_class(parameters, LinkClass::trunk, plane).flit) {
  for (unsigned n = 0; n < network.links(); ++n)
    links_.push_back(timing_of_link(parameters, network, n, plane));
  for (unsigned e = 0; e < network.endpoints(); ++e)
    ports_.push_back(timing_of_port(parameters, network, static_cast<Endpoint>(e), plane));
  for (unsigned chip = 0; chip < network.chips(); ++chip) {
    ChipTiming timing{{}, pipeline_of(parameters, network, chip)};
    bool any = false;
    const auto take = [&](const Clock& flit) {
      if (!any || slower(timing.flit, flit)) timing.flit = flit;
      any = true;
    };
    const unsigned first = network.first_link(chip);
    for (unsigned n = first; n < first + network.ports(chip); ++n) {
      const Network::Link& link = network.link(n);
      take(links_[n].flit);
      take(link.peer == Network::kNoLink ? ports_[link.endpoint].flit : links_[link.peer].flit);
    }
    chips_.push_back(timing);
  }
  for (unsigned e = 0; e < network.endpoints(); ++e) {
    const auto endpoint = static_cast<Endpoint>(e);
    const Time in = ports_[e].latency, out = links_[network.link_to(endpoint)].latency;
    shortest_endpoint_latency_ = std::min({shortest_endpoint_latency_, in, out});
    shortest_way_in_ = std::min(shortest_way_in_, in + chips_[network.chip_of(endpoint)].pipeline);
  }
}

void LinkTimings::narrow_link(unsigned link, double width) {
  links_[link].flit = narrowed(links_[link].flit, width);
}

void LinkTimings::narrow_port(Endpoint endpoint, double width) {
  ports_[endpoint].flit = narrowed(ports_[endpoint].flit, width);
}

}  // namespace cm384::ub
