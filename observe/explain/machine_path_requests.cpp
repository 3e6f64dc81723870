// Requests: through L2 and HBM, and over the Unified Bus.
#include <algorithm>
#include <cmath>

#include "firmware/abi/memory_map.h"
#include "observe/explain/explained_hop.h"
#include "observe/explain/machine_path.h"
#include "sim/transaction.h"

namespace cm384::observe {
namespace {

using npu::TraceEntry;

double ps_of(std::uint64_t word) {
  return static_cast<double>(static_cast<std::int64_t>(word));
}
double ps_of(Time time) {
  return static_cast<double>(time.ps);
}
constexpr std::uint64_t kSector = 128;

std::uint64_t sectors_of(std::uint64_t offset, std::uint64_t bytes) {
  return (offset % kSector + bytes + kSector - 1) / kSector;
}
std::size_t engine_of_tag(std::uint64_t tag) {
  return (tag & 0xffff) / 0x1000;
}

}  // namespace

void MachinePath::of_requests(const TraceEntry& e, Words w, Die& die) {
  switch (e.kind) {
    case TraceEntry::submitted:
      return submitted(e, w, die);
    case TraceEntry::answered:
      return answered(e, w, die);
    case TraceEntry::came:
      return came(e, w, die);
    case TraceEntry::served:
      return served(w, die);
    case TraceEntry::local:
      pending_ = {true, e, {w[0], w[1], w[2], w[3]}};
      return;
    default:
      return counted();
  }
}

// One of a scalar unit is told again as a fill.
void MachinePath::settle(const TraceEntry& next, Words w) {
  const Pending p = pending_;
  pending_.any = false;
  const bool fill = next.kind == TraceEntry::filled && next.die == p.entry.die && next.core == p.entry.core &&
                    w[1] == p.words[0];
  if (!fill) local(p.entry, p.words.data(), *dies_[p.entry.die]);
}

void MachinePath::local(const TraceEntry& e, Words w, Die& die) {
  CorePath& core = *die.cores[e.core];
  const std::size_t engine = core.engine_of((e.small & 1) != 0);
  const auto units = static_cast<std::uint32_t>(sectors_of(w[0], w[1]));
  const Path& from = core.request(engine, units, false, false, ps_of(w[2]));
  core.local_done(engine, units, through_memory(die, from, e, w[0], w[1], ps_of(w[3])));
}

// By memory and, behind it, by the core's port, which moves data in order: whichever takes longer.
Path MachinePath::through_memory(Die& die, const Path& from, const TraceEntry& e, std::uint64_t offset,
                                 std::uint64_t bytes, double done) {
  const auto& n = machine_.memory.on_die_network;
  const auto& l2 = machine_.memory.l2;
  const bool write = (e.small & 1) != 0, missed = (e.small & 2) != 0;
  const double slice = ps_of(write ? l2.write_latency : l2.hit_latency);
  const double latency = ps_of(n.request_latency) + slice + ps_of(n.response_latency);
  const int rate = write    ? n.write_bytes_per_cycle
                   : missed ? n.hbm_read_bytes_per_cycle
                            : n.l2_read_bytes_per_cycle;
  const double cost = static_cast<double>(sectors_of(offset, bytes) * kSector) / rate * cycle_;

  Port& port = die.ports[write ? 1 : 0][e.core];
  if (port.used) {
    port.free.join(from);
  } else {
    port.free = from;
  }
  port.used = true;
  port.busy += cost;
  port.free.add(cost, Part::port, Resource::port);
  Path by_port = port.free;
  by_port.add(latency, Part::l2, Resource::l2);

  Path path = from;
  path.add(latency, Part::l2, Resource::l2);
  path.add(cost, Part::port, Resource::port);
  const double rest = done - path.at;
  const bool by_port_alone = std::abs(by_port.at - done) < 4;
  if (missed && !write) {
    // What a miss takes at the least, then the turns of others on its channel.
    if (!by_port_alone) die.least_miss = std::min(die.least_miss, std::max(0.0, rest));
    path.add(std::min(die.least_miss, std::max(0.0, rest)), Part::hbm, Resource::none);
    if (die.channels.empty()) die.channels.resize(mapping_.channels());
    const double service = static_cast<double>(bytes) / static_cast<double>(machine_.memory.hbm.burst.count) *
                           ps_of(machine_.memory.hbm.t_ccd_s);
    const double turn = by_port_alone ? path.at : std::max(path.at, done);
    die.channels[mapping_.locate(offset).channel].pass(path, turn, service, Part::hbm, Resource::hbm,
                                                       Part::hbm, Resource::hbm);
    path.join(by_port);
  } else {
    path.join(by_port);
    if (done > path.at) path.meet(done, missed ? Part::hbm : Part::contention, Resource::none);
  }
  path.meet(done, Part::other, Resource::none);
  return path;
}

void MachinePath::submitted(const TraceEntry& e, Words w, Die& die) {
  if (e.core >= die.cores.size()) return;  // of a device
  CorePath& core = *die.cores[e.core];
  const std::uint64_t tag = w[0], address = w[1];
  const std::size_t engine = engine_of_tag(tag);
  const bool write = e.small != 0;
  const double at = ps_of(w[3]);
  Token& t = tokens_[key(e.die, e.core, tag)];
  if (t.merge_reads) {  // its blocks are read: they go back whole
    t.merge_reads = false;
    t.merge_writes = true;
    t.path.meet(at, Part::other, Resource::none);
  } else {
    t = Token{};
    t.merge_reads = !write && !core.reads(engine);
    t.die = e.die;
    t.core = e.core;
    t.engine = static_cast<std::uint8_t>(engine);
    t.copy = core.copy(engine);
    const auto units = static_cast<std::uint32_t>(sectors_of(address, w[2]));
    t.path = core.request(engine, units, true, t.merge_reads, at);
  }
  t.write = write;
  t.wired = false;
  const auto& topology = machine_.topology;
  const auto target = static_cast<int>(cm384_gm_unit(address));
  t.package = !cm384_gm_is_cpu(address) && topology.dies_per_package > 1 && target != e.die &&
              topology.in_one_package(e.die, target) && (address & CM384_GM_VIA_UB_BIT) == 0;
  if (t.package || cm384_gm_via_rdma(address) != 0) return;
  Station& side = die.controller[write ? 1 : 0];
  const auto& limits = machine_.ub.controller;
  const double interval = ps_of(write ? limits.write_interval : limits.read_interval);
  // Those before it in its order, or with other cores' as they come.
  side.pass(t.path, std::max(t.path.at, side.free_at()), interval,
            write ? Part::write_interval : Part::read_interval,
            write ? Resource::write_interval : Resource::read_interval, Part::fabric_wait);
}

void MachinePath::answered(const TraceEntry& e, Words w, Die& die) {
  const auto at = tokens_.find(key(e.die, e.core, w[0]));
  if (at == tokens_.end()) return;
  Token& t = at->second;
  t.path.meet(ps_of(w[1]), t.package ? Part::package : Part::fabric_wait,
              t.package ? Resource::package : Resource::none);
  if (t.merge_reads) return;
  die.cores[t.core]->remote_done(t.engine, t.copy, t.merge_writes, t.path);
  tokens_.erase(at);
}

void MachinePath::came(const TraceEntry& e, Words w, Die& die) {
  die.served = nullptr;
  if (w[0] == 0) return;
  Token* const t = find(key((w[0] >> 48) - 1, e.core, w[1]));
  if (t == nullptr) return;
  const double at = ps_of(w[3]);
  Station& side = die.target[t->write ? 1 : 0];
  const auto& limits = machine_.ub.controller;
  const Time interval = t->write ? limits.target_write_interval : limits.target_read_interval;
  if (interval > Time{} && !t->package) {
    side.pass(t->path, at, ps_of(interval), Part::inbound, Resource::inbound, Part::fabric_wait);
  } else {
    t->path.meet(at, t->package ? Part::package : Part::fabric_wait,
                 t->package ? Resource::package : Resource::none);
  }
  if (t->write) die.last_write = t->path;
  die.served = t;
}

void MachinePath::served(Words w, Die& die) {
  if (die.served == nullptr) return;
  Path& path = die.served->path;
  const auto& n = machine_.memory.on_die_network;
  const Time slice = die.served->write ? machine_.memory.l2.write_latency : machine_.memory.l2.hit_latency;
  const double all = std::max(0.0, ps_of(w[0]) - path.at);
  const double plain = std::min(all, ps_of(n.request_latency + slice + n.response_latency));
  path.add(plain, Part::l2, Resource::l2);
  path.add(all - plain, Part::contention, Resource::none);
}

void MachinePath::hop(const TraceEntry& e, Words w) {
  Token* const t = find(w[1]);
  if (t == nullptr) return;
  const double start = ps_of(w[2]), tail = ps_of(w[3]);
  const auto& link = machine_.ub.link;
  Station& station = links_[w[0]];
  station.pass(t->path, start, tail - start, Part::link, Resource::link, Part::fabric_wait);
  const bool last = (e.small & ExplainedHop::kToEndpoint) != 0;
  const bool trunk = !last && (e.small & ExplainedHop::kFromEndpoint) == 0;
  if (last || stores_) t->path.add(tail - start, Part::link, Resource::link);
  t->path.add(ps_of(trunk ? link.trunk_latency : link.endpoint_latency), Part::wire, Resource::wire);
  if (!last) {
    t->path.add(ps_of(machine_.ub.switch_chip.pipeline_latency), Part::wire, Resource::wire);
    return;
  }
  const auto& limits = machine_.ub.controller;
  const bool response = (e.small & ExplainedHop::kResponse) != 0;
  t->path.add(ps_of(response   ? limits.completion_latency
                    : t->write ? limits.write_inbound_latency
                               : limits.read_inbound_latency),
              Part::inbound, Resource::inbound);
}

}  // namespace cm384::observe
