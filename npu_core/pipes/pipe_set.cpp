#include "npu_core/pipes/pipe_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "firmware/abi/isa.h"
#include "firmware/abi/memory_map.h"

namespace cm384::npu {

PipeSet::PipeSet(std::uint16_t core_number, const char* core_kind, const HazardSpace& buffers,
                 std::uint32_t queue_depth, const Clock& core_clock, CoreSocket& die,
                 PipeStatistics& statistics)
    : core(core_number),
      kind(core_kind),
      space(buffers),
      pipes(static_cast<int>(buffers.pipes.size())),
      depth(queue_depth),
      socket(die),
      clock(core_clock),
      counted(statistics) {
  pipe_by_isa.fill(-1);
  for (std::size_t p = 0; p < space.pipes.size(); ++p) {
    pipe_by_isa[space.pipes[p].isa] = static_cast<std::int8_t>(p);
  }
}

void PipeSet::add_engine(int pipe, MteEngine& made, std::uint32_t event) {
  engine[pipe] = &made;
  engine_pipe[event] = pipe;
}

void PipeSet::set_hazards(bool on) {
  if (!on) {
    hazards.reset();
  } else if (!hazards) {
    hazards = std::make_unique<HazardChecker>(space, order != nullptr, hazard_listener);
  }
}

IssueAnswer PipeSet::issue_sync(const PipeInstruction& in, std::int64_t cycle) {
  const IssueAnswer next = IssueAnswer::at(cycle + 1);
  switch (in.operation) {
    case CM384_SET_FLAG: {
      const std::uint32_t number = flag_number(in);
      const int source = flag_source(number);
      return source == kPipeS ? scalar_set(number, cycle) : push(source, in, cycle);
    }
    case CM384_WAIT_FLAG: {
      const std::uint32_t number = flag_number(in);
      const int destination = flag_destination(number);
      parked_pc = in.pc;
      return destination == kPipeS ? scalar_wait(number, cycle) : push(destination, in, cycle);
    }
    case CM384_PIPE_BARRIER: {
      if (in.a == CM384_PIPE_ALL) {
        parked_pc = in.pc;
        const IssueAnswer done = drain(cycle);
        return done.parked ? done : IssueAnswer::at(done.release_cycle + 1);
      }
      const int pipe = pipe_of(in.a);
      if (pipe < 0) fault(in.pc, fmt::format("barrier on a pipe that {} does not have", kind));
      return pipe == kPipeS ? next : push(pipe, in, cycle);
    }
    case CM384_CROSS_CORE_SET: {
      const int pipe = pipe_of(in.a & 0xff);
      if (pipe < 0) fault(in.pc, fmt::format("cross-core set on a pipe that {} does not have", kind));
      if ((in.a >> 8 & 0xff) > 2 || (in.a >> 16) > 15) fault(in.pc, "cross-core set: mode 0..2, flag 0..15");
      if (pipe != kPipeS) return push(pipe, in, cycle);
      fire_cross_core(kPipeS, in.a, cycle + 1);
      return next;
    }
    case CM384_CROSS_CORE_WAIT:
      return cross_core_wait(in, cycle);
    case CM384_SET_MASK:
      mask_low = in.a;
      mask_high = in.b;
      return next;
    case CM384_SET_STRIDE:
      source_stride = in.a;
      destination_stride = in.b;
      return next;
    case CM384_POLL_MARK:
      return poll_mark(in, cycle);
    case CM384_SET_L2_ALLOCATE:
      allocate = (in.a & 1) != 0;
      return next;
    case CM384_SET_ATOMIC:
      if (in.a >= CM384_ATOMIC_MODES) fault(in.pc, "no such atomic mode");
      atomic = static_cast<std::uint8_t>(in.a);
      return next;
    case CM384_SET_PADDING: {
      const std::uint64_t size = in.a >> 16 & 0xff;
      if ((in.a & 0xff) > 32 || (in.a >> 8 & 0xff) > 32 || size == 3 || size > 4)
        fault(in.pc, "padding: at most 32 B on either side, elements of 1, 2 or 4 B");
      padding = in.a;
      return next;
    }
    case CM384_DCCI:
      return next;
    case CM384_PHASE:
      return IssueAnswer::at(cycle);
    default:
      fault(in.pc, "no such synchronisation instruction");
  }
}

IssueAnswer PipeSet::push(int pipe, const PipeInstruction& in, std::int64_t cycle) {
  PipeQueue& q = queue[pipe];
  if (q.freed == nullptr) {
    q.freed = std::make_unique<std::int64_t[]>(depth);
    q.depth = depth;
  }
  parked_pc = in.pc;
  if (q.count >= depth) {
    ++counted.queue_full;
    return park(ParkedOn::queue, static_cast<std::uint32_t>(pipe), cycle);
  }
  const std::int64_t from = cycle;
  const std::int64_t place = q.freed[q.place];
  if (place > cycle) {
    ++counted.queue_full;
    cycle = place;
  }
  const bool strides = in.instruction_class == CM384_CLASS_MTE || in.instruction_class == CM384_CLASS_CUBE;
  QueuedInstruction& slot = q.append();
  slot.instruction = in;
  slot.cycle = cycle + 1;
  slot.low = strides ? source_stride : mask_low;
  slot.high = strides ? destination_stride : mask_high;
  slot.allocate = allocate;
  slot.pad_size = static_cast<std::uint8_t>(padding >> 16);
  if (slot.pad_size != 0) [[unlikely]] {
    slot.pad_left = static_cast<std::uint8_t>(padding);
    slot.pad_right = static_cast<std::uint8_t>(padding >> 8);
    slot.pad_value = static_cast<std::uint32_t>(padding >> 32);
  }
  for (PipeObserver* o : observers) o->pushed(pipe, from, place, cycle + 1);
  if (hazards) hazards->pushed(pipe);
  if (q.count == 1) advance(1u << pipe);
  return IssueAnswer::at(cycle + 1);
}

IssueAnswer PipeSet::park(ParkedOn why, std::uint32_t operand, std::int64_t cycle) {
  parked_on = why;
  parked_operand = operand;
  parked_cycle = cycle;
  for (PipeObserver* o : observers) o->scalar_parked(cycle);
  return IssueAnswer::park();
}

void PipeSet::wake(std::int64_t cycle) {
  parked_on = ParkedOn::nothing;
  socket.wake_scalar(core, std::max(cycle, parked_cycle));
}

void PipeSet::wake_if_possible() {
  std::int64_t cycle = 0;
  switch (parked_on) {
    case ParkedOn::queue: {
      const PipeQueue& q = queue[parked_operand];
      if (q.count < depth) wake(q.freed[q.place]);
      return;
    }
    case ParkedOn::flag:
      if (flag(parked_operand).count != 0) wake(flag(parked_operand).cycle);
      return;
    case ParkedOn::flag_room:
      if (!flag_full(parked_operand)) wake(parked_cycle);
      return;
    case ParkedOn::all_pipes:
      if (idle(cycle)) wake(cycle);
      return;
    case ParkedOn::cross_core:
      if (cross_count[parked_operand] != 0) wake(cross_cycle[parked_operand]);
      return;
    case ParkedOn::order: {
      int pipe = 0;
      cycle = order_complete(parked_access, pipe);
      if (cycle != LocalOrder::kUnknown) wake(cycle);
      return;
    }
    default:
      return;
  }
}

IssueAnswer PipeSet::drain(std::int64_t cycle) {
  std::int64_t done = 0;
  if (!idle(done)) return park(ParkedOn::all_pipes, 0, cycle);
  if (hazards) hazards->all_waited();
  for (PipeObserver* o : observers) o->scalar_waited_for_all(cycle, std::max(cycle, done));
  return IssueAnswer::at(std::max(cycle, done));
}

IssueAnswer PipeSet::scalar_set(std::uint32_t number, std::int64_t cycle) {
  if (flag_full(number)) return park(ParkedOn::flag_room, number, cycle);
  if (hazards) hazards->flag_set(kPipeS, number);
  for (PipeObserver* o : observers) o->flag_set(kPipeS, number, cycle + 1);
  set_flag(number, cycle + 1);
  advance(0);
  return IssueAnswer::at(cycle + 1);
}

IssueAnswer PipeSet::scalar_wait(std::uint32_t number, std::int64_t cycle) {
  Flag& f = flag(number);
  if (f.count == 0) return park(ParkedOn::flag, number, cycle);
  const std::int64_t done = std::max(cycle, f.cycle);
  for (PipeObserver* o : observers) o->scalar_waited_for_flag(number, cycle, done);
  counted.scalar_flag_waits += done > cycle ? 1 : 0;
  consume_flag(number);
  if (hazards) hazards->flag_waited(kPipeS, number);
  advance(0);
  return IssueAnswer::at(done + 1);
}

IssueAnswer PipeSet::cross_core_wait(const PipeInstruction& in, std::int64_t cycle) {
  if (in.a > 15) fault(in.pc, "cross-core wait: flag 0..15");
  parked_pc = in.pc;
  if (cross_count[in.a] == 0) return park(ParkedOn::cross_core, static_cast<std::uint32_t>(in.a), cycle);
  --cross_count[in.a];
  const std::int64_t done = std::max(cycle, cross_cycle[in.a]);
  for (PipeObserver* o : observers)
    o->scalar_waited_for_cross_core(static_cast<std::uint32_t>(in.a), cycle, done);
  return IssueAnswer::at(done + 1);
}

// The turn that starts at this mark reads the range again; it need not run while nothing has been written
// since the turn before started.
IssueAnswer PipeSet::poll_mark(const PipeInstruction& in, std::int64_t cycle) {
  const IssueAnswer next = IssueAnswer::at(cycle + 1);
  if (!elide_polls || !cm384_is_gm(in.a) || !socket.is_local(in.a)) return next;
  if (in.b == 0) {  // the loop is left: the way to the next one is no turn
    end_polling();
    return next;
  }
  const std::uint64_t offset = cm384_gm_offset(in.a);
  parked_pc = in.pc;
  const bool first = watch(offset, in.b);
  if (!first && !watched && cycle > mark_cycle) {
    poll_period = cycle - mark_cycle;
    return park(ParkedOn::poll, 0, cycle);
  }
  for (PipeObserver* o : observers) o->poll_turn(first, cycle);
  watched = false;
  mark_cycle = cycle;
  return next;
}

// True where it was not watched before.
bool PipeSet::watch(std::uint64_t offset, std::uint64_t bytes) {
  if (watching && offset == watch_offset && bytes == watch_bytes) return false;
  watching = true;
  watch_offset = offset;
  watch_bytes = bytes;
  socket.watch(core, offset, bytes);
  return true;
}

void PipeSet::end_polling() {
  if (watching) socket.watch(core, 0, 0);
  watching = watched = false;
}

void PipeSet::watched_write(Time at) {
  watched = true;
  if (parked_on != ParkedOn::poll) return;
  const std::int64_t late = std::max<std::int64_t>(0, tick(at) - parked_cycle);
  const std::int64_t turns = (late + poll_period - 1) / poll_period;
  counted.skipped_polls += static_cast<std::uint64_t>(turns);
  const std::int64_t woken = parked_cycle + turns * poll_period;
  for (PipeObserver* o : observers) o->scalar_polled(parked_cycle, woken);
  wake(woken);
}

void PipeSet::cross_core_flag(std::uint32_t flag, int count, Time at) {
  const int sum = cross_count[flag] + count;
  if (sum > 15) throw PipeFault(fmt::format("cross-core flag {}: more than 15 sets outstanding", flag), {});
  cross_count[flag] = static_cast<std::uint8_t>(sum);
  cross_cycle[flag] = std::max(cross_cycle[flag], tick(at));
  wake_if_possible();
}

void PipeSet::reset() {
  ++epoch;
  for (PipeQueue& q : queue) q.reset();
  mask_low = mask_high = ~std::uint64_t{0};
  source_stride = destination_stride = 0;
  allocate = true;
  atomic = CM384_ATOMIC_NONE;
  padding = 0;
  pending = 0;
  for (auto& group : flags) group.reset();
  later_sets.clear();
  cross_count.fill(0);
  cross_cycle.fill(0);
  parked_on = ParkedOn::nothing;
  access_asked = -1;
  end_polling();
  for (MteEngine* e : engine) {
    if (e != nullptr) e->reset();
  }
  if (hazards) hazards->reset(order != nullptr, hazard_listener);
  if (order) order = std::make_unique<LocalOrder>();
}

}  // namespace cm384::npu
