#include "system/observe/messages/unloaded.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <cmath>

#include "npu_core/pipes/mte_engine.h"
#include "ub_fabric/controller.h"
#include "ub_fabric/sub_plane.h"
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

UnloadedTime::UnloadedTime(const supernode::Supernode& machine)
    : supernode_(machine),
      machine_(machine.parameters()),
      store_(machine_.ub.switch_chip.forwarding == "packet-store"),
      spreading_(machine_.ub.controller.spreading) {}

int UnloadedTime::supernode_of(traces::Unit unit) const {
  const hw::Topology one = machine_.topology.one_supernode();
  return unit.number / (unit.cpu ? one.sockets() : one.dies());
}

// In its supernode.
ub::Endpoint UnloadedTime::endpoint(traces::Unit unit) const {
  const hw::Topology one = machine_.topology.one_supernode();
  return static_cast<ub::Endpoint>(unit.cpu ? one.socket_endpoint(unit.number % one.sockets())
                                            : unit.number % one.dies());
}

bool UnloadedTime::by_package(const TrafficRecord& r) const {
  return !r.target.cpu && !r.by_ub && machine_.topology.in_one_package(r.source.number, r.target.number);
}

const UnloadedTime::Ways& UnloadedTime::ways(const TrafficRecord& r, bool back) {
  const traces::Unit &from = back ? r.target : r.source, &to = back ? r.source : r.target;
  const auto key = [](traces::Unit unit) { return std::uint64_t{unit.cpu} << 16 | unit.number; };
  const auto [at, made] = ways_.try_emplace(key(from) << 32 | key(to));
  Ways& all = at->second;
  if (!made || supernode_of(from) != supernode_of(to)) return all;
  const int planes = machine_.topology.sub_planes;
  for (int p = 0; p < planes; ++p)
    all.push_back(way(supernode_.plane(supernode_of(from) * planes + p), endpoint(from), endpoint(to)));
  return all;
}

// A link with so many buffers before it.
void UnloadedTime::keep_busiest(Way& w, double flit_ps, double buffers) {
  if (flit_ps <= w.busiest_ps) return;
  w.busiest_ps = flit_ps;
  w.buffers = buffers;
}

UnloadedTime::Way UnloadedTime::way(const ub::SubPlane& plane, ub::Endpoint from, ub::Endpoint to) const {
  const ub::Network& network = plane.network();
  Way w;
  if (!network.reaches(from, to)) return w;
  const unsigned first = network.chip_of(from), last = network.chip_of(to);
  const auto end_link = [&](const ub::LinkTiming& link) {
    const double flit = period_ps(link.flit);
    w.latency_ps += ps(link.latency);
    w.flit_ps = std::max(w.flit_ps, flit);
    keep_busiest(w, flit, w.passed);
    ++w.passed;
    ++w.links;
  };
  const ub::LinkTiming& port = plane.timings().of_port(from);
  end_link(port);
  w.port_ps = period_ps(port.flit);
  if (store_) w.stored_ps += period_ps(port.flit);
  const unsigned by = network.detour(first, last);
  if (by != ub::Network::kNoLink) pass_chips(w, plane, first, by);
  pass_chips(w, plane, by != ub::Network::kNoLink ? by : first, last);
  if (!network.layout().chips[last].of_die || w.links == 1)
    w.latency_ps += ps(plane.timings().of_chip(last).pipeline);
  end_link(plane.timings().of_link(network.link_to(to)));
  return w;
}

