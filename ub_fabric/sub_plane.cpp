#include "ub_fabric/sub_plane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "base/text/error.h"
#include "ub_fabric/chip_host.h"
#include "ub_fabric/output_stage.h"
#include "ub_fabric/wire_format.h"

namespace cm384::ub {
namespace {

// By output: as many as its chip has ports.
std::vector<unsigned> inputs_of_outputs(const Network& network) {
  std::vector<unsigned> inputs;
  for (unsigned chip = 0; chip < network.chips(); ++chip)
    inputs.insert(inputs.end(), network.ports(chip), network.ports(chip));
  return inputs;
}

// Pairs of lanes of one class of all that ways and routing take: as many for each service class.
unsigned lane_pairs_of(const Network& network, RoutingPolicy routing, const hw::UnifiedBus& ub) {
  if (draws_chips(routing) && !network.layout().detours)
    throw InputError(
        "ub.switch.routing: this topology has no detours to draw from; allowed: spray, flow, adaptive, "
        "minimal");
  const unsigned classes = network.classes() * (draws_chips(routing) || network.has_detours() ? 2 : 1);
  const auto of_service = static_cast<unsigned>(ub.qos.classes);
  const unsigned pairs = static_cast<unsigned>(ub.link.lanes) / 2 / classes / of_service * of_service;
  if (pairs == 0)
    throw InputError(fmt::format(
        "ub.link.lanes: {} lanes do not keep this topology and routing free of deadlock; allowed: at "
        "least {}, {} classes of requests and responses{}",
        ub.link.lanes, 2 * classes * of_service, classes,
        of_service == 1 ? "" : fmt::format(" of {} service classes", of_service)));
  return pairs;
}

}  // namespace

SubPlane::SubPlane(unsigned index, const Parameters& parameters, PacketPool& packets, std::uint32_t source,
                   std::uint64_t seed, std::shared_ptr<const Network> network)
    : index_(index),
      network_(network ? std::move(network) : Network::of(parameters.topology)),
      timings_(parameters, *network_, static_cast<int>(index)),
      packets_(packets),
      queue_(source, Time{1024}),
      links_(queue_, 0, kOutput, network_->links(), static_cast<unsigned>(parameters.ub.link.lanes),
             RetryTimes{parameters.ub.link.retry_turnaround, parameters.ub.link.retry_timeout}),
      waiting_(inputs_of_outputs(*network_), static_cast<unsigned>(parameters.ub.link.lanes)),
      routing_(routing_policy(parameters.ub.switch_chip.routing)),
      lane_pairs_(lane_pairs_of(*network_, routing_, parameters.ub)),
      two_parts_(draws_chips(routing_) || network_->has_detours()),
      with_classes_(network_->classes() > 1 || two_parts_),
      store_(parameters.ub.switch_chip.forwarding == "packet-store"),
      seed_(seed),
      endpoint_latency_(parameters.ub.link.endpoint_latency),
      trunk_latency_(parameters.ub.link.trunk_latency),
      peer_(network_->links()),
      upstream_(network_->links()),
      chip_of_(network_->links()),
      uneven_(network_->uneven()),
      turn_(network_->links()),
      attached_(network_->endpoints()),
      foreign_(network_->chips(), nullptr),
      parameters_(parameters),
      slower_(network_->links()) {
  check(parameters);
  if (const ServiceClasses classes(parameters.ub.qos); classes.arbitrates())
    turns_ = std::make_unique<ClassTurns>(classes, network_->links());
  unsigned most_ports = 0;
  for (unsigned chip = 0; chip < network_->chips(); ++chip) {
    most_ports = std::max(most_ports, network_->ports(chip));
    pipeline_.push_back(timings_.of_chip(chip).pipeline);
  }
  for (unsigned n = 0; n < network_->links(); ++n) {
    const Network::Link& l = network_->link(n);
    const bool trunk = l.peer != Network::kNoLink;
    const LinkTiming& timing = timings_.of_link(n);
    links_.connect(n, timing.flit, timing.latency, parameters.ub.link.buffer_cells);
    peer_[n] = trunk ? l.peer : kToEndpoint | l.endpoint;
    if (trunk) compare_rate(n);
    // A port's input has the same number as its output: what leaves by n comes in at its peer.
    if (trunk) upstream_[l.peer] = Upstream{&links_, n};
    chip_of_[n] = l.chip;
    turn_[n] = mix(mix(seed ^ index) + l.chip * most_ports + n - network_->first_link(l.chip));
  }
  if (!draws_chips(routing_)) return;
  draws_.resize(network_->links());
  for (unsigned chip = 0; chip < network_->chips(); ++chip) {
    if (network_->has_endpoints(chip)) drawn_from_.push_back(chip);
  }
}

void SubPlane::set_network(std::shared_ptr<const Network> network) {
  allow_for(*network);
  network_ = std::move(network);
}

void SubPlane::allow_for(const Network& network) {
  lane_pairs_ = std::min(lane_pairs_, lane_pairs_of(network, routing_, parameters_.ub));
  two_parts_ = two_parts_ || network.has_detours();
  with_classes_ = with_classes_ || two_parts_ || network.classes() > 1;
}

void SubPlane::attach(Endpoint endpoint, const Attachment& attachment) {
  attached_[endpoint] = attachment;
  upstream_[link_to_endpoint(endpoint)] = Upstream{attachment.uplinks, attachment.uplink};
}

void SubPlane::run_until(Time end) {
  links_.collect();
  queue_.run_until(
      end, [this](const sim::Event& event) { handle(event); },
      [this](const sim::Event& event) { prefetch(event); });
}

void SubPlane::handle(const sim::Event& event) {
  if (event.what == kArrival) {
    SwitchChip* const model = foreign_[chip_of_[event.unit]];
    if (model == nullptr) [[likely]] {
      arrive(event.unit, Hop{event.argument});
    } else {
      const unsigned chip = chip_of_[event.unit];
      SubPlaneChipHost host(*this, chip);
      model->arrived(host, event.unit - network_->first_link(chip), Hop{event.argument});
    }
    return;
  }
  if (event.what == kChange) [[unlikely]]
    return change(breaks_->changes[event.argument]);
  if (event.what == kNarrow) [[unlikely]]
    return narrow(breaks_->narrowings[event.argument].link, breaks_->narrowings[event.argument].width);
  const auto output = static_cast<unsigned>(event.argument);
  if (!links_.woken(output, event.at)) return;
  const unsigned chip = chip_of_[output];
  if (foreign_[chip] == nullptr) [[likely]] {
    serve_output(output);
  } else {
    SubPlaneChipHost host(*this, chip);
    foreign_[chip]->woken(host, output - network_->first_link(chip));
  }
}

// The links a packet comes from and will most likely go to.
void SubPlane::prefetch(const sim::Event& event) const {
  if (event.what != kArrival) {
    links_.prefetch(static_cast<unsigned>(event.argument), 0);
    return;
  }
  const Hop hop{event.argument};
  const Upstream& upstream = upstream_[event.unit];
  if (upstream.bank == &links_) {
    links_.prefetch_credits(upstream.link, hop.lane());
  } else {
    __builtin_prefetch(upstream.bank);
  }
  const unsigned chip = chip_of_[event.unit];
  const unsigned destination = network_->chip_of(hop.destination());
  unsigned output = network_->link_to(hop.destination());
  if (chip != destination) {
    const auto ways = network_->ways(chip, destination);
    if (ways.empty()) return;
    const std::uint64_t turn = turn_[event.unit];
    output = network_->first_link(chip) + ways[turn < ways.size() ? turn : 0];
  }
  links_.prefetch(output, hop.lane());
  waiting_.prefetch(output, hop.lane());
}

// The event stands at the end of the chip's pipeline: a packet and all it meets there have the same latency
// behind them.
void SubPlane::inject(sim::EventQueue& from, Endpoint endpoint, Hop hop, Time arrival) {
  assert(uneven_ || arrival >= from.now() + endpoint_latency_);
  const unsigned input = link_to_endpoint(endpoint);
  ++injected_.mine();
  queue_.push_from(from, arrival + pipeline_[chip_of_[input]], input, kArrival, hop.bits());
}

void SubPlane::free_cells(Endpoint endpoint, unsigned lane, int cells, Time at) {
  const unsigned link = link_to_endpoint(endpoint);
  links_.post_credits(link, lane, cells, at + links_.latency(link));
}

void SubPlane::exchange(Crossings& crossings) {
  crossings.events(queue_, [](const sim::Event& event) { return event.what == kArrival; });
  crossings.credits(links_);
}

SubPlane::Way SubPlane::route(unsigned chip, unsigned input, Hop& hop) {
  if (with_classes_) [[unlikely]]
    return route_with_classes(chip, input, hop);
  const unsigned destination = network_->chip_of(hop.destination());
  if (chip == destination) return {network_->link_to(hop.destination()), hop.lane()};
  return {choose(chip, input, hop, network_->ways(chip, destination)), hop.lane()};
}

// A class has lane_pairs_ pairs of lanes. Where there are detours, the classes of their second part come
// after all of the first; packets that make none use those of the second part.
SubPlane::Way SubPlane::route_with_classes(unsigned chip, unsigned input, Hop& hop) {
  const unsigned to_next_class = 2 * lane_pairs_;
  const bool enters = peer_[input] & kToEndpoint;
  unsigned from_group = network_->link(input).group;
  unsigned lane_class = hop.lane() / to_next_class;
  unsigned base = 0;  // of the classes of the part
  unsigned destination = network_->chip_of(hop.destination());
  if (enters && chip != destination) {
    const unsigned by = detour(chip, input, hop);
    if (by != Network::kNoLink) {
      packets_[hop.packet()].next = by;
      hop = hop.on_detour(true);
    }
  }
  if (hop.detours()) {
    const unsigned by = packets_[hop.packet()].next;
    if (chip == by) {
      hop = hop.on_detour(false);
      from_group = Layout::kMostGroups;
      lane_class = base = network_->classes();
    } else {
      destination = by;
    }
  } else if (two_parts_) {
    base = network_->classes();
    if (enters) lane_class = base;
  }
  if (chip == destination) return {network_->link_to(hop.destination()), hop.lane()};
  const unsigned output = choose(chip, input, hop, network_->ways(chip, destination));
  const Turn turn = network_->layout().turns[from_group][network_->link(output).group];
  lane_class = (turn.keep ? lane_class : base) + turn.add;
  return {output, lane_class * to_next_class + hop.lane() % to_next_class};
}

// Where a packet that enters has to go first: drawn, or because its own way is broken.
unsigned SubPlane::detour(unsigned chip, unsigned input, Hop hop) {
  const unsigned destination = network_->chip_of(hop.destination());
  const unsigned around = network_->has_detours() ? network_->detour(chip, destination) : Network::kNoLink;
  if (around != Network::kNoLink || !draws_chips(routing_)) return around;
  const std::uint64_t draw = mix(mix(seed_ ^ index_) + (std::uint64_t{input} << 32 | draws_[input]++));
  const unsigned by = drawn_from_[draw % drawn_from_.size()];
  if (by == chip || by == destination) return Network::kNoLink;
  const bool whole = network_->outage().empty();
  if (!whole && !(network_->arrives(chip, by) && network_->arrives(by, destination))) return Network::kNoLink;
  if (routing_ == RoutingPolicy::valiant) return by;
  const auto shortest = static_cast<int>(network_->hops(chip, destination));
  const auto longer = static_cast<int>(network_->hops(chip, by) + network_->hops(by, destination));
  return queue_towards(chip, destination, hop.lane()) * shortest <=
                 queue_towards(chip, by, hop.lane()) * longer
             ? Network::kNoLink
             : by;
}

int SubPlane::queue_towards(unsigned chip, unsigned destination, unsigned lane) {
  const auto ways = network_->ways(chip, destination);
  const unsigned output = network_->first_link(chip) + ways.front();
  return waiting_.queued_cells(output) + links_.occupied(output, lane, queue_.now());
}

unsigned SubPlane::choose(unsigned chip, unsigned input, Hop hop, std::span<const std::uint16_t> ways) {
  const unsigned first = network_->first_link(chip);
  const std::size_t count = ways.size();
  if (count == 1) return first + ways.front();
  if (count == 0) [[unlikely]]
    throw MachineError(fmt::format("unified bus: {} does not reach endpoint {} in sub-plane {}",
                                   network_->layout().chips[chip].text(), hop.destination(), index_));
  // Chips after the first one mix in their number, so that they do not all pick as the first did.
  const bool enters = peer_[input] & kToEndpoint;
  if (routing_ == RoutingPolicy::flow)
    return first + ways[(enters ? hop.flow() : mix(hop.flow() + (std::uint64_t{chip} << 8))) % count];
  if (routing_ == RoutingPolicy::minimal)
    return first +
           ways[(enters ? hop.destination() : mix(hop.destination() + (std::uint64_t{chip} << 16))) % count];
  auto turn = static_cast<unsigned>(turn_[input] < count ? turn_[input] : turn_[input] % count);
  if (routing_ == RoutingPolicy::adaptive || routing_ == RoutingPolicy::ugal)
    turn = least_occupied(first, ways, turn, hop.lane());
  turn_[input] = turn + 1 == count ? 0 : turn + 1;
  return first + ways[turn];
}

unsigned SubPlane::least_occupied(unsigned first, std::span<const std::uint16_t> ways, unsigned turn,
                                  unsigned lane) {
  const auto count = static_cast<unsigned>(ways.size());
  unsigned best = turn;
  int fewest = 0;
  for (unsigned k = 0; k < count; ++k) {
    const unsigned way = turn + k < count ? turn + k : turn + k - count;
    const unsigned link = first + ways[way];
    const int cells = waiting_.queued_cells(link) + links_.occupied(link, lane, queue_.now());
    if (k == 0 || cells < fewest) {
      fewest = cells;
      best = way;
    }
  }
  return best;
}

void SubPlane::arrive(unsigned input, Hop hop) {
  if (breaks_ != nullptr && (cut_off(input, hop) || lacks_way(input, hop))) [[unlikely]]
    return;
  accept(input, hop);
}

void SubPlane::accept(unsigned input, Hop hop) {
  const unsigned chip = chip_of_[input];
  const unsigned first = network_->first_link(chip);
  const Way way = route(chip, input, hop);
  offer(links_, waiting_, way.output, way.lane, input - first, hop, queue_.now(),
        [this, first](unsigned from, unsigned to, unsigned lane, Hop h) { send(first + from, to, lane, h); });
}

void SubPlane::serve_output(unsigned output) {
  const unsigned first = network_->first_link(chip_of_[output]);
  const auto send_from = [this, first](unsigned from, unsigned to, unsigned lane, Hop h) {
    send(first + from, to, lane, h);
  };
  if (turns_ != nullptr) [[unlikely]]
    return serve_classes(links_, waiting_, *turns_, packets_, output, queue_.now(), send_from);
  serve(links_, waiting_, output, queue_.now(), send_from);
}

void SubPlane::free_input(unsigned input, unsigned lane, int cells, Time at) {
  const Upstream& upstream = upstream_[input];
  if (upstream.bank == &links_) {
    links_.return_credits(upstream.link, lane, cells,
                          at + (uneven_ ? links_.latency(upstream.link) : trunk_latency_));
  } else {
    // Back to an endpoint as its packets came.
    upstream.bank->post_credits(upstream.link, lane, cells,
                                at + (uneven_ ? upstream.bank->latency(upstream.link) : endpoint_latency_));
  }
}

void SubPlane::send(unsigned input, unsigned output, unsigned lane, Hop hop) {
  const unsigned lane_of_input = hop.lane();
  hop = hop.on_lane(lane);
  const Transmission t = links_.transmit(output, hop, queue_.now());
  free_input(input, lane_of_input, hop.cells(), t.tail);
  const std::uint32_t peer = peer_[output];
  if (peer & kToEndpoint) {
    deliver(static_cast<Endpoint>(peer & ~kToEndpoint), output, hop, t.tail + links_.latency(output));
    return;
  }
  const Time at = (store_ ? t.tail : t.start) + links_.latency(output);
  queue_.push(any_slower_ ? departure_time(output, hop, t, at) : at + pipeline_[chip_of_[peer]], peer,
              kArrival, hop.bits());
}

// A packet whose flits come slower than the next link sends them goes on only so early that they never run
// out.
Time SubPlane::departure_time(unsigned output, Hop hop, const Transmission& t, Time at) const {
  const unsigned chip = chip_of_[peer_[output]];
  const bool last = chip == network_->chip_of(hop.destination());
  const Time tail = t.tail + links_.latency(output);
  if (!uneven_) {
    if (slower_[output] & (last ? kThanDies : kThanTrunks))
      at = std::max(at, tail - (last ? timings_.die_flit() : timings_.trunk_flit()).start(hop.flits()));
  } else if (const Clock& next = next_flit(chip, hop.destination()); slower(links_.clock(output), next)) {
    at = std::max(at, tail - next.start(hop.flits()));
  }
  return at + (last && network_->layout().chips[chip].of_die ? Time{} : pipeline_[chip]);
}

const Clock& SubPlane::next_flit(unsigned chip, Endpoint destination) const {
  if (!uneven_) return chip == network_->chip_of(destination) ? timings_.die_flit() : timings_.trunk_flit();
  if (chip == network_->chip_of(destination)) return links_.clock(network_->link_to(destination));
  const Clock* fastest = nullptr;
  const auto take = [&](unsigned link) {
    if (network_->link(link).peer == Network::kNoLink) return;
    if (fastest == nullptr || slower(*fastest, links_.clock(link))) fastest = &links_.clock(link);
  };
  const unsigned first = network_->first_link(chip);
  if (network_->has_detours()) {
    for (unsigned link = first; link < first + network_->ports(chip); ++link) take(link);
  } else {
    for (const std::uint16_t port : network_->ways(chip, network_->chip_of(destination))) take(first + port);
  }
  return fastest == nullptr ? timings_.trunk_flit() : *fastest;
}

void SubPlane::deliver(Endpoint endpoint, unsigned output, Hop hop, Time tail) {
  const Attachment& a = attached_[endpoint];
  assert(a.queue != nullptr);
  if (breaks_ != nullptr && misses(output, hop, tail)) [[unlikely]]
    return;
  ++delivered_;
  const InboundClass inbound = hop.inbound();
  const Time latency = inbound == InboundClass::response ? a.response_latency
                       : inbound == InboundClass::read   ? a.read_latency
                                                         : a.write_latency;
  const Time delivery = tail + latency;
  const bool response = inbound == InboundClass::response;
  if (!(response ? a.holds_responses : a.holds_requests)) {
    // It leaves the receive buffer when it is there as a whole; what it waits for after that holds no cells.
    links_.return_credits(output, hop.lane(), hop.cells(), tail + links_.latency(output));
  }
  a.queue->push_from(queue_, delivery, a.unit, a.what, hop.bits());
}

}  // namespace cm384::ub
