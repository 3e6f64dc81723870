#include "ub_fabric/planes/rdma/leaf_spine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "base/text/error.h"

namespace cm384::rdma {
namespace {

// Spreads flows over ways up.
std::uint32_t hash_of(const Packet& packet) {
  std::uint64_t h = (std::uint64_t{packet.source} << 16 | packet.destination) + 0x9e3779b97f4a7c15;
  h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9;
  h = (h ^ h >> 27) * 0x94d049bb133111eb;
  return static_cast<std::uint32_t>((h ^ h >> 31) >> 16);
}

void check_headroom(const hw::Rdma& p, Bandwidth rate, Time latency, std::string_view links) {
  const Bytes largest{p.mtu.count + std::max(p.header.count, p.response_header.count)};
  // What is on its way when the pause begins its own, what its sender puts onto the link until then, and the
  // packets that either has just begun.
  const std::int64_t headroom = Clock(Bytes{1}, rate).ticks(latency + latency) + 2 * largest.count;
  if (p.buffer.count < p.pause_on.count + headroom)
    throw InputError(
        fmt::format("rdma.buffer: {} B overflows before a pause works; allowed: at least {} B, rdma.pause_on "
                    "and two link latencies and two packets at the rate of {}",
                    p.buffer.count, p.pause_on.count + headroom, links));
}

}  // namespace

void check(const hw::Rdma& p, bool core) {
  if (p.pause_off > p.pause_on)
    throw InputError(fmt::format("rdma.pause_off: {} B is above rdma.pause_on; allowed: at most {} B",
                                 p.pause_off.count, p.pause_on.count));
  if (p.window < p.mtu)
    throw InputError(fmt::format("rdma.window: {} B does not hold a packet; allowed: at least rdma.mtu, {} B",
                                 p.window.count, p.mtu.count));
  check_headroom(p, std::max(p.link_rate, p.uplink_rate()), p.link_latency, "the fastest link");
  if (core) check_headroom(p, p.core_rate, p.core_latency, "a link to a core switch");
}

LeafSpine::LeafSpine(const hw::Rdma& parameters, unsigned dies, unsigned supernodes, Pools& pools,
                     std::uint32_t source)
    : parameters_(parameters),
      pools_(pools),
      queue_(source, Time{16384}),
      rails_(parameters.wiring == "rails" ? dies / supernodes : 0),
      supernodes_(rails_ == 0 ? supernodes : 1),
      dies_(dies / supernodes_),
      leaves_(total_leaves()),
      spines_(leaves_ == 1 && supernodes_ == 1 ? 0 : static_cast<unsigned>(parameters.spines)),
      cores_(supernodes_ == 1 ? 0 : static_cast<unsigned>(parameters.core_links)),
      spray_(parameters.routing == "spray"),
      attached_(dies) {
  check(parameters, supernodes_ > 1);
  const auto down = static_cast<unsigned>(parameters.dies_per_leaf);
  for (unsigned leaf = 0; leaf < leaves(); ++leaf) add_chip(down + spines_);
  for (unsigned spine = 0; spine < spines(); ++spine) add_chip(leaves_ + cores_);
  for (unsigned core = 0; core < cores(); ++core) add_chip(supernodes_);
  queues_.resize(queue_count_);
  wire();
}

void LeafSpine::add_chip(unsigned ports) {
  chips_.push_back({static_cast<std::uint32_t>(ports_.size()), ports, queue_count_});
  queue_count_ += std::size_t{ports} * ports;
  for (unsigned n = 0; n < ports; ++n) {
    Port port;
    port.chip = static_cast<std::uint32_t>(chips_.size() - 1);
    port.local = n;
    ports_.push_back(port);
  }
}

void LeafSpine::join(std::uint32_t port, std::uint32_t other, const Clock& byte, Time latency) {
  ports_[port].byte = ports_[other].byte = byte;
  ports_[port].latency = ports_[other].latency = latency;
  ports_[port].peer = other;
  ports_[other].peer = port;
}

// A leaf has ports to its dies, then to spines; a spine to leaves, then to core switches; a core switch to
// supernodes.
void LeafSpine::wire() {
  const auto down = static_cast<unsigned>(parameters_.dies_per_leaf);
  const Clock die(Bytes{1}, parameters_.link_rate), up(Bytes{1}, parameters_.uplink_rate()),
      core(Bytes{1}, parameters_.core_rate);
  for (unsigned number = 0; number < supernodes_ * dies_; ++number) {
    Port& port = ports_[port_of_die(number)];
    port.byte = die;
    port.latency = parameters_.link_latency;
    port.peer = kToDie | number;
  }
  for (unsigned supernode = 0; supernode < supernodes_; ++supernode) {
    const unsigned first_leaf = supernode * leaves_, first_spine = leaves() + supernode * spines_;
    for (unsigned leaf = 0; leaf < leaves_; ++leaf) {
      const std::uint32_t first = chips_[first_leaf + leaf].first;
      for (unsigned spine = 0; spine < spines_; ++spine)
        join(first + down + spine, chips_[first_spine + spine].first + leaf, up, parameters_.link_latency);
    }
    for (unsigned spine = 0; spine < spines_; ++spine) {
      for (unsigned n = 0; n < cores_; ++n)
        join(chips_[first_spine + spine].first + leaves_ + n,
             chips_[leaves() + spines() + spine * cores_ + n].first + supernode, core,
             parameters_.core_latency);
    }
  }
}

// Of a supernode.
unsigned LeafSpine::total_leaves() const {
  const auto down = static_cast<unsigned>(parameters_.dies_per_leaf);
  const unsigned rails = std::max(1u, rails_);
  return rails * ((dies_ / rails + down - 1) / down);
}

LeafSpine::Place LeafSpine::place_of(unsigned die) const {
  const auto down = static_cast<unsigned>(parameters_.dies_per_leaf);
  if (rails_ == 0) return {die / down, die % down};
  const unsigned supernode = die / rails_;
  return {supernode / down * rails_ + die % rails_, supernode % down};
}

std::uint32_t LeafSpine::port_of_die(unsigned die) const {
  const Place place = place_of(die % dies_);
  return chips_[die / dies_ * leaves_ + place.leaf].first + place.port;
}

void LeafSpine::inject(sim::EventQueue& from, unsigned die, std::uint32_t packet, Time arrival) {
  assert(arrival >= from.now() + parameters_.link_latency);
  queue_.push_from(from, arrival, port_of_die(die), kArrive, packet);
}

void LeafSpine::run_until(Time end) {
  queue_.run_until(end, [this](const sim::Event& e) {
    const auto packet = static_cast<std::uint32_t>(e.argument);
    switch (static_cast<What>(e.what)) {
      case kArrive:
        return arrive(e.unit, packet);
      case kForward:
        return forward(e.unit, packet);
      case kSent:
        return sent(e.unit, static_cast<std::uint32_t>(e.argument >> 32), packet);
      case kPause:
        ports_[e.unit].paused = packet != 0;
        return start(e.unit);
    }
  });
}

void LeafSpine::arrive(std::uint32_t input, std::uint32_t packet) {
  Port& port = ports_[input];
  port.held += pools_.packets[packet].wire;
  counters_.deepest = std::max(counters_.deepest, static_cast<std::uint64_t>(port.held));
  if (port.held > parameters_.buffer.count)
    throw MachineError(
        fmt::format("rdma plane: the buffer of port {} of switch {} overflows", port.local, port.chip));
  if (port.held > parameters_.pause_on.count && !port.pausing) pause(input, true);
  queue_.push(queue_.now() + parameters_.switch_latency, input, kForward, packet);
}

void LeafSpine::forward(std::uint32_t input, std::uint32_t packet) {
  const std::uint32_t output = output_for(input, pools_.packets[packet]);
  waiting(ports_[output], ports_[input].local).push(pools_.packets, packet);
  ++ports_[output].waiting;
  start(output);
}

// Sends what is next, if there is anything and the link is free.
void LeafSpine::start(std::uint32_t number) {
  Port& output = ports_[number];
  if (output.sending || output.paused || output.waiting == 0) return;
  const Chip& chip = chips_[output.chip];
  std::uint32_t local = output.turn;
  while (waiting(output, local).empty()) local = local + 1 == chip.ports ? 0 : local + 1;
  output.turn = local + 1 == chip.ports ? 0 : local + 1;
  const std::uint32_t packet = waiting(output, local).pop(pools_.packets);
  --output.waiting;
  output.sending = true;
  const std::uint32_t bytes = pools_.packets[packet].wire;
  ++counters_.packets;
  counters_.bytes += bytes;
  const Time tail = queue_.now() + output.byte.start(bytes);
  queue_.push(tail, number, kSent, std::uint64_t{chip.first + local} << 32 | bytes);
  const Time at = tail + output.latency;
  if ((output.peer & kToDie) == 0) return queue_.push(at, output.peer, kArrive, packet);
  const Attachment& die = attached_[output.peer & ~kToDie];
  die.queue->push_from(queue_, at + parameters_.receive_latency, die.unit, die.arrived, packet);
}

void LeafSpine::sent(std::uint32_t output, std::uint32_t input, std::uint32_t bytes) {
  Port& from = ports_[input];
  from.held -= bytes;
  if (from.pausing && from.held <= parameters_.pause_off.count) pause(input, false);
  ports_[output].sending = false;
  start(output);
}

void LeafSpine::pause(std::uint32_t input, bool on) {
  Port& port = ports_[input];
  port.pausing = on;
  counters_.pauses += on ? 1 : 0;
  const Time at = queue_.now() + port.latency;
  if ((port.peer & kToDie) == 0) return queue_.push(at, port.peer, kPause, on ? 1 : 0);
  const Attachment& die = attached_[port.peer & ~kToDie];
  die.queue->push_from(queue_, at, die.unit, die.paused, on ? 1 : 0);
}

std::uint32_t LeafSpine::output_for(std::uint32_t input, const Packet& packet) {
  const auto down = static_cast<unsigned>(parameters_.dies_per_leaf);
  Port& port = ports_[input];
  const Chip& chip = chips_[port.chip];
  const unsigned supernode = packet.destination / dies_, leaf = place_of(packet.destination % dies_).leaf;
  if (port.chip < leaves()) {
    if (port.chip == supernode * leaves_ + leaf) return port_of_die(packet.destination);
    return chip.first + down + way_up(port, packet, spines_, 1);
  }
  const unsigned spine = port.chip - leaves();
  if (spine >= spines()) return chip.first + supernode;
  if (spine / spines_ == supernode) return chip.first + leaf;
  return chip.first + leaves_ + way_up(port, packet, cores_, spines_);
}

// `level`: what is left of the hash there.
std::uint32_t LeafSpine::way_up(Port& input, const Packet& packet, unsigned ways, unsigned level) const {
  if (!spray_) return hash_of(packet) / level % ways;
  const std::uint32_t way = input.next_up;
  input.next_up = way + 1 == ways ? 0 : way + 1;
  return way;
}

void LeafSpine::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const {
  to.declare(at, "packets", "packets", "sent by switches, each link counted", counters_.packets);
  to.declare(at, "bytes", "B", "of those packets on the wire", counters_.bytes);
  to.declare(at, "pauses", "times", "that a port of a switch has paused its sender", counters_.pauses);
  to.declare(at, "deepest", "B", "most that a port's buffer has held", counters_.deepest);
}

}  // namespace cm384::rdma
