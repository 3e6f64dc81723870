// Requests: through L2 and HBM, and over the Unified Bus.
#include <algorithm>
#include <cmath>

#include "base/engine/transaction.h"
#include "firmware/abi/memory_map.h"
#include "system/observe/explain/explained_hop.h"
#include "system/observe/explain/machine_path.h"

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
      return arrived(e, w, die);
    case TraceEntry::served:
      return served(w, die);
    case TraceEntry::local:
      pending_ = {true, e, {w[0], w[1], w[2], w[3]}};
      return;
    default:
      return counted();
  }
}

// A scalar unit's request is logged again as a fill.
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
  const std::uint64_t tag = w[0], address = w[1];
  const bool package = by_package(e.die, address);
  const bool by_bus = !package && cm384_gm_via_rdma(address) == 0;
  if (e.core >= die.cores.size()) {  // of a device
    if (by_bus) die.walks.know(address);
    return;
  }
  CorePath& core = *die.cores[e.core];
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
    t.copy = core.taken(engine);
    const auto units = static_cast<std::uint32_t>(sectors_of(address, w[2]));
    t.path = core.request(engine, units, true, t.merge_reads, at);
  }
  t.write = write;
  t.served = false;
  t.link = nullptr;
  t.package = package;
  if (!by_bus) return;
  Server& side = die.controller[write ? 1 : 0];
  const auto& limits = machine_.ub.controller;
  const Part part = write ? Part::write_interval : Part::read_interval;
  side.serve(t.path, std::max(t.path.at, side.free_at()),
             ps_of(write ? ub::write_issue_interval(limits) : limits.read_interval),
             {part, resource_of(part)}, Part::fabric_wait);
  die.walks.translate(t.path, address);
}

bool MachinePath::by_package(int die, std::uint64_t address) const {
  const auto& topology = machine_.topology;
  const auto target = static_cast<int>(cm384_gm_unit(address));
  return !cm384_gm_is_cpu(address) && topology.dies_per_package > 1 && target != die &&
         topology.in_one_package(die, target) && (address & CM384_GM_VIA_UB_BIT) == 0;
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

void MachinePath::arrived(const TraceEntry& e, Words w, Die& die) {
  die.served = nullptr;
  if (w[0] == 0) return;
  Token* const t = find(key((w[0] >> 48) - 1, e.core, w[1]));
  if (t == nullptr) return;
  const double at = ps_of(w[3]);
  const auto& limits = machine_.ub.controller;
  if (t->link != nullptr && ub::holds_requests(limits)) {
    const Time own = limits.target_write_interval;
    const Time interval = t->write ? ub::write_service_interval(limits) : limits.target_read_interval;
    const Part part = t->write && interval > own ? Part::write_interval : Part::target_interval;
    const double inbound = ps_of(t->write ? limits.write_inbound_latency : limits.read_inbound_latency);
    die.target[t->write ? 1 : 0].serve(t->path, at - inbound, ps_of(interval), {part, resource_of(part)},
                                       Part::fabric_wait);
    return_credits(*t, t->path);
    t->path.add(inbound, Part::inbound, Resource::inbound);
  } else {
    t->path.meet(at, t->package ? Part::package : Part::fabric_wait,
                 t->package ? Resource::package : Resource::none);
  }
  t->link = nullptr;
  t->served = true;
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

// From the link that its packet has left by to the one that it leaves by now. A packet whose flits come
// slower than they go on waits for the rest; a stored one for all.
void MachinePath::cross_link(Token& token, const LinkPath& next, double service) const {
  const LinkPath& link = *token.link;
  Path& path = token.path;
  path.add(link.latency, Part::wire, Resource::wire);
  const bool past_chip = !next.inside_die || link.from_endpoint;
  if (past_chip) path.add(next.pipeline, Part::wire, Resource::wire);
  const auto late = [this](double first, double then) {
    return stores_ ? first : std::max(0.0, first - then);
  };
  const double rest = late(token.service, service);
  if (rest == 0 && token.service <= service / 2) return;
  for (std::size_t k = 0; k < kResources; ++k)
    path.gain[k] += rest - late(link.served.halved(token.service, k), next.served.halved(service, k));
  path.at += rest;
  path.spent[static_cast<std::size_t>(link.served.part)] += static_cast<float>(rest);
}

// The cells that its packet holds come free at `freed`; the sender knows a link latency later.
void MachinePath::return_credits(Token& token, const Path& freed) const {
  LinkPath& link = *token.link;
  Path back = freed;
  back.add(link.latency, Part::credit, Resource::wire);
  link.lanes[token.lane].release(back, token.cells, token.start);
}

void MachinePath::hop(const TraceEntry& e, Words w) {
  LinkPath& link = links_[w[0]];
  const double start = ps_of(w[2]), service = ps_of(w[3]) - start;
  Token* const t = find(w[1]);
  if (t == nullptr) return link.wire.occupy(start, service, link.served);
  const bool response = (e.small & ExplainedHop::kResponse) != 0;
  if (t->link != nullptr) {
    cross_link(*t, link, service);
  } else if (response && !t->served) {
    t->path.meet(start, Part::fabric_wait, Resource::none);  // of a CPU socket
  }
  const std::uint16_t lane = e.core, cells = e.die;
  link.lanes[lane].acquire(t->path, cells, machine_.ub.link.buffer_cells);
  link.wire.serve(t->path, start, service, link.served, Part::fabric_wait);
  Path tail = t->path;
  tail.add(service, link.served.part, link.served.by, link.served.too);
  if (t->link != nullptr) return_credits(*t, tail);
  t->link = &link;
  t->lane = lane;
  t->cells = cells;
  t->start = start;
  t->service = service;
  if (!link.to_endpoint) return;
  const bool socket = link.served.part == Part::socket_link;
  const auto& limits = socket ? machine_.cpu.controller : machine_.ub.controller;
  const bool held = !response && ub::holds_requests(limits);
  t->path = tail;
  t->path.add(link.latency, Part::wire, Resource::wire);
  if (held && !socket) return;  // until it is served
  return_credits(*t, t->path);  // what nothing holds leaves the buffer when all of it is there
  t->link = nullptr;
  t->path.add(ps_of(response   ? limits.completion_latency
                    : t->write ? limits.write_inbound_latency
                               : limits.read_inbound_latency),
              Part::inbound, Resource::inbound);
}

}  // namespace cm384::observe
