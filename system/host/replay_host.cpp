// What the machine's own models do in a replay: host threads, task schedulers, and copies of streams.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "system/host/replay.h"
#include "system/host/replay_engines.h"
#include "traces/host_words.h"
#include "ub_fabric/flow.h"

namespace cm384::host {

using traces::HostCallKind;
using traces::TrafficRecord;
using Kind = traces::TrafficDependency::Kind;

namespace {

// Ids of the machine's own copies: this bit, 16 of the stream, 31 of how many copies it had before.
constexpr sim::TransactionId kOwn = sim::TransactionId{1} << 47;
constexpr unsigned kCopyBits = 31;

cm384_task task_in(std::span<const std::uint64_t> words) {
  static_assert(sizeof(cm384_task) == traces::kEntryWords * sizeof(std::uint64_t));
  cm384_task task{};
  std::memcpy(&task, words.data(), sizeof task);
  return task;
}

}  // namespace

void TrafficUnits::add_host(const TrafficRecord& r) {
  const auto add = [this](std::uint64_t address) {
    if (!cm384_is_gm(address)) return;
    rdma = rdma || cm384_gm_via_rdma(address);
    (cm384_gm_is_cpu(address) ? sockets : dies).insert(static_cast<int>(cm384_gm_unit(address)));
  };
  if (r.kind == TrafficRecord::Kind::call && r.words[0] == static_cast<std::uint64_t>(HostCallKind::barrier))
    dies.insert(static_cast<int>(r.words[1]));
  const auto words = traces::entry_of(r);
  if (words.empty()) return;
  const cm384_task task = task_in(words);
  if (task.type == CM384_TASK_SDMA) {
    add(task.u.copy.source);
    add(task.u.copy.destination);
  } else if (task.type != CM384_TASK_KERNEL) {
    add(task.u.word.address);
  }
}

Replay::OwnKey Replay::key_of(const TrafficRecord& r) {
  return {r.source.number, r.kind == TrafficRecord::Kind::transfer, r.words[0], r.words[1]};
}

sim::TransactionId Replay::transaction_of(const TrafficRecord& r, std::uint64_t number) const {
  const sim::TransactionId die = static_cast<sim::TransactionId>(r.source.number + 1) << 48;
  if (!by_own_models() || r.words.empty()) return die | (number + 1) | (is_shared_out(r) ? ub::kOwnFlow : 0);
  return die | kOwn | r.words[0] << kCopyBits | r.words[1];
}

// --- what the trace gives

// True for what has no time of its own: a stream, a kernel and an entry to unfold are there before they are
// needed.
bool Replay::enter_timeless(std::uint64_t number) {
  Entry& e = entry(number);
  const TrafficRecord& r = e.record;
  const bool unfolded =
      r.kind == TrafficRecord::Kind::call && static_cast<HostCallKind>(r.words[0]) == HostCallKind::entry;
  if (r.kind != TrafficRecord::Kind::stream && r.kind != TrafficRecord::Kind::kernel && !unfolded)
    return false;
  if (by_own_models() && unfolded) unfolded_[r.source.number].push_back(submission(number));
  if (by_own_models() && r.kind == TrafficRecord::Kind::stream) make_stream(r);
  if (by_own_models() && r.kind == TrafficRecord::Kind::kernel) register_kernel(r);
  e.begun = r.start;
  happened(number, Kind::completion, r.end);
  return true;
}

// False where the record begins once what it waited for has happened, like any other.
bool Replay::enter_own(std::uint64_t number) {
  switch (entry(number).record.kind) {
    case TrafficRecord::Kind::idle:
      resting_ = true;
      --machine_.unfinished();
      return true;
    case TrafficRecord::Kind::call:
      make_call(number);
      return true;
    case TrafficRecord::Kind::given:
      ++machine_.unfinished();  // until the kernel has ended
      return false;
    case TrafficRecord::Kind::launch:
    case TrafficRecord::Kind::transfer:
      expect(number);
      return true;
    default:
      return false;
  }
}

// Where the trace's own lay; rings that are longer on this machine get a place at the end of memory.
void Replay::make_stream(const TrafficRecord& r) {
  npu::Die& die = machine_.die(r.source.number);
  const auto depth = static_cast<std::uint32_t>(machine_.parameters().scheduler.queue_depth);
  const std::uint64_t bytes = std::uint64_t{depth} * CM384_QUEUE_ENTRY_BYTES;
  std::uint64_t entries = r.words[1], completions = r.words[2];
  if (depth > r.words[3]) {
    std::uint64_t& used = rings_[die.number()];
    used += 2 * bytes;
    entries = die.allocatable() - std::min(used, die.allocatable());
    completions = entries + bytes;
  }
  if (!die.store().contains(entries, bytes) || !die.store().contains(completions, bytes))
    throw InputError(fmt::format("record {}: words: no memory for a stream of {} entries", next_ - 1, depth));
  if (die.scheduler().streams() != r.words[0])
    throw InputError(fmt::format("record {}: words: stream {}; allowed: {}, the next one of {}", next_ - 1,
                                 r.words[0], die.scheduler().streams(), text_of(r.source)));
  die.scheduler().create_stream(npu::QueueRing(entries, completions, depth));
}

void Replay::register_kernel(const TrafficRecord& r) {
  const std::vector<std::uint16_t> cores(r.words.begin() + 2, r.words.end());
  kernels_[{r.source.number, r.words[0]}] =
      machine_.die(r.source.number)
          .scheduler()
          .register_kernel(nullptr, cores, static_cast<npu::KernelType>(r.words[1]));
}

// The entry that a record brings to a stream, with the number that its kernel has here.
cm384_task Replay::task_of(std::uint64_t number, const TrafficRecord& r, std::uint64_t stream) const {
  if (stream >= machine_.die(r.source.number).scheduler().streams())
    throw InputError(fmt::format("record {}: words: {} has no stream {}", number, text_of(r.source), stream));
  cm384_task task = task_in(traces::entry_of(r));
  if (task.type == CM384_TASK_SDMA) {
    task.u.copy.source = by_path(r.source.number, task.u.copy.source);
    task.u.copy.destination = by_path(r.source.number, task.u.copy.destination);
  }
  if (task.type != CM384_TASK_KERNEL) {
    if (r.kind == TrafficRecord::Kind::given)
      throw InputError(
          fmt::format("record {}: words: an entry of type {}; allowed: a kernel", number, task.type));
    return task;
  }
  const auto kernel = kernels_.find({r.source.number, task.u.kernel.kernel});
  if (kernel == kernels_.end())
    throw InputError(fmt::format("record {}: words: {} knows no kernel {}", number, text_of(r.source),
                                 task.u.kernel.kernel));
  task.u.kernel.kernel = kernel->second;
  return task;
}

void Replay::submit_given(std::uint64_t number) {
  Entry& e = entry(number);
  const TrafficRecord& r = e.record;
  npu::Die& die = machine_.die(r.source.number);
  e.begun = die.now();
  die.scheduler().submit(static_cast<std::uint32_t>(r.words[0]), task_of(number, r, r.words[0]));
  happened(number, Kind::completion, die.now());
  settle();
}

// Of a record that brings an entry to a stream.
HostCall Replay::submission(std::uint64_t number) {
  const TrafficRecord& r = entry(number).record;
  HostCall call;
  call.record = number + 1;
  call.stream = static_cast<std::uint32_t>(r.words[1]);
  call.entry = task_of(number, r, r.words[1]);
  call.task = hosts_[r.source.number]->new_task();
  return call;
}

void Replay::make_call(std::uint64_t number) {
  const TrafficRecord& r = entry(number).record;
  HostThread& host = *hosts_[r.source.number];
  HostCall call;
  call.record = number + 1;
  switch (static_cast<HostCallKind>(r.words[0])) {
    case HostCallKind::entry:  // has no time of its own
      return;
    case HostCallKind::submit:
      call = submission(number);
      break;
    case HostCallKind::unfold: {
      std::vector<HostCall>& entries = unfolded_[r.source.number];
      if (entries.size() != r.words[1])
        throw InputError(
            fmt::format("record {}: words: unfolds {} entries; allowed: {}, as many as came for it", number,
                        r.words[1], entries.size()));
      call.kind = HostCall::Kind::unfold;
      call.unfolded = std::exchange(entries, {});
      break;
    }
    case HostCallKind::synchronize:
      call.kind = HostCall::Kind::synchronize;
      call.stream = static_cast<std::uint32_t>(r.words[1]);
      break;
    case HostCallKind::compute:
      call.kind = HostCall::Kind::compute;
      call.time = Time{static_cast<std::int64_t>(r.words[1])};
      break;
    case HostCallKind::barrier: {
      call.kind = HostCall::Kind::barrier;
      const auto at = barriers_.try_emplace({r.words[1], r.words[2]}).first;
      if (!at->second) {
        at->second = std::make_shared<HostBarrier>();
        at->second->expected = r.words[3];
        hosts_[r.words[1]]->count(at->second);
      }
      call.met = at->second;
      call.met->threads.push_back(&host);
      if (call.met->threads.size() == call.met->expected) barriers_.erase(at);
    }
  }
  host.call(std::move(call), reached_);
}

void Replay::check_unfolded() const {
  for (const auto& [die, entries] : unfolded_) {
    if (!entries.empty())
      throw InputError(
          fmt::format("record {}: words: an entry that no later call unfolds; allowed: such a call",
                      entries.front().record - 1));
  }
}

void Replay::call_done(int die, const HostCall& call, Time begin, Time end) {
  acting_.mine().die = die;
  const std::uint64_t number = call.record - 1;
  entry(number).begun = begin;
  happened(number, Kind::completion, end);
  settle();
}

// --- what the machine brings forth

// The record of something that the machine's own models do. It may have happened already: a record is read
// when there is room for it.
void Replay::expect(std::uint64_t number) {
  Entry& e = entry(number);
  const OwnKey key = key_of(e.record);
  e.to_arrive = e.record.moves() ? e.record.total_bytes() : 0;
  expected_[key] = number;
  const auto known = early_.find(key);
  if (known == early_.end()) return;
  const Early early = known->second;
  early_.erase(known);
  e.begun = early.begun;
  if (early.past.issued != Time::never()) happened(number, Kind::issue, early.past.issued);
  e.to_arrive -= std::min(e.to_arrive, early.arrived);
  if (early.arrived != 0 && e.to_arrive == 0) happened(number, Kind::arrival, early.last_arrival);
  if (early.past.completed != Time::never()) happened(number, Kind::completion, early.past.completed);
}

Replay::Subject Replay::subject_of(sim::TransactionId id) {
  const std::uint64_t number = id & kReplayNumber;
  if ((number & kOwn) == 0) return {number - 1, &entry(number - 1), nullptr};
  const OwnKey key{static_cast<int>(id >> 48) - 1, true, (number & ~kOwn) >> kCopyBits,
                   number & ((std::uint64_t{1} << kCopyBits) - 1)};
  const auto expected = expected_.find(key);
  if (expected != expected_.end()) return {expected->second, &entry(expected->second), nullptr};
  return {0, nullptr, &early_[key]};
}

void Replay::begun(sim::TransactionId id, Time at) {
  const Subject subject = subject_of(id);
  Time& begun = subject.entry != nullptr ? subject.entry->begun : subject.early->begun;
  if (begun == Time::never()) begun = at;
}

void Replay::run_block(int die, const npu::BlockStart& block) {
  acting_.mine().die = die;
  const Time now = machine_.die(die).now();
  const OwnKey key{die, false, block.launch, block.index};
  blocks_[key] = block.core;
  if (const auto expected = expected_.find(key); expected != expected_.end()) {
    entry(expected->second).begun = now;
    happened(expected->second, Kind::completion, now);
  } else {
    Early& early = early_[key];
    early.begun = early.past.completed = now;
  }
  if (const auto ended = ended_.find(key); ended != ended_.end()) {
    post(die, now, kBlockEnds, ended->second);
    ended_.erase(ended);
  }
  settle();
}

void Replay::end_block(std::uint64_t number) {
  Entry& e = entry(number);
  const OwnKey key = key_of(e.record);
  const auto block = blocks_.find(key);
  if (block == blocks_.end()) {
    ended_[key] = number;  // it has not begun
    return;
  }
  npu::Die& die = machine_.die(key.die);
  e.begun = die.now();
  die.scheduler().block_ended(block->second, die.now(), {});
  blocks_.erase(block);
  happened(number, Kind::completion, die.now());
  settle();
}

sim::TransactionId Replay::copy_begins(int die, std::uint32_t stream) {
  const std::uint64_t before = copies_[{die, stream}]++;
  return static_cast<sim::TransactionId>(die + 1) << 48 | kOwn | std::uint64_t{stream} << kCopyBits | before;
}

// Memory that is not there on this machine, mostly.
void Replay::task_finished(int die, const npu::TaskRecord& record) {
  if (record.status == CM384_STATUS_DONE) return;
  throw InputError(
      fmt::format("die {}, stream {}: an entry of type {} ended with status {} at {:#x}: the trace "
                  "does not fit the machine",
                  die, record.stream, record.type, record.status, record.fault));
}

}  // namespace cm384::host
