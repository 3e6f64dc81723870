// Flags, statistics, and reports of a core's pipes.
#include <fmt/format.h>

#include <algorithm>

#include "base/engine/prefetch.h"
#include "firmware/abi/isa.h"
#include "npu_core/pipes/pipe_set.h"

namespace cm384::npu {

void declare_pipe_statistics(sim::Statistics& to, const sim::StatisticPath& at, const PipeStatistics& s) {
  to.declare(at, "window_full", "requests", "that waited for a place among the outstanding ones",
             s.window_full);
  to.declare(at, "merged_writes", "requests", "to other memory that covered part of a 32 B block",
             s.merged_writes);
  to.declare(at, "queue_full", "instructions", "whose pipe's queue was full when they were handed over",
             s.queue_full);
  to.declare(at, "scalar_flag_waits", "waits", "of the scalar unit for a flag that cost it time",
             s.scalar_flag_waits);
  to.declare(at, "flags_set", "flags", "set by set_flag between pipes", s.flags_set);
  to.declare(at, "skipped_polls", "turns",
             "of polling loops that poll elision left out, with their requests to memory", s.skipped_polls);
}

std::uint32_t PipeSet::flag_number(const PipeInstruction& in) const {
  const int source = pipe_of(in.a & 0xff);
  const int destination = pipe_of(in.a >> 8 & 0xff);
  const std::uint64_t id = in.a >> 16;
  if (source < 0 || destination < 0 || source == destination || id > 7) {
    std::string names;
    for (int p = 0; p < pipes; ++p) names += fmt::format("{}{}", p == 0 ? "" : ", ", pipe_name(p));
    fault(in.pc, fmt::format("no such flag: two different pipes of {} and an id 0..7", names));
  }
  return static_cast<std::uint32_t>((source * pipes + destination) * 8) + static_cast<std::uint32_t>(id);
}

std::string PipeSet::flag_text(std::uint32_t number) const {
  return fmt::format("flag {}->{} id {}", pipe_name(flag_source(number)), pipe_name(flag_destination(number)),
                     number % 8);
}

Flag& PipeSet::flag(std::uint32_t number) {
  auto& group = flags[number / 8];
  if (!group) group = std::make_unique<FlagGroup>();
  return group->flags[number % 8];
}

std::vector<LaterSet>::iterator PipeSet::second_set(std::uint32_t number) {
  return std::find_if(later_sets.begin(), later_sets.end(),
                      [number](const LaterSet& set) { return set.flag == number; });
}

void PipeSet::set_flag(std::uint32_t number, std::int64_t cycle) {
  Flag& f = flag(number);
  if (f.count == 0) {
    f.cycle = cycle;
  } else {
    later_sets.push_back({number, cycle});
  }
  ++f.count;
  ++counted.flags_set;
  const int destination = flag_destination(number);
  if (destination != kPipeS) pending |= 1u << destination;
}

void PipeSet::consume_flag(std::uint32_t number) {
  Flag& f = flag(number);
  const int source = flag_source(number);
  if (f.count == Flag::kMost && source != kPipeS) pending |= 1u << source;
  if (--f.count == 0) return;
  const auto next = second_set(number);
  f.cycle = next->cycle;
  later_sets.erase(next);
}

void PipeSet::fire_cross_core(int pipe, std::uint64_t operand, std::int64_t cycle) {
  const std::uint64_t mode = operand >> 8 & 0xff;
  const std::uint64_t number = operand >> 16 & 0xff;
  for (PipeObserver* o : observers)
    o->cross_core_set(pipe, static_cast<std::uint32_t>(mode), static_cast<std::uint32_t>(number), cycle);
  socket.schedule(core, std::max(clock.start(cycle), socket.now()), kCrossCoreSet,
                  argument(mode | number << 8));
}

std::string PipeSet::waiting_for(const PlaceText& place) const {
  std::string text;
  const auto line = [&](const char* who, const std::string& what, std::int64_t since, std::uint64_t pc) {
    text +=
        fmt::format("{} waits for {} since {:.3f} us, {}\n", who, what, clock.start(since).us(), place(pc));
  };
  switch (parked_on) {
    case ParkedOn::queue:
      line("S", fmt::format("a place in {}'s queue", pipe_name(static_cast<int>(parked_operand))),
           parked_cycle, parked_pc);
      break;
    case ParkedOn::flag:
      line("S", flag_text(parked_operand), parked_cycle, parked_pc);
      break;
    case ParkedOn::flag_room:
      line("S", flag_text(parked_operand) + " to be waited for", parked_cycle, parked_pc);
      break;
    case ParkedOn::all_pipes:
      line("S", "all pipes", parked_cycle, parked_pc);
      break;
    case ParkedOn::cross_core:
      line("S", fmt::format("cross-core flag {}", parked_operand), parked_cycle, parked_pc);
      break;
    case ParkedOn::order:
      line("S",
           fmt::format("{} to be done with what it accesses", pipe_name(static_cast<int>(parked_operand))),
           parked_cycle, parked_pc);
      break;
    case ParkedOn::poll:
      line("S", fmt::format("a write to memory offset {:#x} ({} B)", watch_offset, watch_bytes), parked_cycle,
           parked_pc);
      break;
    case ParkedOn::nothing:
      break;
  }
  for (int p = 1; p < pipes; ++p) {
    const PipeQueue& q = queue[p];
    if (engine[p] != nullptr && engine[p]->remote_outstanding() != 0) {
      line(pipe_name(p), fmt::format("{} remote requests", engine[p]->remote_outstanding()),
           tick(engine[p]->last_request()), engine[p]->oldest_pc());
    }
    if (q.empty()) continue;
    const QueuedInstruction& front = q.front();
    const bool sync = front.instruction.instruction_class == CM384_CLASS_SYNC;
    const std::string what = sync && front.instruction.operation == CM384_WAIT_FLAG
                                 ? flag_text(flag_number(front.instruction))
                             : sync ? "its earlier instructions"
                                    : "its engine";
    line(pipe_name(p), what, std::max(front.cycle, q.ready), front.instruction.pc);
  }
  return text;
}

Standstill PipeSet::standstill() const {
  for (int p = 1; p < pipes; ++p) {
    if (engine[p] != nullptr && (engine[p]->busy() || engine[p]->remote_outstanding() != 0)) return {};
  }
  const Time since = clock.start(parked_cycle);
  switch (parked_on) {
    case ParkedOn::nothing:
      return {};
    case ParkedOn::cross_core:
      return {Standstill::On::launch, since};
    case ParkedOn::poll:
      return {Standstill::On::memory, since};
    default:
      return {Standstill::On::own, since};
  }
}

void PipeSet::mark_phase(std::uint32_t phase, std::int64_t cycle) const {
  for (PipeObserver* o : observers) o->phase(phase, cycle);
}

CorePipes::Places PipeSet::places() const {
  Places at{this, sizeof *this, {}};
  for (std::size_t which = 0; which < engine_pipe.size(); ++which)
    at.engine[which] = engine[engine_pipe[which]];
  return at;
}

void PipeSet::prefetch(int stage) const {
  if (stage != 1) return;
  for (int pipe = 1; pipe < pipes; ++pipe) {
    const PipeQueue& q = queue[static_cast<std::size_t>(pipe)];
    if (q.slots == nullptr) continue;
    __builtin_prefetch(&q.front(), 1);
    __builtin_prefetch(&q.freed[q.place], 1);
  }
  for (const auto& of_pair : flags) {
    if (of_pair) __builtin_prefetch(of_pair.get(), 1);
  }
}

void PipeSet::prefetch_engine(std::uint32_t which, int stage) const {
  const MteEngine* const e = which < engine_pipe.size() ? engine[engine_pipe[which]] : nullptr;
  if (e != nullptr) e->prefetch(stage);
}

void PipeSet::prefetch_completion(std::uint32_t tag) const {
  const std::uint32_t which = engine_of(tag);
  const MteEngine* const e = which < engine_pipe.size() ? engine[engine_pipe[which]] : nullptr;
  if (e != nullptr) e->prefetch_completion(tag);
}

}  // namespace cm384::npu
