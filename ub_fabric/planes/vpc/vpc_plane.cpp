#include "ub_fabric/planes/vpc/vpc_plane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "base/text/error.h"

namespace cm384::vpc {

using namespace cm384::literals;

void check(const Parameters& parameters) {
  if (parameters.window < parameters.mtu)
    throw InputError(
        fmt::format("--vpc-window: {} B does not hold a packet; allowed: at least --vpc-mtu, {} B",
                    parameters.window.count, parameters.mtu.count));
}

VpcPlane::VpcPlane(const Parameters& parameters, const hw::CpuSocket& socket, int nodes, int sockets_per_node)
    : parameters_(parameters),
      tier_(parameters.first_tier()),
      sockets_per_node_(sockets_per_node),
      first_storage_(static_cast<std::size_t>(nodes) * 2),
      queue_(0, Time{65536}) {
  check(parameters);
  const auto cards = static_cast<std::size_t>(nodes);
  links_.assign(cards * 2, Link(parameters.card_rate(), parameters.header));
  // Rates of storage are of what is stored.
  if (tier_ == Tier::evs) links_.insert(links_.end(), cards, Link(parameters.evs_rate, 0_B));
  if (tier_ == Tier::obs) links_.emplace_back(parameters.obs_rate, 0_B);
  dram_.assign(cards * static_cast<std::size_t>(sockets_per_node), ub::SocketDram(socket));
}

std::size_t VpcPlane::read(int node, int socket, Bytes block) {
  assert(block.count > 0);
  Read made;
  made.node = node;
  made.server = socket / sockets_per_node_;
  made.socket = socket;
  made.block = block.count;
  reads_.push_back(made);
  ++unfinished_;
  asked_ += block.count;
  queue_.push(parameters_.latency, 0, kStart, reads_.size() - 1);
  return reads_.size() - 1;
}

void VpcPlane::run_until(Time end) {
  queue_.run_until(end, [this](const sim::Event& event) { handle(event); });
}

std::uint64_t VpcPlane::packet_hops() const {
  std::uint64_t sum = 0;
  for (const Link& link : links_) sum += link.packets();
  return sum;
}

void VpcPlane::handle(const sim::Event& event) {
  const auto argument = static_cast<std::uint32_t>(event.argument);
  switch (static_cast<What>(event.what)) {
    case kStart:
      return ask(argument);
    case kWait:
      return wait(event.unit, argument);
    case kSent:
      return sent(event.unit, argument);
    case kFetch:
      return fetch(argument);
    case kRead:
      packets_[argument].kind = Kind::fetched;
      return wait(storage_of(reads_[packets_[argument].read].server), argument);
    case kServe: {
      const Packet& packet = packets_[argument];
      ub::SocketDram& dram = dram_[static_cast<std::size_t>(reads_[packet.read].socket)];
      queue_.push(dram.access(false, packet.payload, event.at), 0, kRespond, argument);
      return;
    }
    case kRespond:
      packets_[argument].kind = Kind::data;
      return wait(out_of(reads_[packets_[argument].read].server), argument);
  }
}

// For as much as the window lets.
void VpcPlane::ask(std::uint32_t number) {
  Read& read = reads_[number];
  while (read.asked < read.block) {
    const std::int64_t payload = std::min(parameters_.mtu.count, read.block - read.asked);
    if (read.asked - read.arrived + payload > parameters_.window.count) return;
    read.asked += payload;
    const std::uint32_t index = packets_.allocate();
    packets_[index] = {sim::kNoRecord, number, static_cast<std::uint32_t>(payload), Kind::request};
    wait(out_of(read.node), index);
  }
}

void VpcPlane::wait(std::size_t link, std::uint32_t packet) {
  links_[link].wait(packets_, packet);
  start(link);
}

void VpcPlane::start(std::size_t link) {
  Time takes;
  const std::uint32_t packet = links_[link].send(packets_, takes);
  if (packet == sim::kNoRecord) return;
  queue_.push(queue_.now() + takes, static_cast<std::uint32_t>(link), kSent, packet);
}

void VpcPlane::sent(std::size_t link, std::uint32_t index) {
  links_[link].sent();
  start(link);
  const bool inward = link < first_storage_ && link % 2 == 1;
  if (inward) return arrive(index);
  const Packet& packet = packets_[index];
  const Read& read = reads_[packet.read];
  const Time at = queue_.now() + parameters_.packet_latency;
  if (packet.kind == Kind::fetch) return queue_.push(at, 0, kFetch, index);
  const int to = packet.kind == Kind::data ? read.node : read.server;
  queue_.push(at, static_cast<std::uint32_t>(into(to)), kWait, index);
}

// At its card's node.
void VpcPlane::arrive(std::uint32_t index) {
  Packet& packet = packets_[index];
  const Read& read = reads_[packet.read];
  if (packet.kind == Kind::data) return complete(index);
  if (packet.kind == Kind::request && tier_ != Tier::dram) {
    packet.kind = Kind::fetch;
    return wait(out_of(read.server), index);
  }
  Time at = queue_.now();
  if (packet.kind == Kind::fetched)
    at = dram_[static_cast<std::size_t>(read.socket)].access(true, packet.payload, at);
  queue_.push(at, 0, kServe, index);
}

// Storage reads ahead: its latency is in a block's first byte.
void VpcPlane::fetch(std::uint32_t index) {
  Read& read = reads_[packets_[index].read];
  if (!read.fetching) {
    read.fetching = true;
    read.stored = queue_.now() + (tier_ == Tier::evs ? parameters_.evs_latency : parameters_.obs_latency);
  }
  queue_.push(std::max(queue_.now(), read.stored), 0, kRead, index);
}

void VpcPlane::complete(std::uint32_t index) {
  const Packet packet = packets_[index];
  packets_.release(index);
  Read& read = reads_[packet.read];
  read.arrived += packet.payload;
  arrived_ += packet.payload;
  if (read.arrived < read.block) return ask(packet.read);
  read.end = end_ = queue_.now();
  --unfinished_;
}

}  // namespace cm384::vpc
