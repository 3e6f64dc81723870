#include "npu_core/causality/trace_log_reader.h"

#include "firmware/abi/queue.h"

namespace cm384::npu {
namespace {

std::int64_t signed_of(std::uint64_t word) {
  return static_cast<std::int64_t>(word);
}
Time time_of(std::uint64_t word) {
  return Time{signed_of(word)};
}
std::uint32_t low_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word);
}

TransactionStart start_of(const TraceEntry& e, const std::uint64_t* w) {
  TransactionStart start;
  start.address = w[1];
  start.bytes = w[2];
  start.operation = static_cast<sim::Operation>(e.small & 3);
  start.allocate = (e.small & 4) != 0;
  start.engine = static_cast<std::uint8_t>(e.small >> 4);
  return start;
}
bool local_of(const TraceEntry& e) {
  return (e.small & 8) != 0;
}

}  // namespace

void TraceLogReader::read(std::span<const std::uint64_t> words) {
  for (std::size_t at = 0; at < words.size();) {
    const TraceEntry entry = TraceLog::entry_of(words[at]);
    const std::uint64_t* const w = &words[at] + 1;
    at += std::size_t{1} + entry.words;
    if (entry.kind >= TraceEntry::first_of_requests) continue;
    if (dies_.size() <= entry.die) dies_.resize(entry.die + std::size_t{1});
    auto& die = dies_[entry.die];
    if (!die) die = std::make_unique<DieCausality>(entry.die, clock_, vector_, cube_, listener_);
    if (entry.kind == TraceEntry::host) {
      const std::span<const std::uint64_t> rest(w + 2, entry.words - std::size_t{2});
      listener_.host_point(
          {entry.die, static_cast<HostPoint::Kind>(entry.small), time_of(w[0]), time_of(w[1]), rest});
    } else if (entry.kind <= TraceEntry::polled) {
      read_core_entry(entry, w, die->core(entry.core));
    } else if (entry.kind < TraceEntry::first_of_devices) {
      of_die(entry, w, *die);
    } else {
      of_devices(entry, w, *die);
    }
  }
}

void read_core_entry(const TraceEntry& e, const std::uint64_t* w, PipeObserver& core) {
  const int pipe = e.small & 7;
  switch (e.kind) {
    case TraceEntry::parked:
      return core.scalar_parked(signed_of(w[0]));
    case TraceEntry::pushed:
      return core.pushed(pipe, signed_of(w[0]), signed_of(w[1]), signed_of(w[2]));
    case TraceEntry::left: {
      PipeStep step;
      step.kind = static_cast<PipeStep::Kind>(e.small >> 3 & 7);
      step.pipe = pipe;
      step.flag = e.small >> 6;
      step.own = signed_of(w[0]);
      step.start = signed_of(w[1]);
      step.end = signed_of(w[2]);
      step.left = signed_of(w[3]);
      return core.left(step);
    }
    case TraceEntry::issued:
      return core.issued(pipe, signed_of(w[0]));
    case TraceEntry::flag_set:
      return core.flag_set(pipe, e.small >> 3, signed_of(w[0]));
    case TraceEntry::cross_set:
      return core.cross_core_set(pipe, e.small >> 3 & 7, e.small >> 6, signed_of(w[0]));
    case TraceEntry::waited_flag:
      return core.scalar_waited_for_flag(e.small, signed_of(w[0]), signed_of(w[1]));
    case TraceEntry::waited_cross:
      return core.scalar_waited_for_cross_core(e.small, signed_of(w[0]), signed_of(w[1]));
    case TraceEntry::waited_all:
      return core.scalar_waited_for_all(signed_of(w[0]), signed_of(w[1]));
    case TraceEntry::waited_pipe:
      return core.scalar_waited_for_pipe(e.small, signed_of(w[0]), signed_of(w[1]));
    case TraceEntry::poll_turn:
      return core.poll_turn(e.small != 0, signed_of(w[0]));
    default:
      return core.scalar_polled(signed_of(w[0]), signed_of(w[1]));
  }
}

void TraceLogReader::of_die(const TraceEntry& e, const std::uint64_t* w, DieCausality& die) {
  switch (e.kind) {
    case TraceEntry::cores:
      return die.add_cores(w[0], e.small != 0);
    case TraceEntry::block_begun:
      return die.block_begun(w[0], low_of(w[1]), low_of(w[2]), e.core, time_of(w[3]));
    case TraceEntry::block_ended:
      return die.block_ended(w[0], e.core, time_of(w[1]));
    case TraceEntry::begun: {
      TransactionStart start = start_of(e, w);
      start.burst_bytes = static_cast<std::uint32_t>(w[3] >> 32);
      start.bursts = low_of(w[3]);
      start.stride = signed_of(w[4]);
      return die.begun(e.core, w[0], start, local_of(e), time_of(w[5]));
    }
    case TraceEntry::completed:
      return die.completed(e.core, w[0], time_of(w[1]));
    case TraceEntry::filled: {
      LocalAccess access{w[1], low_of(w[2]), e.core, (e.small & 1) != 0, true, time_of(w[3])};
      return die.filled(w[0], access, signed_of(w[4]), time_of(w[5]));
    }
    case TraceEntry::arrived:
      return die.arrived(w[0], w[1], w[2], time_of(w[3]));
    case TraceEntry::read:
      return die.read(e.core, w[0]);
    case TraceEntry::written:
      return die.written(e.core, w[0], w[1], time_of(w[2]));
    case TraceEntry::poll_woken:
      return die.poll_woken(e.core);
    case TraceEntry::barrier_set:
      return die.barrier_set(e.core, e.small);
    case TraceEntry::barrier:
      return barrier(e, w, die);
    case TraceEntry::group_set:
      return die.group_set(e.core, e.small, static_cast<std::uint16_t>(w[0]), w[1], time_of(w[2]));
    case TraceEntry::for_cube:
      return die.for_cube(e.core, static_cast<std::uint16_t>(w[0]), e.small);
    default:
      return die.reaches_cube(e.core, e.small, time_of(w[0]));
  }
}

void TraceLogReader::of_devices(const TraceEntry& e, const std::uint64_t* w, DieCausality& die) {
  switch (e.kind) {
    case TraceEntry::written_by_device:
      return die.written_by_device(w[0], w[1], time_of(w[2]));
    case TraceEntry::copy_begun: {
      const CopyStart copy{e.core, static_cast<std::uint16_t>(w[3] >> 32), low_of(w[3]), time_of(w[4]),
                           time_of(w[5])};
      return die.copy_begun(w[0], start_of(e, w), copy, local_of(e), time_of(w[6]));
    }
    case TraceEntry::copy_ended:
      return die.copy_ended(e.core, e.small, time_of(w[0]), time_of(w[1]));
    case TraceEntry::rung:
      return die.doorbell_rung(e.core);
    case TraceEntry::task_begun:
      return die.task_begun(low_of(w[0]), e.small == CM384_TASK_KERNEL, low_of(w[1]), time_of(w[2]));
    default:
      return die.task_ended(low_of(w[0]), time_of(w[1]));
  }
}

// The cores are bits of two words.
void TraceLogReader::barrier(const TraceEntry& e, const std::uint64_t* w, DieCausality& die) {
  std::vector<std::uint16_t> cores;
  for (std::uint16_t core = 0; core < 128; ++core) {
    if ((w[1 + core / 64] >> core % 64 & 1) != 0) cores.push_back(core);
  }
  die.barrier(w[0], e.small, e.core != 0, cores, time_of(w[3]));
}

}  // namespace cm384::npu
