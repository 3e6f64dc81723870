#include "npu_core/causality/die_causality.h"

#include <algorithm>

#include "firmware/abi/memory_map.h"

namespace cm384::npu {
namespace {

// Of a barrier, from each core: the rest lies far enough back never to be the last.
constexpr std::size_t kCausesOfABarrier = 3;
constexpr std::uint64_t kMostFlagBytes = 64;
constexpr std::uint64_t kMostPolledLines = 256;  // a read of more is no poll

}  // namespace

DieCausality::DieCausality(int die, const Clock& clock, int cores, std::size_t queue_depth,
                           const BackingStore& store, DieListener& listener, sim::TransactionId& last_id)
    : die_(die), clock_(clock), store_(store), listener_(listener), last_id_(last_id) {
  for (int n = 0; n < cores; ++n) cores_.emplace_back(clock, queue_depth);
}

Dependency DieCausality::dependency(const Cause& cause, std::int64_t slack, Time until) const {
  // `until` lies on a core cycle; where the cause has no slack the delay is exact.
  const Time spare = slack == 0 ? Time{} : clock_.start(slack);
  return {cause.on, cause.kind, Time{until.ps - spare.ps - cause.at_ps}};
}

void DieCausality::add_causes(const Moment& moment, Time until) {
  for (std::uint32_t k = 0; k < moment.count; ++k)
    dependencies_.push_back(dependency(moment.causes[k], moment.causes[k].slack, until));
}

const std::vector<Dependency>& DieCausality::begin(std::uint16_t core, sim::TransactionId id,
                                                   const TransactionStart& start, bool local, Time now) {
  dependencies_.clear();
  const bool reads = start.operation == sim::Operation::read;
  const Moment& moment = cores_[core].start_transaction(reads, id);
  add_causes(moment, cores_[core].ready(reads));
  if (reads && local) {
    const std::uint64_t offset = cm384_gm_offset(start.address);
    for (std::uint32_t b = 0; b < start.bursts && b < kMostPolledLines; ++b)
      add_flags(offset + b * static_cast<std::uint64_t>(start.stride), start.burst_bytes,
                cores_[core].polled(), now);
  }
  return dependencies_;
}

void DieCausality::filled(const LocalAccess& access, std::int64_t cycle, Time end) {
  const sim::TransactionId id = new_id();
  dependencies_.clear();
  add_causes(cores_[access.core].start_fill(cycle), access.at);
  TransactionBegun begun;
  begun.id = id;
  begun.address = cm384_gm_die(static_cast<std::uint64_t>(die_), access.offset);
  begun.bytes = begun.burst_bytes = access.bytes;
  begun.die = die_;
  begun.core = access.core;
  begun.operation = access.write ? sim::Operation::write : sim::Operation::read;
  begun.at = access.at;
  begun.fill = true;
  begun.dependencies = dependencies_;
  listener_.transaction_begun(begun);
  listener_.transaction_completed({id, die_, access.core, end});
  cores_[access.core].end_fill({id, end.ps, 0, DependencyKind::completion, Cause::Class::fill},
                               clock_.tick_at_or_after(end));
}

// A read does not begin before what it finds has arrived. After a wait in a polling loop it began when the
// last flag had arrived and a turn was due, and would have begun as long after any other, had that been the
// last.
void DieCausality::add_flags(std::uint64_t offset, std::uint64_t bytes, bool polled, Time now) {
  if (bytes == 0 || bytes > kMostPolledLines * kLine) return;
  const std::size_t first = dependencies_.size();
  std::int64_t last = 0;
  for (std::uint64_t line = offset / kLine; line <= (offset + bytes - 1) / kLine; ++line) {
    const auto found = flags_.find(line);
    if (found == flags_.end()) {
      add_last_writer(line * kLine);
      continue;
    }
    for (std::uint64_t block = 0; block < kLine / kBlock; ++block) {
      const std::uint64_t at = line * kLine + block * kBlock;
      const sim::TransactionId writer = found->second.writer[block];
      if (writer == 0 || at + kBlock <= offset || at >= offset + bytes) continue;
      dependencies_.push_back({writer, DependencyKind::arrival, Time{}});
      last = std::max(last, found->second.at_ps[block]);
    }
  }
  if (!polled || last == 0) return;
  for (std::size_t k = first; k < dependencies_.size(); ++k) dependencies_[k].delay = Time{now.ps - last};
}

// Of a line whose blocks are not followed one by one.
void DieCausality::add_last_writer(std::uint64_t offset) {
  const sim::TransactionId writer = store_.last_writer(offset);
  const bool foreign = writer != 0 && writer >> 48 != static_cast<std::uint64_t>(die_) + 1;
  const bool known = !dependencies_.empty() && dependencies_.back().on == writer;
  if (foreign && !known) dependencies_.push_back({writer, DependencyKind::arrival, Time{}});
}

void DieCausality::arrived(sim::TransactionId id, std::uint64_t offset, std::uint64_t bytes, Time at) {
  last_write_ = {id, at.ps, 0, DependencyKind::arrival, Cause::Class::foreign};
  if (bytes > kMostFlagBytes) return;
  for (std::uint64_t block = offset / kBlock; block <= (offset + bytes - 1) / kBlock; ++block) {
    Flags& flags = flags_[block * kBlock / kLine];
    flags.writer[block % (kLine / kBlock)] = id;
    flags.at_ps[block % (kLine / kBlock)] = at.ps;
  }
}

void DieCausality::written_by_core(std::uint16_t core, std::uint64_t offset, std::uint64_t bytes, Time at) {
  last_write_ = {cores_[core].writing(), at.ps, 0, DependencyKind::issue, Cause::Class::mte3};
  if (flags_.empty()) return;
  const auto found = flags_.find(offset / kLine);
  if (found == flags_.end()) return;
  for (std::uint64_t block = offset / kBlock; block <= (offset + bytes - 1) / kBlock; ++block)
    found->second.writer[block % (kLine / kBlock)] = 0;
}

Moment DieCausality::node(JoinedAt::Kind kind, std::uint32_t launch, Time at) {
  const sim::TransactionId id = new_id();
  listener_.joined({id, die_, kind, launch, at, dependencies_});
  Moment moment;
  moment.cycle = clock_.tick_at_or_after(at);
  moment.add({id, at.ps, 0, DependencyKind::completion, Cause::Class::node});
  return moment;
}

void DieCausality::block_begun(std::uint32_t launch, std::uint16_t core, bool first, Time at) {
  dependencies_.clear();
  if (first && under_way_.empty()) {
    for (auto& waiting : at_barrier_) waiting.clear();
  }
  under_way_[launch].push_back(core);
  cores_[core].begin(node(JoinedAt::Kind::launch, launch, at));
}

void DieCausality::launch_ended(std::uint32_t launch, Time at) {
  dependencies_.clear();
  const std::vector<std::uint16_t> cores = std::move(under_way_[launch]);
  under_way_.erase(launch);
  std::int64_t last = 0;
  for (const std::uint16_t core : cores) last = std::max(last, cores_[core].moment().cycle);
  for (const std::uint16_t core : cores) {
    const Moment& end = cores_[core].moment();
    for (std::uint32_t k = 0; k < end.count; ++k)
      dependencies_.push_back(dependency(end.causes[k], end.causes[k].slack + last - end.cycle, at));
  }
  node(JoinedAt::Kind::end, launch, at);
}

void DieCausality::cross_core_set(std::uint16_t core, std::uint32_t flag) {
  at_barrier_[flag].push_back(cores_[core].take_cross_core_set(flag));
}

void DieCausality::barrier(std::uint32_t flag, const std::vector<std::uint16_t>& cores, Time at) {
  dependencies_.clear();
  std::vector<Moment>& waiting = at_barrier_[flag];
  const std::size_t count = std::min(waiting.size(), cores.size());
  std::int64_t last = 0;
  for (std::size_t k = 0; k < count; ++k) last = std::max(last, waiting[k].cycle);
  for (std::size_t k = 0; k < count; ++k) {
    Moment& moment = waiting[k];
    const auto end = moment.causes.begin() + moment.count;
    std::sort(moment.causes.begin(), end, [](const Cause& a, const Cause& b) { return a.slack < b.slack; });
    for (std::size_t c = 0; c < std::min<std::size_t>(moment.count, kCausesOfABarrier); ++c)
      dependencies_.push_back(dependency(moment.causes[c], moment.causes[c].slack + last - moment.cycle, at));
  }
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(count));
  const Moment all = node(JoinedAt::Kind::barrier, 0, at);
  for (const std::uint16_t core : cores) cores_[core].cross_core_flag(flag, all);
}

void DieCausality::pair(std::uint16_t core, std::uint32_t flag, Time at) {
  Moment moment = cores_[core].take_cross_core_set(flag);
  moment.advance(clock_.tick_at_or_after(at));
  for (const std::uint32_t member : {core & ~1u, core | 1u}) {
    if (member < cores_.size()) cores_[member].cross_core_flag(flag, moment);
  }
}

}  // namespace cm384::npu