// Links between chips and the pipelines before them: the least latency, the widest of ways, and what the
// busiest link carries where each chip shares its packets evenly among its ways.
void UnloadedTime::pass_chips(Way& w, const ub::SubPlane& plane, unsigned from, unsigned to) const {
  const ub::Network& network = plane.network();
  struct Chip {
    double latency_ps = 0, flit_ps = 0, stored_ps = 0;  // from here on
    int links = 0;
    double load = 0;    // of what enters at `from`
    double passed = 0;  // buffers on the ways from there
  };
  std::unordered_map<unsigned, Chip> chips;
  std::vector<unsigned> ordered;  // each behind all that follow it
  const auto others = [&](unsigned chip, const auto& visit) {
    for (const std::uint16_t port : network.ways(chip, to)) {
      const unsigned link = network.first_link(chip) + port;
      visit(plane.timings().of_link(link), network.link(network.link(link).peer).chip);
    }
  };
  const auto visit = [&](const auto& self, unsigned chip) -> void {
    if (!chips.try_emplace(chip).second) return;
    if (chip != to) {
      others(chip, [&](const ub::LinkTiming&, unsigned next) { self(self, next); });
      Chip best;
      best.latency_ps = best.flit_ps = best.stored_ps = HUGE_VAL;
      others(chip, [&](const ub::LinkTiming& link, unsigned next) {
        const Chip& n = chips[next];
        const double flit = period_ps(link.flit);
        best.latency_ps = std::min(best.latency_ps, n.latency_ps + ps(link.latency));
        best.flit_ps = std::min(best.flit_ps, std::max(n.flit_ps, flit));
        best.stored_ps = std::min(best.stored_ps, n.stored_ps + (store_ ? flit : 0));
        best.links = best.links == 0 ? n.links + 1 : std::min(best.links, n.links + 1);
      });
      best.latency_ps += ps(plane.timings().of_chip(chip).pipeline);
      chips[chip] = best;
    }
    ordered.push_back(chip);
  };
  visit(visit, from);
  const Chip& whole = chips[from];
  w.latency_ps += whole.latency_ps;
  w.flit_ps = std::max(w.flit_ps, whole.flit_ps);
  w.stored_ps += whole.stored_ps;
  w.links += whole.links;
  chips[from].load = 1;
  for (auto chip = ordered.rbegin(); chip != ordered.rend(); ++chip) {
    if (*chip == to) continue;
    const auto shares = static_cast<double>(network.ways(*chip, to).size());
    const double part = chips[*chip].load / shares, passed = chips[*chip].passed;
    others(*chip, [&](const ub::LinkTiming& link, unsigned next) {
      chips[next].load += part;
      chips[next].passed += 1 + passed / shares;
      keep_busiest(w, part * period_ps(link.flit), w.passed + passed);
    });
  }
  w.passed += chips[to].passed;
}

int UnloadedTime::hops(const TrafficRecord& r) {
  if (by_package(r)) return 0;
  int least = 0;
  for (const Way& way : ways(r, false)) {
    if (way.links != 0) least = least == 0 ? way.links : std::min(least, way.links);
  }
  return least;
}

