#include "npu_core/causality/die_causality.h"

#include <algorithm>

#include "firmware/abi/memory_map.h"

namespace cm384::npu {
namespace {

// Of a barrier, from each core: the rest lies far enough back never to be the last.
constexpr std::size_t kCausesOfABarrier = 3;
constexpr std::uint64_t kMostFlagBytes = 64;
constexpr std::uint64_t kMostPolledLines = 256;  // a read of more is no poll
constexpr std::uint64_t kLine = LineTable::kLine, kBlock = LineTable::kBlock;

}  // namespace

void DieCausality::add_cores(std::size_t count, bool cube) {
  for (std::size_t n = 0; n < count; ++n) {
    cores_.emplace_back(clock_, shapes_[cube ? 1 : 0]);
    is_cube_.push_back(cube);
    foreign_.push_back(0);
  }
}

Dependency DieCausality::dependency(const Cause& cause, std::int64_t slack, Time until) const {
  // `until` lies on a core cycle; where the cause has no slack the delay is exact.
  const Time spare = slack == 0 ? Time{} : clock_.start(slack);
  return {cause.on, cause.kind, Time{until.ps - spare.ps - cause.at_ps}};
}

void DieCausality::add_causes(const Moment& moment, Time until) {
  for (const Cause& cause : moment.causes()) dependencies_.push_back(dependency(cause, cause.slack, until));
}

void DieCausality::add_before(const Before& before, Time since, Time now) {
  if (before.on == 0) return;
  const Dependency made{before.on, DependencyKind::completion, (now - since) + (before.free - before.at)};
  const auto known = std::ranges::find(dependencies_, before.on, &Dependency::on);
  if (known == dependencies_.end()) {
    dependencies_.push_back(made);
  } else {
    known->delay = std::max(known->delay, made.delay);
  }
}

TransactionBegun DieCausality::begun_with_causes(std::uint16_t core, sim::TransactionId id,
                                                 const TransactionStart& start, Time now) {
  TransactionBegun begun;
  begun.id = id;
  begun.address = start.address;
  begun.bytes = start.bytes;
  begun.die = die_;
  begun.core = core;
  begun.operation = start.operation;
  begun.at = now;
  begun.burst_bytes = start.burst_bytes;
  begun.bursts = start.bursts;
  begun.stride = start.stride;
  begun.allocate = start.allocate;
  begun.engine = start.engine;
  begun.dependencies = dependencies_;
  return begun;
}

void DieCausality::begun(std::uint16_t core, sim::TransactionId id, const TransactionStart& start, bool local,
                         Time now) {
  dependencies_.clear();
  const bool reads = start.operation == sim::Operation::read;
  add_causes(cores_[core].start_transaction(start.engine, reads, id), cores_[core].ready(start.engine));
  if (reads && local) {
    const std::uint64_t offset = cm384_gm_offset(start.address);
    for (std::uint32_t b = 0; b < start.bursts && b < kMostPolledLines; ++b)
      add_flags(offset + b * static_cast<std::uint64_t>(start.stride), start.burst_bytes,
                cores_[core].polled(), now);
  }
  listener_.transaction_begun(begun_with_causes(core, id, start, now));
}

void DieCausality::copy_begun(sim::TransactionId id, const TransactionStart& start, const CopyStart& copy,
                              bool local, Time now) {
  dependencies_.clear();
  add_before(queues_[copy.queue], copy.taken, now);
  add_before(channels_[copy.channel], copy.taken, now);
  if (const auto bell = doorbells_.find(copy.queue); bell != doorbells_.end() && bell->second.on != 0)
    dependencies_.push_back(
        {bell->second.on, bell->second.kind, (now - copy.taken) + (copy.rung - Time{bell->second.at_ps})});
  Stream* const stream = copy.number == CopyStart::kNoStream ? nullptr : &streams_[copy.number];
  if (stream != nullptr) {
    add_before(stream->last, stream->turn, now);
    stream->now.on = id;
  }
  if (local && start.operation == sim::Operation::read)
    add_flags(cm384_gm_offset(start.address), std::min(start.bytes, kMostPolledLines * kLine), false, now);
  copying_[copy.channel] = {id, now, now};
  TransactionBegun begun = begun_with_causes(kSdmaCore, id, start, now);
  if (stream != nullptr) {
    begun.stream = copy.number;
    begun.copy_of_stream = stream->copies++;
  }
  listener_.transaction_begun(begun);
}

void DieCausality::completed(std::uint16_t core, sim::TransactionId id, Time at) {
  if (core < cores_.size()) {
    cores_[core].transaction_completed(id, at);
  } else {
    for (auto& [channel, copy] : copying_) {
      if (copy.on == id) copy.at = at;
    }
    for (auto& [number, stream] : streams_) {
      if (stream.now.on == id) stream.now.at = at;
    }
  }
  listener_.transaction_completed({id, die_, core, at});
}

void DieCausality::copy_ended(std::uint16_t queue, std::uint16_t channel, Time ended, Time free) {
  const auto copy = copying_.find(channel);
  if (copy == copying_.end()) return;  // ended with an error before it began
  queues_[queue] = {copy->second.on, copy->second.at, ended};
  channels_[channel] = {copy->second.on, copy->second.at, free};
  copying_.erase(copy);
}

void DieCausality::task_begun(std::uint32_t stream, bool kernel, std::uint32_t launch, Time turn) {
  streams_[stream].turn = turn;
  streams_[stream].now = {};
  if (kernel) stream_of_[launch] = stream;
}

void DieCausality::task_ended(std::uint32_t number, Time at) {
  Stream& stream = streams_[number];
  if (stream.now.on != 0) stream.last = stream.now;
  stream.last.free = at;
  std::erase_if(stream_of_, [number](const auto& launch) { return launch.second == number; });
}

void DieCausality::filled(sim::TransactionId id, const LocalAccess& access, std::int64_t cycle, Time end) {
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
  const std::uint64_t end = offset + bytes;
  std::int64_t last = 0;
  const LineTable::Page* page = nullptr;
  for (std::uint64_t at = offset; at < end; at = (at / kLine + 1) * kLine) {
    const std::size_t line = LineTable::line_in_page(at);
    if (at == offset || line == 0) page = lines_.find(at);
    if (page == nullptr) continue;
    const LineTable::Flags* const flags = lines_.flags(*page, line);
    if (flags == nullptr) {
      add_last_writer(page->writer[line]);
      continue;
    }
    const std::uint64_t stop = std::min(end, (at / kLine + 1) * kLine);
    for (std::uint64_t block = at / kBlock; block <= (stop - 1) / kBlock; ++block) {
      const std::size_t n = block % LineTable::kBlocks;
      if (flags->writer[n] == 0) continue;
      dependencies_.push_back({flags->writer[n], DependencyKind::arrival, Time{}});
      last = std::max(last, flags->at_ps[n]);
    }
  }
  if (!polled || last == 0) return;
  for (std::size_t k = first; k < dependencies_.size(); ++k) dependencies_[k].delay = Time{now.ps - last};
}

// Of a line whose blocks are not followed one by one.
void DieCausality::add_last_writer(sim::TransactionId writer) {
  const bool foreign = writer != 0 && writer >> 48 != static_cast<std::uint64_t>(die_) + 1;
  const bool known = !dependencies_.empty() && dependencies_.back().on == writer;
  if (foreign && !known) dependencies_.push_back({writer, DependencyKind::arrival, Time{}});
}

void DieCausality::arrived(sim::TransactionId id, std::uint64_t offset, std::uint64_t bytes, Time at) {
  lines_.set_writer(offset, id);
  last_write_ = {id, at.ps, 0, DependencyKind::arrival, Cause::Class::foreign};
  if (bytes > kMostFlagBytes) return;
  for (std::uint64_t block = offset / kBlock; block <= (offset + bytes - 1) / kBlock; ++block) {
    LineTable::Flags& flags = lines_.make_flags(block * kBlock);
    flags.writer[block % LineTable::kBlocks] = id;
    flags.at_ps[block % LineTable::kBlocks] = at.ps;
  }
}

void DieCausality::read(std::uint16_t core, std::uint64_t offset) {
  if (core >= foreign_.size()) return;
  if (const auto writer = lines_.writer(offset)) foreign_[core] = writer;
}

void DieCausality::written(std::uint16_t core, std::uint64_t offset, std::uint64_t bytes, Time at) {
  if (foreign_[core] != 0) lines_.set_writer(offset, foreign_[core]);
  last_write_ = {cores_[core].writing(), at.ps, 0, DependencyKind::issue, Cause::Class::mte3};
  LineTable::Flags* const flags = lines_.flags(offset);
  if (flags == nullptr) return;
  for (std::uint64_t block = offset / kBlock; block <= (offset + bytes - 1) / kBlock; ++block)
    flags->writer[block % LineTable::kBlocks] = 0;
}

void DieCausality::written_by_device(std::uint64_t offset, sim::TransactionId transaction, Time at) {
  if (transaction != 0) lines_.set_writer(offset, transaction);
  last_write_ = {transaction, at.ps, 0, DependencyKind::issue, Cause::Class::foreign};
}

Moment DieCausality::node(sim::TransactionId id, JoinedAt::Kind kind, const Block& block, Time at) {
  listener_.joined({id, die_, kind, block.launch, block.index, at, dependencies_});
  return {clock_.tick_at_or_after(at), {id, at.ps, 0, DependencyKind::completion, Cause::Class::node}};
}

void DieCausality::block_begun(sim::TransactionId id, std::uint32_t launch, std::uint32_t index,
                               std::uint16_t core, Time at) {
  dependencies_.clear();
  if (index == 0 && under_way_.empty()) {
    for (auto& of_kind : at_barrier_) {
      for (auto& waiting : of_kind) waiting.clear();
    }
    for_cube_.clear();
  }
  if (const auto stream = stream_of_.find(launch); stream != stream_of_.end())
    add_before(streams_[stream->second].last, streams_[stream->second].turn, at);
  under_way_[core] = {launch, index};
  cores_[core].begin(node(id, JoinedAt::Kind::launch, {launch, index}, at));
  std::erase_if(early_flags_, [&](const EarlyFlag& early) {
    if (early.core != core || early.launch != launch) return false;
    cores_[core].cross_core_flag(early.flag, early.set);
    return true;
  });
}

// To a block that has not begun yet it comes when it begins (Die::flag_arrives).
void DieCausality::flag_set(std::uint32_t launch, std::uint16_t core, std::uint32_t flag, const Moment& set) {
  const auto to = under_way_.find(core);
  if (to != under_way_.end() && to->second.launch == launch) {
    cores_[core].cross_core_flag(flag, set);
  } else {
    early_flags_.push_back({launch, core, flag, set});
  }
}

void DieCausality::block_ended(sim::TransactionId id, std::uint16_t core, Time at) {
  dependencies_.clear();
  const Block block = under_way_[core];
  under_way_.erase(core);
  add_causes(cores_[core].scalar(), at);
  node(id, JoinedAt::Kind::end, block, at);
  // What its stream's next entry waits for: the last block to end.
  if (const auto stream = stream_of_.find(block.launch); stream != stream_of_.end()) {
    Before& now = streams_[stream->second].now;
    if (now.on == 0 || now.at <= at) now = {id, at, at};
  }
}

void DieCausality::barrier_set(std::uint16_t core, std::uint32_t flag) {
  at_barrier_[is_cube_[core] ? 1 : 0][flag].push_back(cores_[core].take_cross_core_set(flag));
}

void DieCausality::barrier(sim::TransactionId id, std::uint32_t flag, bool cube,
                           std::span<const std::uint16_t> cores, Time at) {
  dependencies_.clear();
  std::vector<Moment>& waiting = at_barrier_[cube ? 1 : 0][flag];
  const auto of_kind = [&](std::uint16_t core) { return is_cube_[core] == cube; };
  const std::size_t count =
      std::min(waiting.size(), static_cast<std::size_t>(std::ranges::count_if(cores, of_kind)));
  std::int64_t last = 0;
  for (std::size_t k = 0; k < count; ++k) last = std::max(last, waiting[k].cycle);
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<Cause> causes(waiting[k].causes().begin(), waiting[k].causes().end());
    std::ranges::sort(causes, {}, &Cause::slack);
    for (std::size_t c = 0; c < std::min(causes.size(), kCausesOfABarrier); ++c)
      dependencies_.push_back(dependency(causes[c], causes[c].slack + last - waiting[k].cycle, at));
  }
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(count));
  const Moment all = node(id, JoinedAt::Kind::barrier, {}, at);
  for (const std::uint16_t core : cores) {
    if (of_kind(core)) cores_[core].cross_core_flag(flag, all);
  }
}

void DieCausality::group_set(std::uint16_t core, std::uint32_t flag, std::uint16_t first, std::size_t count,
                             Time at) {
  Moment moment = cores_[core].take_cross_core_set(flag);
  moment.advance(clock_.tick_at_or_after(at));
  for (std::size_t k = 0; k < count; ++k)
    flag_set(under_way_[core].launch, static_cast<std::uint16_t>(first + k), flag, moment);
}

void DieCausality::reaches_cube(std::uint16_t cube, std::uint32_t flag, Time at) {
  Moment& set = for_cube_[{cube, flag}];
  set.advance(clock_.tick_at_or_after(at));
  cores_[cube].cross_core_flag(flag, set);
  set = Moment();
}

}  // namespace cm384::npu
