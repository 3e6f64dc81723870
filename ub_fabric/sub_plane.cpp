#include "ub_fabric/sub_plane.h"

#include <cassert>

#include "ub_fabric/chip_host.h"
#include "ub_fabric/output_stage.h"
#include "ub_fabric/wire_format.h"

namespace cm384::ub {

SubPlane::SubPlane(unsigned index, const Parameters& parameters, PacketPool& packets, std::uint32_t source,
                   std::uint64_t seed)
    : index_(index),
      dies_(static_cast<unsigned>(parameters.topology.dies())),
      shape_(parameters.topology),
      packets_(packets),
      queue_(source, Time{1024}),
      links_(queue_, 0, kOutput, shape_.chips() * shape_.ports(),
             static_cast<unsigned>(parameters.ub.link.lanes),
             RetryTimes{parameters.ub.link.retry_turnaround, parameters.ub.link.retry_timeout}),
      waiting_(shape_.chips() * shape_.ports(), static_cast<unsigned>(parameters.ub.link.lanes),
               shape_.ports()),
      routing_(routing_policy(parameters.ub.switch_chip.routing)),
      store_(parameters.ub.switch_chip.forwarding == "packet-store"),
      pipeline_(parameters.ub.switch_chip.pipeline_latency),
      endpoint_latency_(parameters.ub.link.endpoint_latency),
      trunk_latency_(parameters.ub.link.trunk_latency),
      peer_(shape_.chips() * shape_.ports(), 0),
      upstream_(shape_.chips() * shape_.ports()),
      turn_(shape_.chips() * shape_.ports(), 0),
      attached_(shape_.endpoints()),
      foreign_(shape_.chips(), nullptr) {
  check(parameters);
  const hw::UbLink& link = parameters.ub.link;
  const Clock flit(Bytes{kFlitBytes}, link.bandwidth);
  const Clock socket_flit(Bytes{kFlitBytes * parameters.topology.sub_planes}, parameters.cpu.bandwidth);
  for (unsigned e = 0; e < shape_.endpoints(); ++e) {
    const auto endpoint = static_cast<Endpoint>(e);
    const unsigned number = link_to_endpoint(endpoint);
    const bool socket = static_cast<int>(e) >= parameters.topology.dies();
    links_.connect(number, socket ? socket_flit : flit, link.endpoint_latency, link.buffer_cells);
    peer_[number] = kToEndpoint | e;
  }
  for (unsigned node = 0; node < shape_.nodes(); ++node) {
    for (unsigned l2 = 0; l2 < shape_.l2_switches(); ++l2) {
      const unsigned up = link_up(node, l2);
      const unsigned down = link_down(l2, node);
      links_.connect(up, flit, link.trunk_latency, link.buffer_cells);
      links_.connect(down, flit, link.trunk_latency, link.buffer_cells);
      // A port's input has the same number as its output: what leaves by `up` comes in by `down`.
      peer_[up] = down;
      peer_[down] = up;
      upstream_[down] = Upstream{&links_, up};
      upstream_[up] = Upstream{&links_, down};
    }
  }
  for (unsigned n = 0; n < shape_.chips() * shape_.ports(); ++n) {
    chip_of_.push_back(static_cast<std::uint16_t>(n / shape_.ports()));
    turn_[n] = static_cast<std::uint8_t>(mix(mix(seed ^ index) + n) % shape_.l2_switches());
  }
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
      model->arrived(host, event.unit - chip * shape_.ports(), Hop{event.argument});
    }
    return;
  }
  const auto output = static_cast<unsigned>(event.argument);
  if (!links_.woken(output, event.at)) return;
  const unsigned chip = chip_of_[output];
  if (foreign_[chip] == nullptr) [[likely]] {
    serve_output(output);
  } else {
    SubPlaneChipHost host(*this, chip);
    foreign_[chip]->woken(host, output - chip * shape_.ports());
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
  const unsigned node = shape_.node(hop.destination());
  const unsigned port = !shape_.is_l1(chip) ? node
                        : node == chip      ? shape_.endpoint_port(hop.destination())
                                            : shape_.uplink(turn_[event.unit]);
  const unsigned output = shape_.input(chip, port);
  links_.prefetch(output, hop.lane());
  waiting_.prefetch(output, hop.lane(), event.unit - shape_.input(chip, 0));
}

