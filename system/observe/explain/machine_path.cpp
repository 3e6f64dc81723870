#include "system/observe/explain/machine_path.h"

#include <algorithm>

#include "firmware/abi/memory_map.h"
#include "firmware/abi/queue.h"
#include "npu_core/causality/trace_log_reader.h"
#include "npu_core/die/launch.h"

namespace cm384::observe {
namespace {

using npu::TraceEntry;

std::int64_t signed_of(std::uint64_t word) {
  return static_cast<std::int64_t>(word);
}
double ps(std::uint64_t word) {
  return static_cast<double>(signed_of(word));
}
std::uint32_t low_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word);
}

constexpr std::uint64_t kMostFlagBytes = 64, kBlock = 32;

}  // namespace

MachinePath::MachinePath(const hw::Machine& machine)
    : machine_(machine),
      clock_(machine.die.clock),
      vector_(machine, false),
      cube_(machine, true),
      mapping_(machine.memory.hbm),
      cycle_(1e12 / static_cast<double>(machine.memory.on_die_network.clock.hertz)),
      stores_(machine.ub.switch_chip.forwarding == "packet-store") {}

void MachinePath::play(std::span<const std::uint64_t> words) {
  for (std::size_t at = 0; at < words.size();) {
    const TraceEntry entry = npu::TraceLog::entry_of(words[at]);
    const Words w = &words[at] + 1;
    at += std::size_t{1} + entry.words;
    if (pending_.any) settle(entry, w);
    if (entry.kind == TraceEntry::hop) {
      hop(entry, w);
      continue;
    }
    if (entry.kind == TraceEntry::link) {
      links_.insert_or_assign(w[0], LinkPath::of(entry, w));
      continue;
    }
    if (dies_.size() <= entry.die) dies_.resize(entry.die + std::size_t{1});
    auto& die = dies_[entry.die];
    if (!die) die = std::make_unique<Die>(machine_);
    if (entry.kind <= TraceEntry::polled || entry.kind == TraceEntry::poll_turn) {
      npu::read_core_entry(entry, w, *die->cores[entry.core]);
    } else if (entry.kind == TraceEntry::host) {
      if (static_cast<npu::HostPoint::Kind>(entry.small) == npu::HostPoint::Kind::idle) idle_ = end_;
    } else if (entry.kind >= TraceEntry::first_of_requests) {
      of_requests(entry, w, *die);
    } else {
      of_die(entry, w, *die);
    }
  }
}

void MachinePath::of_die(const TraceEntry& e, Words w, Die& die) {
  const double flag_latency = static_cast<double>(machine_.die.cross_core_flag_latency.ps);
  switch (e.kind) {
    case TraceEntry::cores:
      for (std::uint64_t n = 0; n < w[0]; ++n) {
        die.cores.push_back(std::make_unique<CorePath>(clock_, e.small != 0 ? cube_ : vector_));
        die.is_cube.push_back(e.small != 0);
      }
      for (auto& ports : die.ports) ports.resize(die.cores.size());
      return;
    case TraceEntry::block_begun:
      return block_begun(e, w, die);
    case TraceEntry::block_ended:
      return block_ended(e, w, die);
    case TraceEntry::filled: {
      const auto& n = machine_.memory.on_die_network;
      const double plain =
          static_cast<double>((n.request_latency + machine_.memory.l2.hit_latency + n.response_latency).ps);
      return die.cores[e.core]->filled((e.small & 2) != 0, signed_of(w[4]), ps(w[5]), plain);
    }
    case TraceEntry::begun:
      return first_poll(e, w, die);
    case TraceEntry::arrived:
      if (w[2] <= kMostFlagBytes) die.flags[w[1] / kBlock] = die.last_write;
      return;
    case TraceEntry::written:
      die.last_write = die.cores[e.core]->leaving(true);
      die.last_write.meet(ps(w[2]), Part::other, Resource::none);
      if (w[1] <= kMostFlagBytes) die.flags[w[0] / kBlock] = die.last_write;
      return;
    case TraceEntry::poll_woken:
      return die.cores[e.core]->polled_write(die.last_write);
    case TraceEntry::barrier_set:
      die.at_barrier[die.is_cube[e.core] ? 1 : 0][e.small].push_back(
          die.cores[e.core]->take_cross_core_set(e.small));
      return;
    case TraceEntry::barrier:
      return barrier(e, w, die);
    case TraceEntry::group_set: {
      Path path = die.cores[e.core]->take_cross_core_set(e.small);
      path.add(flag_latency, Part::core_flag, Resource::core_flag);
      for (std::uint64_t k = 0; k < w[1]; ++k)
        flag_set(die, die.launch_of[e.core], static_cast<std::uint16_t>(w[0] + k), e.small, path);
      return;
    }
    case TraceEntry::for_cube: {
      Path& both = die.for_cube[{static_cast<std::uint16_t>(w[0]), e.small}];
      const Path one = die.cores[e.core]->take_cross_core_set(e.small);
      both.at == 0 ? void(both = one) : both.join(one);
      return;
    }
    case TraceEntry::reaches_cube: {
      Path& both = die.for_cube[{e.core, e.small}];
      both.add(flag_latency, Part::core_flag, Resource::core_flag);
      die.cores[e.core]->cross_core_flag(e.small, both);
      both = {};
      return;
    }
    case TraceEntry::task_begun:
      return task_begun(e, w, die);
    case TraceEntry::task_ended:
      return task_ended(w, die);
    default:
      return;
  }
}

