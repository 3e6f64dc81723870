#include "observe/messages/unloaded.h"

#include <algorithm>
#include <cmath>

#include "npu_core/pipes/mte_engine.h"
#include "ub_fabric/controller.h"
#include "ub_fabric/link_timing.h"
#include "ub_fabric/wire_format.h"

namespace cm384::observe {

using sim::Operation;
using traces::TrafficRecord;

namespace {

double period_ps(const Clock& clock) {
  return static_cast<double>(clock.numerator()) / static_cast<double>(clock.denominator());
}
double ps(Time time) {
  return static_cast<double>(time.ps);
}

}  // namespace

UnloadedTime::UnloadedTime(const hw::Machine& machine, const ub::Network& network)
    : machine_(machine),
      network_(network),
      parameters_{machine.topology, machine.ub, machine.cpu, machine.package_link} {}

ub::Endpoint UnloadedTime::endpoint(traces::Unit unit) const {
  return static_cast<ub::Endpoint>(unit.cpu ? machine_.topology.socket_endpoint(unit.number) : unit.number);
}

bool UnloadedTime::by_package(const TrafficRecord& r) const {
  return !r.target.cpu && !r.by_ub && machine_.topology.in_one_package(r.source.number, r.target.number);
}

const UnloadedTime::Way& UnloadedTime::way(ub::Endpoint from, ub::Endpoint to) {
  const auto [at, made] = ways_.try_emplace(std::uint32_t{from} << 16 | to);
  Way& w = at->second;
  if (!made || !network_.reaches(from, to)) return w;
  const bool store = machine_.ub.switch_chip.forwarding == "packet-store";
  const auto add = [&](const ub::LinkTiming& link, bool last) {
    w.latency_ps += ps(link.latency);
    w.flit_ps = std::max(w.flit_ps, period_ps(link.flit));
    if (store && !last) w.stored_ps += period_ps(link.flit);
    ++w.links;
  };
  add(ub::timing_of_port(parameters_, network_, from, 0), false);
  unsigned chip = network_.chip_of(from);
  for (const unsigned end = network_.chip_of(to); chip != end;) {
    w.latency_ps += ps(ub::pipeline_of(parameters_, network_, chip));
    const auto ways = network_.ways(chip, end);
    const unsigned link = network_.first_link(chip) + ways.front();
    add(ub::timing_of_link(parameters_, network_, link, 0), false);
    chip = network_.link(network_.link(link).peer).chip;
  }
  if (!network_.layout().chips[chip].of_die || w.links == 1)
    w.latency_ps += ps(ub::pipeline_of(parameters_, network_, chip));
  add(ub::timing_of_link(parameters_, network_, network_.link_to(to), 0), true);
  return w;
}

int UnloadedTime::hops(const TrafficRecord& r) {
  return by_package(r) ? 0 : way(endpoint(r.source), endpoint(r.target)).links;
}

// Of the engine that has the largest share; no request crosses a 512 B boundary.
UnloadedTime::Requests UnloadedTime::requests_of(const TrafficRecord& r, std::uint64_t share) {
  Requests all;
  for (std::uint32_t burst = 0; burst < r.bursts; ++burst) {
    const std::uint64_t begin = r.offset + static_cast<std::uint64_t>(r.stride) * burst;
    const std::uint64_t end = begin + std::min(r.bytes, share);
    all.count += (end - 1) / sim::kRequestBytes - begin / sim::kRequestBytes + 1;
    all.last = static_cast<std::uint32_t>(
        end - std::max(begin, (end - 1) / sim::kRequestBytes * sim::kRequestBytes));
    all.partial = all.partial || begin % sim::kBlockBytes != 0 || end % sim::kBlockBytes != 0;
  }
  all.bytes = static_cast<double>(std::min(r.bytes, share)) * r.bursts;
  return all;
}

double UnloadedTime::memory_ps(const TrafficRecord& r, double bytes) const {
  const bool read = r.operation == Operation::read;
  if (r.target.cpu) return ps(read ? machine_.cpu.memory_read_latency : machine_.cpu.memory_write_latency);
  const hw::OnDieNetwork& n = machine_.memory.on_die_network;
  const hw::L2& l2 = machine_.memory.l2;
  const bool adds = !read && r.operation != Operation::write;
  return ps(n.request_latency + (read ? l2.hit_latency : l2.write_latency) + n.response_latency) +
         (adds ? ps(l2.atomic_latency) : 0.0) +
         bytes * period_ps(Clock(n.clock)) / n.external_bytes_per_cycle;
}

namespace {

// When the last of `count` requests is answered.
double train(double one, double interval, double window, std::uint64_t count) {
  const double before = static_cast<double>(count - 1);
  return one + std::floor(before / window) * std::max(one, window * interval) +
         std::fmod(before, window) * interval;
}

}  // namespace

double UnloadedTime::package_ps(const TrafficRecord& r, const Requests& all, double interval) const {
  const hw::PackageLink& link = machine_.package_link;
  const auto byte_ps = 1e12 / static_cast<double>(link.bandwidth.bytes_per_second);
  const auto header = static_cast<double>(link.header.count);
  const bool read = r.operation == Operation::read;
  const double mean = all.bytes / static_cast<double>(all.count);
  const double one = 2 * ps(link.latency) + (2 * header + all.last) * byte_ps + memory_ps(r, all.last);
  const double window = read ? machine_.mte.remote_reads : machine_.mte.remote_writes;
  return train(one, std::max(interval, (header + mean) * byte_ps), window, all.count);
}

std::optional<Time> UnloadedTime::of(const TrafficRecord& r, std::uint64_t share) {
  if (r.by_rdma || r.engine != TrafficRecord::Engine::mte || r.target == r.source) return std::nullopt;
  const Requests all = requests_of(r, share);
  const bool read = r.operation == Operation::read;
  const bool cube = r.core >= machine_.die.aiv;
  const hw::Mte& mte = cube ? machine_.cube_mte : machine_.mte;
  if (!read && all.partial && mte.remote_partial_write == "merge") return std::nullopt;
  const npu::MteTiming timing = npu::mte_timing(Clock(machine_.die.clock), 0,
                                                read ? mte.read_request_interval : mte.write_request_interval,
                                                Bytes{512}, read ? mte.remote_reads : mte.remote_writes);
  // Between two requests of all engines together, as seen by one of them.
  const auto requests = (r.bytes + share - 1) / share;
  const auto n = static_cast<double>(requests);
  double interval = static_cast<double>(timing.interval_ps);
  if (by_package(r)) return Time{std::llround(package_ps(r, all, interval))};

  const Way& there = way(endpoint(r.source), endpoint(r.target));
  const Way& back = way(endpoint(r.target), endpoint(r.source));
  if (there.links == 0 || back.links == 0) return std::nullopt;
  const auto flits = [&](double bytes, bool response) {
    const auto kind = response ? (read ? ub::PacketKind::read_response : ub::PacketKind::write_ack)
                               : ub::request_kind(r.operation);
    const bool carries = response ? read : !read;
    return ub::packet_flits(kind, carries ? static_cast<int>(std::lround(bytes)) : 0);
  };
  const hw::UbController& own = machine_.ub.controller;
  const hw::UbController& other = r.target.cpu ? machine_.cpu.controller : machine_.ub.controller;
  const double one = over(there, flits(all.last, false)) + over(back, flits(all.last, true)) +
                     ps(read ? other.read_inbound_latency : other.write_inbound_latency) +
                     memory_ps(r, all.last) + ps(own.completion_latency);
  const double mean = all.bytes / static_cast<double>(all.count);
  const auto planes = static_cast<double>(machine_.topology.sub_planes);
  const double at_ports =
      std::max(flits(mean, false) * there.flit_ps, flits(mean, true) * back.flit_ps) / planes;
  const double at_source = ps(read ? own.read_interval : ub::UbController::write_issue_interval(own));
  const double at_target =
      ps(read ? other.target_read_interval : ub::UbController::write_service_interval(other));
  interval = std::max({interval, n * at_ports, n * at_source, n * at_target});
  const double outstanding = read ? own.read_outstanding : own.write_outstanding;
  const double window = std::max(1.0, std::min<double>(timing.remote_window, std::floor(outstanding / n)));
  return Time{std::llround(train(one, interval, window, all.count))};
}

}  // namespace cm384::observe
