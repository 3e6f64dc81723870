#include "rdma_fabric/leaf_spine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "hw/error.h"

namespace cm384::rdma {
namespace {

// Spreads flows over spines.
std::uint32_t hash_of(const Packet& packet) {
  std::uint64_t h = (std::uint64_t{packet.source} << 16 | packet.destination) + 0x9e3779b97f4a7c15;
  h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9;
  h = (h ^ h >> 27) * 0x94d049bb133111eb;
  return static_cast<std::uint32_t>((h ^ h >> 31) >> 16);
}

}  // namespace

void check(const hw::Rdma& p) {
  if (p.pause_off > p.pause_on)
    throw InputError(fmt::format("rdma.pause_off: {} B is above rdma.pause_on; allowed: at most {} B",
                                 p.pause_off.count, p.pause_on.count));
  const Bytes largest{p.mtu.count + std::max(p.header.count, p.response_header.count)};
  if (p.window < p.mtu)
    throw InputError(fmt::format("rdma.window: {} B does not hold a packet; allowed: at least rdma.mtu, {} B",
                                 p.window.count, p.mtu.count));
  // What is on its way when the pause begins its own, what its sender puts onto the link until then, and the
  // packets that either has just begun.
  const Clock fastest(Bytes{1}, std::max(p.link_rate, p.uplink_rate()));
  const std::int64_t headroom = fastest.ticks(p.link_latency + p.link_latency) + 2 * largest.count;
  if (p.buffer.count < p.pause_on.count + headroom)
    throw InputError(
        fmt::format("rdma.buffer: {} B overflows before a pause works; allowed: at least {} B, rdma.pause_on "
                    "and two link "
                    "latencies and two packets at the rate of the fastest link",
                    p.buffer.count, p.pause_on.count + headroom));
}

LeafSpine::LeafSpine(const hw::Rdma& parameters, unsigned dies, Pools& pools, std::uint32_t source)
    : parameters_(parameters),
      pools_(pools),
      queue_(source, Time{16384}),
      leaves_((dies + static_cast<unsigned>(parameters.dies_per_leaf) - 1) /
              static_cast<unsigned>(parameters.dies_per_leaf)),
      spines_(leaves_ == 1 ? 0 : static_cast<unsigned>(parameters.spines)),
      spray_(parameters.routing == "spray"),
      attached_(dies) {
  check(parameters);
  const auto down = static_cast<unsigned>(parameters.dies_per_leaf);
  const Clock die_byte(Bytes{1}, parameters.link_rate), up_byte(Bytes{1}, parameters.uplink_rate());
  std::size_t queues = 0;
  const auto add_chip = [&](unsigned ports) {
    chips_.push_back({static_cast<std::uint32_t>(ports_.size()), ports, queues});
    queues += std::size_t{ports} * ports;
    for (unsigned n = 0; n < ports; ++n) {
      Port port;
      port.chip = static_cast<std::uint32_t>(chips_.size() - 1);
      port.local = n;
      ports_.push_back(port);
    }
  };
  for (unsigned leaf = 0; leaf < leaves_; ++leaf) add_chip(down + spines_);
  for (unsigned spine = 0; spine < spines_; ++spine) add_chip(leaves_);
  queues_.resize(queues);
  for (unsigned leaf = 0; leaf < leaves_; ++leaf) {
    for (unsigned n = 0; n < down; ++n) {
      Port& port = ports_[chips_[leaf].first + n];
      port.byte = die_byte;
      port.peer = kToDie | (leaf * down + n);
    }
    for (unsigned spine = 0; spine < spines_; ++spine) {
      const std::uint32_t up = chips_[leaf].first + down + spine,
                          below = chips_[leaves_ + spine].first + leaf;
      ports_[up].byte = ports_[below].byte = up_byte;
      ports_[up].peer = below;
      ports_[below].peer = up;
    }
  }
}

void LeafSpine::inject(sim::EventQueue& from, unsigned die, std::uint32_t packet, Time arrival) {
  assert(arrival >= from.now() + parameters_.link_latency);
  const auto down = static_cast<unsigned>(parameters_.dies_per_leaf);
  queue_.push_from(from, arrival, chips_[die / down].first + die % down, kArrive, packet);
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
  const Time at = tail + parameters_.link_latency;
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
  const Time at = queue_.now() + parameters_.link_latency;
  if ((port.peer & kToDie) == 0) return queue_.push(at, port.peer, kPause, on ? 1 : 0);
  const Attachment& die = attached_[port.peer & ~kToDie];
  die.queue->push_from(queue_, at, die.unit, die.paused, on ? 1 : 0);
}

std::uint32_t LeafSpine::output_for(std::uint32_t input, const Packet& packet) {
  const auto down = static_cast<unsigned>(parameters_.dies_per_leaf);
  Port& port = ports_[input];
  const Chip& chip = chips_[port.chip];
  const unsigned leaf = packet.destination / down;
  if (port.chip >= leaves_) return chip.first + leaf;
  if (port.chip == leaf) return chip.first + packet.destination % down;
  if (!spray_) return chip.first + down + hash_of(packet) % spines_;
  const std::uint32_t spine = port.next_spine;
  port.next_spine = spine + 1 == spines_ ? 0 : spine + 1;
  return chip.first + down + spine;
}

void LeafSpine::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const {
  to.declare(at, "packets", "packets", "sent by switches, each link counted", counters_.packets);
  to.declare(at, "bytes", "B", "of those packets on the wire", counters_.bytes);
  to.declare(at, "pauses", "times", "that a port of a switch has paused its sender", counters_.pauses);
  to.declare(at, "deepest", "B", "most that a port's buffer has held", counters_.deepest);
}

}  // namespace cm384::rdma