void MachinePath::task_begun(const TraceEntry& e, Words w, Die& die) {
  const double turn = ps(w[2]);
  if (begins_) {
    idle_ = end_ = Path();
    idle_.at = end_.at = begun_ = turn;
    begins_ = false;
  }
  Stream& stream = die.streams[low_of(w[0])];
  stream.now = idle_;
  if (stream.any && stream.last.at >= idle_.at) stream.now = stream.last;
  stream.now.meet(turn, Part::host, Resource::host);
  stream.any = true;
  stream.last = stream.now;
  stream.type = e.small;
  if (e.small == CM384_TASK_KERNEL) die.stream_of[low_of(w[1])] = low_of(w[0]);
}

void MachinePath::task_ended(Words w, Die& die) {
  Stream& stream = die.streams[low_of(w[0])];
  // What a copy spends in its engine, on links and in memories is not followed, nor what an event waits for.
  if (stream.type == CM384_TASK_KERNEL) {
    stream.last.meet(ps(w[1]), Part::launch, Resource::launch);
  } else {
    stream.last.meet(ps(w[1]), stream.type == CM384_TASK_SDMA ? Part::sdma : Part::other, Resource::none);
  }
  end_.join(stream.last);
}

void MachinePath::block_begun(const TraceEntry& e, Words w, Die& die) {
  const std::uint32_t launch = low_of(w[1]);
  die.launch_of[e.core] = launch;
  Path path = idle_;
  if (const auto stream = die.stream_of.find(launch); stream != die.stream_of.end())
    path = die.streams[stream->second].now;
  path.meet(ps(w[3]), Part::launch, Resource::launch);
  die.cores[e.core]->begin(path);
  die.under_way.insert(e.core);
  std::erase_if(die.early_flags, [&](const EarlyFlag& early) {
    if (early.core != e.core || early.launch != launch) return false;
    die.cores[e.core]->cross_core_flag(early.flag, early.set);
    return true;
  });
}

// To a block that has not begun yet it comes when it begins (npu::Die::flag_arrives).
void MachinePath::flag_set(Die& die, std::uint32_t launch, std::uint16_t core, int flag, const Path& set) {
  if (die.under_way.contains(core) && die.launch_of[core] == launch) {
    die.cores[core]->cross_core_flag(static_cast<std::uint32_t>(flag), set);
  } else {
    die.early_flags.push_back({launch, core, static_cast<std::uint32_t>(flag), set});
  }
}

void MachinePath::block_ended(const TraceEntry& e, Words w, Die& die) {
  die.under_way.erase(e.core);
  Path path = die.cores[e.core]->scalar();
  path.meet(ps(w[1]), Part::scalar, Resource::scalar);
  const auto stream = die.stream_of.find(die.launch_of[e.core]);
  if (stream != die.stream_of.end()) {
    die.streams[stream->second].last.join(path);
  } else {
    end_.join(path);
  }
}

