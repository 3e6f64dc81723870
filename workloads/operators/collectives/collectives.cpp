#include "workloads/operators/collectives/collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"

namespace cm384::operators {

using reference::CollectiveKind;

namespace {

// Until what a die writes to another is acknowledged, without anything in the way.
Time round_trip(const hw::Machine& machine, bool inter_node) {
  const hw::UnifiedBus& ub = machine.ub;
  Time way = ub.link.endpoint_latency * 2 + ub.switch_chip.pipeline_latency;
  if (inter_node) way += ub.link.trunk_latency * 2 + ub.switch_chip.pipeline_latency * 2;
  return way * 2 + ub.controller.write_inbound_latency + ub.controller.completion_latency +
         machine.memory.l2.write_latency;
}

// Bytes that a die's cores write to others, a second.
double write_rate(const hw::Machine& machine) {
  const auto bus = static_cast<double>(hw::peaks_of(machine).unified_bus.bytes_per_second);
  const auto interval = static_cast<double>(machine.ub.controller.write_interval.ps);
  return interval == 0 ? bus : std::min(bus, 512e12 / interval);
}

// Bytes that go from a die to the other one of its package, a second: 512 B have a header.
double package_rate(const hw::Machine& machine) {
  const hw::PackageLink& link = machine.package_link;
  return static_cast<double>(link.bandwidth.bytes_per_second) * 512 /
         (512 + static_cast<double>(link.header.count));
}

// A further exchange, of about three round trips: what is written is acknowledged, flags follow, polls find
// them.
double exchange_seconds(const hw::Machine& machine, int ranks) {
  const Time exchange = round_trip(machine, ranks > machine.topology.dies_per_node) * 3;
  return static_cast<double>(exchange.ps) * 1e-12;
}

}  // namespace

bool can_be_paired(const reference::CollectiveCase& collective, const hw::Machine& machine) {
  return machine.topology.dies_per_package == 2 && collective.ranks % 2 == 0 && collective.ranks >= 4 &&
         collective.kind != CollectiveKind::all_reduce;
}

CollectiveAlgorithm choose_algorithm(const reference::CollectiveCase& collective, int cores,
                                     const hw::Machine& machine) {
  const double leaving = static_cast<double>(collective.bytes) * (collective.ranks - 1) / write_rate(machine);
  if (can_be_paired(collective, machine)) {
    const int packages = collective.ranks / 2;
    const double crossing = static_cast<double>(collective.bytes) * (packages - 1) / write_rate(machine);
    const double within = static_cast<double>(collective.bytes) * packages / package_rate(machine);
    if (crossing + within + exchange_seconds(machine, collective.ranks) < leaving)
      return CollectiveAlgorithm::paired;
  }
  if (collective.ranks > std::min(cores, int{CM384_COLLECTIVE_RANKS})) return CollectiveAlgorithm::rounds;
  if (collective.kind != CollectiveKind::all_reduce) return CollectiveAlgorithm::direct;
  const double in_two = 2 * leaving / collective.ranks + exchange_seconds(machine, collective.ranks);
  return leaving <= in_two ? CollectiveAlgorithm::direct : CollectiveAlgorithm::rounds;
}

int cores_of(const reference::CollectiveCase& collective, CollectiveAlgorithm algorithm, int cores) {
  const int peers = algorithm == CollectiveAlgorithm::paired ? collective.ranks / 2 : collective.ranks;
  const auto most = static_cast<std::uint64_t>(std::max(1, cores / peers));
  const auto slices = static_cast<int>(std::clamp<std::uint64_t>(collective.bytes / 4096, 1, most));
  return std::min(cores, slices * peers);
}

const char* name_of(CollectiveAlgorithm algorithm, CollectiveKind kind) {
  if (kind != CollectiveKind::all_reduce)
    return algorithm == CollectiveAlgorithm::paired ? "by package" : "direct";
  return algorithm == CollectiveAlgorithm::direct ? "one-shot" : "reduce-scatter + all-gather";
}

// Of an all-reduce in two steps a rank gets the others' values of its part alone.
std::uint64_t RankCollective::window_stride() const {
  if (algorithm_ == CollectiveAlgorithm::direct || case_.kind != CollectiveKind::all_reduce)
    return case_.bytes;
  const std::uint64_t lines = (case_.bytes + 511) / 512, ranks = static_cast<std::uint64_t>(case_.ranks);
  return (lines + ranks - 1) / ranks * 512;
}

std::uint64_t RankCollective::flag_bytes() const {
  const auto ranks = static_cast<std::uint32_t>(case_.ranks), blocks = static_cast<std::uint32_t>(cores_);
  switch (algorithm_) {
    case CollectiveAlgorithm::direct:
      return CM384_COLLECTIVE_FLAGS;
    case CollectiveAlgorithm::rounds:
      return cm384_rounds_flag_bytes(ranks, blocks);
    case CollectiveAlgorithm::paired:
      break;
  }
  return cm384_paired_flag_bytes(ranks, blocks);
}

void RankCollective::place(RankMemory& memory) {
  const int most = algorithm_ == CollectiveAlgorithm::direct ? std::min(cores_, int{CM384_COLLECTIVE_RANKS})
                                                             : int{CM384_ROUNDS_RANKS};
  if (case_.ranks < 2 || case_.ranks > most)
    throw InputError(fmt::format("{} ranks; allowed: 2 to {}", case_.ranks, most));
  if (case_.bytes == 0 || case_.bytes % 32 != 0)
    throw InputError(fmt::format("{} B; allowed: multiples of 32 B", case_.bytes));
  runtime_ = &memory.front().runtime();
  std::vector<cm384_rounds_peer> peers;
  for (int rank = 0; rank < case_.ranks; ++rank) {
    host::DeviceMemory& own = memory[static_cast<std::size_t>(rank)];
    cm384_rounds_peer peer{};
    peer.in = own.allocate_lines(case_.in() * 2);
    peer.flags = own.allocate(flag_bytes());
    outputs_.push_back(own.allocate_lines(case_.out() * 2));
    peer.out = outputs_.back();
    const bool gather = case_.kind == CollectiveKind::all_gather;
    peer.window =
        gather ? peer.out : own.allocate_lines(window_stride() * static_cast<std::uint64_t>(case_.ranks));
    if (full_) {
      const std::vector<std::uint16_t> values = reference::make_collective_input(case_, rank);
      runtime_->put(peer.in, std::span<const std::uint16_t>(values));
    } else {
      runtime_->mark_payload(peer.in, case_.in() * 2);
    }
    peers.push_back(peer);
  }
  algorithm_ == CollectiveAlgorithm::direct ? write_direct_arguments(memory, peers)
                                            : write_rounds_arguments(memory, peers);
}

void RankCollective::write_direct_arguments(RankMemory& memory, const std::vector<cm384_rounds_peer>& peers) {
  for (int rank = 0; rank < case_.ranks; ++rank) {
    host::DeviceMemory& own = memory[static_cast<std::size_t>(rank)];
    cm384_collective a{};
    std::ranges::transform(peers, std::begin(a.peers), [](const cm384_rounds_peer& peer) {
      return cm384_collective_peer{peer.in, peer.window, peer.flags};
    });
    a.out = outputs_[static_cast<std::size_t>(rank)];
    a.bytes = case_.bytes;
    a.ranks = static_cast<std::uint32_t>(case_.ranks);
    a.rank = static_cast<std::uint32_t>(rank);
    a.kind = static_cast<std::uint32_t>(case_.kind);
    a.launch = 1;
    tasks_.push_back({own.die(), own.put(a)});
  }
}

void RankCollective::write_rounds_arguments(RankMemory& memory, const std::vector<cm384_rounds_peer>& peers) {
  for (int rank = 0; rank < case_.ranks; ++rank) {
    host::DeviceMemory& own = memory[static_cast<std::size_t>(rank)];
    cm384_collective_rounds a{};
    a.peers = own.allocate_lines(peers.size() * sizeof peers[0]);
    runtime_->put(a.peers, std::span<const cm384_rounds_peer>(peers));
    a.bytes = case_.bytes;
    a.window_stride = window_stride();
    a.ranks = static_cast<std::uint32_t>(case_.ranks);
    a.rank = static_cast<std::uint32_t>(rank);
    a.kind = static_cast<std::uint32_t>(case_.kind);
    tasks_.push_back({own.die(), own.put(a)});
  }
}

std::string RankCollective::check() const {
  for (int rank = 0; rank < case_.ranks; ++rank) {
    std::string difference = reference::compare_collective(
        case_, rank, runtime_->get<std::uint16_t>(outputs_[static_cast<std::size_t>(rank)], case_.out()));
    if (!difference.empty()) return difference;
  }
  return {};
}

}  // namespace cm384::operators