// The event stands at the end of the chip's pipeline: a packet and all it meets there have the same latency
// behind them.
void SubPlane::inject(sim::EventQueue& from, Endpoint endpoint, Hop hop, Time arrival) {
  assert(arrival >= from.now() + endpoint_latency_);
  const unsigned input = link_to_endpoint(endpoint);
  if (foreign_[chip_of_[input]] == nullptr) arrival += pipeline_;
  ++injected_.mine();
  queue_.push_from(from, arrival, input, kArrival, hop.bits());
}

void SubPlane::free_cells(Endpoint endpoint, unsigned lane, int cells, Time at) {
  const unsigned link = link_to_endpoint(endpoint);
  links_.post_credits(link, lane, cells, at + links_.latency(link));
}

unsigned SubPlane::route(unsigned chip, unsigned input, Hop hop) {
  const unsigned node = shape_.node(hop.destination());
  if (!shape_.is_l1(chip)) return node;
  if (node == chip) return shape_.endpoint_port(hop.destination());
  return shape_.uplink(choose_l2(chip, input, hop));
}

unsigned SubPlane::choose_l2(unsigned chip, unsigned input, Hop hop) {
  if (routing_ == RoutingPolicy::flow) return hop.flow() % shape_.l2_switches();
  unsigned l2 = turn_[input];
  if (routing_ == RoutingPolicy::adaptive) l2 = least_occupied(chip, l2, hop.lane());
  turn_[input] = static_cast<std::uint8_t>(l2 + 1 == shape_.l2_switches() ? 0 : l2 + 1);
  return l2;
}

unsigned SubPlane::least_occupied(unsigned chip, unsigned turn, unsigned lane) {
  unsigned best = turn;
  int fewest = 0;
  for (unsigned k = 0; k < shape_.l2_switches(); ++k) {
    const unsigned l2 = (turn + k) % shape_.l2_switches();
    const unsigned link = link_up(chip, l2);
    const int cells = waiting_.queued_cells(link) + links_.occupied(link, lane, queue_.now());
    if (k == 0 || cells < fewest) {
      fewest = cells;
      best = l2;
    }
  }
  return best;
}

void SubPlane::arrive(unsigned input, Hop hop) {
  const unsigned chip = chip_of_[input];
  const unsigned first = chip * shape_.ports();
  const unsigned output = first + route(chip, input, hop);
  offer(links_, waiting_, output, input - first, hop, queue_.now(),
        [this, first](unsigned from, unsigned to, Hop h) { send(first + from, to, h); });
}

void SubPlane::serve_output(unsigned output) {
  const unsigned first = chip_of_[output] * shape_.ports();
  serve(links_, waiting_, output, queue_.now(),
        [this, first](unsigned from, unsigned to, Hop h) { send(first + from, to, h); });
}

void SubPlane::send(unsigned input, unsigned output, Hop hop) {
  const Transmission t = links_.transmit(output, hop, queue_.now());
  const Upstream& upstream = upstream_[input];
  if (upstream.bank == &links_) {
    links_.give_credits(upstream.link, hop.lane(), hop.cells(), t.tail + trunk_latency_);
  } else {
    upstream.bank->post_credits(upstream.link, hop.lane(), hop.cells(), t.tail + endpoint_latency_);
  }
  const std::uint32_t peer = peer_[output];
  if (peer & kToEndpoint) {
    deliver(static_cast<Endpoint>(peer & ~kToEndpoint), output, hop, t.tail + links_.latency(output));
    return;
  }
  Time at = (store_ ? t.tail : t.start) + links_.latency(output);
  if (foreign_[chip_of_[peer]] == nullptr) at += pipeline_;
  queue_.push(at, peer, kArrival, hop.bits());
}

void SubPlane::deliver(Endpoint endpoint, unsigned output, Hop hop, Time tail) {
  const Attachment& a = attached_[endpoint];
  assert(a.queue != nullptr);
  ++delivered_;
  const InboundClass inbound = hop.inbound();
  const Time latency = inbound == InboundClass::response ? a.response_latency
                       : inbound == InboundClass::read   ? a.read_latency
                                                         : a.write_latency;
  const Time delivery = tail + latency;
  const bool response = inbound == InboundClass::response;
  if (!(response ? a.holds_responses : a.holds_requests)) {
    // Reads come in faster than writes and may be delivered before those that were sent ahead of them.
    links_.give_credits(output, hop.lane(), hop.cells(), delivery + links_.latency(output),
                        inbound == InboundClass::write ? 1 : 0);
  }
  a.queue->push_from(queue_, delivery, a.unit, a.what, hop.bits());
}

}  // namespace cm384::ub