// The cores are bits of two words.
void MachinePath::barrier(const TraceEntry& e, Words w, Die& die) {
  const bool cube = e.core != 0;
  std::vector<Path>& waiting = die.at_barrier[cube ? 1 : 0][e.small];
  std::vector<std::uint16_t> cores;
  for (std::uint16_t core = 0; core < 128; ++core) {
    if ((w[1 + core / 64] >> core % 64 & 1) != 0 && die.is_cube[core] == cube) cores.push_back(core);
  }
  const std::size_t count = std::min(waiting.size(), cores.size());
  if (count == 0) return;
  Path all = waiting.front();
  for (std::size_t k = 1; k < count; ++k) all.join(waiting[k]);
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(count));
  all.meet(ps(w[3]), Part::barrier, Resource::barrier);
  for (const std::uint16_t core : cores) die.cores[core]->cross_core_flag(e.small, all);
}

// What stands there already when a loop looks for the first time may have been what it would have waited for.
void MachinePath::first_poll(const TraceEntry& e, Words w, Die& die) {
  const bool read = (e.small & 3) == 0, local = (e.small & 8) != 0;
  if (!read || !local || e.core >= die.cores.size() || !die.cores[e.core]->polls_first()) return;
  const std::uint64_t bursts = low_of(w[3]), burst_bytes = w[3] >> 32;
  for (std::uint64_t b = 0; b < bursts; ++b) {
    const std::uint64_t offset = cm384_gm_offset(w[1]) + b * w[4];
    for (std::uint64_t block = offset / kBlock; block <= (offset + burst_bytes - 1) / kBlock; ++block) {
      if (const auto flag = die.flags.find(block); flag != die.flags.end())
        die.cores[e.core]->finds(flag->second);
    }
  }
}

// What was busy before was so for the warm-up.
void MachinePath::counted() {
  begins_ = true;
  for (auto& die : dies_) {
    if (!die) continue;
    die->streams.clear();
    for (const auto& core : die->cores) core->forget_busy();
    for (auto& ports : die->ports) {
      for (Port& port : ports) port.busy = 0;
    }
    for (Server& side : die->controller) side.forget_busy();
    for (Server& side : die->target) side.forget_busy();
    for (Station& channel : die->channels) channel.forget_busy();
    die->walks.forget_busy();
  }
  for (auto& [number, link] : links_) {
    link.wire.forget_busy();
    for (Credits& lane : link.lanes) lane.forget_held();
  }
}

std::vector<Busy> MachinePath::busiest() const {
  const double span = std::max(1.0, end_.at - begun_);
  std::array<double, kResources> most{};
  const auto note_busy = [&most](Resource resource, double busy) {
    double& known = most[static_cast<std::size_t>(resource)];
    known = std::max(known, busy);
  };
  for (const auto& die : dies_) {
    if (!die) continue;
    for (std::size_t n = 0; n < die->cores.size(); ++n) {
      const CoreKind& kind = die->is_cube[n] ? cube_ : vector_;
      for (int pipe = 1; pipe < kind.shape.pipes; ++pipe)
        note_busy(kind.units[static_cast<std::size_t>(pipe)].resource, die->cores[n]->busy(pipe));
      for (const auto& ports : die->ports) note_busy(Resource::port, ports[n].busy);
    }
    note_busy(Resource::read_interval, die->controller[0].busy());
    note_busy(Resource::translation, die->walks.busy());
    note_busy(Resource::write_interval, die->controller[1].busy());
    note_busy(Resource::target_interval, die->target[0].busy());
    const auto& limits = machine_.ub.controller;
    const bool own = ub::write_service_interval(limits) == limits.target_write_interval;
    note_busy(own ? Resource::target_interval : Resource::write_interval, die->target[1].busy());
    for (const Station& channel : die->channels) note_busy(Resource::hbm, channel.busy());
  }
  for (const auto& [number, link] : links_) {
    note_busy(resource_of(link.served.part), link.wire.busy());
    for (const Credits& lane : link.lanes)
      note_busy(Resource::buffers, lane.held() / machine_.ub.link.buffer_cells);
  }
  std::vector<Busy> made;
  for (std::size_t k = 1; k < kResources; ++k) {
    if (most[k] > 0) made.push_back({static_cast<Resource>(k), most[k] / span});
  }
  std::ranges::sort(made, std::greater(), &Busy::share);
  return made;
}

}  // namespace cm384::observe