// No request crosses a 512 B boundary.
void UnloadedTime::add(Requests& all, std::uint64_t begin, std::uint64_t end) {
  all.count += (end - 1) / sim::kRequestBytes - begin / sim::kRequestBytes + 1;
  all.bytes += static_cast<double>(end - begin);
  all.last =
      static_cast<std::uint32_t>(end - std::max(begin, (end - 1) / sim::kRequestBytes * sim::kRequestBytes));
  all.partial = all.partial || begin % sim::kBlockBytes != 0 || end % sim::kBlockBytes != 0;
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

// Into a die's memory.
UnloadedTime::Place UnloadedTime::ports_of(const TrafficRecord& r, const Requests& all) const {
  if (r.target.cpu) return {};
  const hw::OnDieNetwork& n = machine_.memory.on_die_network;
  return {all.mean() * period_ps(Clock(n.clock)) / n.external_bytes_per_cycle / n.external_ports, Place::kAny,
          static_cast<std::uint64_t>(n.external_ports)};
}

// When the last of `count` requests is answered.
double UnloadedTime::train(double one, Place place, std::uint64_t count) {
  const double before = count > place.at_once ? static_cast<double>(count - place.at_once) : 0;
  return one + std::floor(before / place.window) * std::max(one, place.window * place.interval_ps) +
         std::fmod(before, place.window) * place.interval_ps;
}

// By each shared place alone, and by the engine with the most requests, between two of which stand those of
// the others.
double UnloadedTime::longest(double one, Place engine, const Requests& all, const Requests& most,
                             std::initializer_list<Place> shared) {
  const double beside = static_cast<double>(all.count) / static_cast<double>(most.count);
  double whole = 0;
  for (const Place& place : shared) {
    whole = std::max(whole, train(one, place, all.count));
    engine.window = std::min(engine.window, std::max(1.0, std::floor(place.window / beside)));
    if (beside * place.interval_ps <= engine.interval_ps) continue;
    engine.interval_ps = beside * place.interval_ps;
    engine.at_once = static_cast<std::uint64_t>(std::ceil(static_cast<double>(place.at_once) / beside));
  }
  return std::max(whole, train(one, engine, most.count));
}

double UnloadedTime::package_ps(const TrafficRecord& r, const Requests& all, const Requests& most,
                                Place engine) const {
  const hw::PackageLink& link = machine_.package_link;
  const auto byte_ps = 1e12 / static_cast<double>(link.bandwidth.bytes_per_second);
  const auto header = static_cast<double>(link.header.count);
  const double one = 2 * ps(link.latency) + (2 * header + all.last) * byte_ps + memory_ps(r, all.last);
  return longest(one, engine, all, most, {Place{(header + all.mean()) * byte_ps}, ports_of(r, all)});
}

double UnloadedTime::planes_ps(const TrafficRecord& r, const Requests& all, const Requests& most,
                               Place engine, const Ways& there, const Ways& back) const {
  const bool read = r.operation == Operation::read;
  const hw::UbController& own = machine_.ub.controller;
  const hw::UbController& other = r.target.cpu ? machine_.cpu.controller : machine_.ub.controller;
  const auto flits = [&](double bytes, bool response) {
    const auto kind = response ? (read ? ub::PacketKind::read_response : ub::PacketKind::write_ack)
                               : ub::request_kind(r.operation);
    const bool carries = response ? read : !read;
    return ub::packet_flits(kind, carries ? static_cast<int>(std::lround(bytes)) : 0);
  };
  const double elsewhere = ps(read ? other.read_inbound_latency : other.write_inbound_latency) +
                           memory_ps(r, all.last) + ps(own.completion_latency);
  // Of a request and its answer; between two on the port, and at the slowest place; what waits on the way to
  // that.
  struct Plane {
    double one, port, slowest, waiting;
  };
  std::vector<Plane> planes;
  const double engines = std::ceil(static_cast<double>(all.count) / static_cast<double>(most.count));
  const double lane_pairs = supernode_.plane(0).lane_pairs();
  for (std::size_t p = 0; p < there.size(); ++p) {
    if (there[p].links == 0 || back[p].links == 0) continue;
    const int out = flits(all.mean(), false), in = flits(all.mean(), true);
    const int packet_cells = (out + 7) / 8;  // as Hop::cells()
    const double cells = there[p].buffers * machine_.ub.link.buffer_cells * std::min(engines, lane_pairs);
    planes.push_back(
        {over(there[p], flits(all.last, false)) + over(back[p], flits(all.last, true)) + elsewhere,
         out * there[p].port_ps, std::max(out * there[p].busiest_ps, in * back[p].busiest_ps),
         cells / packet_cells});
  }
  if (planes.empty()) return 0;
  std::ranges::sort(planes, {}, &Plane::one);
  const auto count = static_cast<double>(all.count), width = static_cast<double>(planes.size());
  double by_ports = 0, by_ways = 0;  // requests per ps where each sub-plane does what it can
  for (const Plane& plane : planes) {
    by_ports += 1 / plane.port;
    by_ways += 1 / plane.slowest;
  }
  const auto outstanding = static_cast<double>(read ? own.read_outstanding : own.write_outstanding);
  const Place issue{ps(read ? own.read_interval : ub::write_issue_interval(own)), outstanding};
  const Place service{ps(read ? other.target_read_interval : ub::write_service_interval(other))};
  double whole = longest(planes.front().one, engine, all, most,
                         {issue, service, Place{1 / by_ways, Place::kAny, planes.size()}, ports_of(r, all)});
  if (spreading_ == "flow") return whole;
  // Requests go by all ports in turn, unless the queue of a slower one keeps them away; from a port whose way
  // is slow further on only once what waits there has filled the buffers up to that place.
  const bool in_turn = read || spreading_ == "round-robin";
  for (const Plane& plane : planes) {
    const double share = 1 / plane.slowest / by_ways;
    const double part =
        in_turn ? count / width
                : std::min(count / plane.port / by_ports, count * share + plane.waiting * (1 - share));
    if (part < 1) continue;
    whole = std::max(whole, train(plane.one, Place{plane.slowest}, static_cast<std::uint64_t>(part)));
  }
  return whole;
}

std::size_t UnloadedTime::HashOfAsked::operator()(const Asked& a) const {
  std::size_t hash = 0;
  for (const std::uint64_t part : {a.ends, a.bytes, a.share, static_cast<std::uint64_t>(a.stride),
                                   std::uint64_t{a.bursts} << 32 | a.in_request})
    boost::hash_combine(hash, part);
  return hash;
}

UnloadedTime::Asked UnloadedTime::asked_of(const TrafficRecord& r, std::uint64_t share) const {
  const auto key = [](traces::Unit unit) { return std::uint64_t{unit.cpu} << 16 | unit.number; };
  const std::uint64_t how = std::uint64_t{r.by_ub} << 1 | std::uint64_t{r.core >= machine_.die.aiv};
  return {key(r.source) << 17 | key(r.target) | how << 34 | static_cast<std::uint64_t>(r.operation) << 36,
          r.bytes,
          share,
          r.stride,
          r.bursts,
          static_cast<std::uint32_t>(r.offset % sim::kRequestBytes)};
}

// Traces repeat themselves: what one like it takes is known.
std::optional<Time> UnloadedTime::of(const TrafficRecord& r, std::uint64_t share) {
  if (r.by_rdma || !machine_.accelerator.has_cores() || r.engine != TrafficRecord::Engine::mte ||
      r.target == r.source)
    return std::nullopt;
  if (known_.size() == kMostKnown) known_.clear();
  const auto [at, fresh] = known_.try_emplace(asked_of(r, share));
  if (fresh) at->second = work_out(r, share);
  return at->second;
}

std::optional<Time> UnloadedTime::work_out(const TrafficRecord& r, std::uint64_t share) {
  Requests all, most;  // of all engines, of the first, which has the most
  for (std::uint32_t burst = 0; burst < r.bursts; ++burst) {
    const std::uint64_t first = r.offset + static_cast<std::uint64_t>(r.stride) * burst;
    add(most, first, first + std::min(r.bytes, share));
    for (std::uint64_t begin = 0; begin < r.bytes; begin += share)
      add(all, first + begin, first + std::min(r.bytes, begin + share));
  }
  const bool read = r.operation == Operation::read;
  const bool cube = r.core >= machine_.die.aiv;
  const hw::Mte& mte = cube ? machine_.cube_mte : machine_.mte;
  if (!read && all.partial && mte.remote_partial_write == "merge") return std::nullopt;
  const npu::MteTiming timing = npu::mte_timing(Clock(machine_.die.clock), 0,
                                                read ? mte.read_request_interval : mte.write_request_interval,
                                                Bytes{512}, read ? mte.remote_reads : mte.remote_writes);
  const Place engine{static_cast<double>(timing.interval_ps), static_cast<double>(timing.remote_window)};
  const double whole = by_package(r) ? package_ps(r, all, most, engine)
                                     : planes_ps(r, all, most, engine, ways(r, false), ways(r, true));
  if (whole == 0) return std::nullopt;
  return Time{std::llround(whole)};
}

}  // namespace cm384::observe
