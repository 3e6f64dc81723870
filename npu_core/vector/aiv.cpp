#include "npu_core/vector/aiv.h"

#include <fmt/format.h>

#include <algorithm>

#include "firmware/abi/isa.h"
#include "firmware/abi/memory_map.h"
#include "npu_core/vector/aiv_state.h"
#include "sim/error.h"

namespace cm384::npu {
namespace {

MteTiming timing(const Clock& clock, double overhead, double interval, Bytes window, int remote) {
  const auto ps = [&clock](double cycles) {
    const auto hundredths = static_cast<std::int64_t>(cycles * 100.0 + 0.5);
    return (hundredths * clock.numerator() + 50 * clock.denominator()) / (100 * clock.denominator());
  };
  // The overhead is counted from the time at which the next request could have left.
  return {ps(overhead), ps(interval), window.count, static_cast<std::uint32_t>(remote)};
}

}  // namespace

Aiv::State::State(std::uint16_t core_number, const hw::VectorCore& vector, const hw::Mte& mte,
                  const Clock& core_clock, CoreSocket& die)
    : core(core_number),
      depth(static_cast<std::uint32_t>(vector.queue_depth)),
      socket(die),
      clock(core_clock),
      costs(vector),
      read_timing(timing(core_clock, mte.read_instruction_overhead, mte.read_request_interval,
                         mte.local_read_window, mte.remote_reads)),
      write_timing(timing(core_clock, mte.write_instruction_overhead, mte.write_request_interval,
                          mte.local_write_window, mte.remote_writes)),
      setup{mte.read_setup, mte.write_setup},
      mte2(true, core_number, kMte2Request, 0, read_timing, die, ubuffer, statistics),
      mte3(false, core_number, kMte3Request, kMte3Tags, write_timing, die, ubuffer, statistics) {}

Aiv::Aiv(std::uint16_t core, const hw::VectorCore& vector, const hw::Mte& mte, const Clock& core_clock,
         CoreSocket& socket)
    : state_(std::make_unique<State>(core, vector, mte, core_clock, socket)) {}
Aiv::~Aiv() = default;
Aiv::Aiv(Aiv&&) noexcept = default;

void Aiv::set_options(const AivOptions& options) {
  state_->options = options;
  if (!options.check_hazards) {
    state_->hazards.reset();
  } else if (!state_->hazards) {
    state_->hazards = std::make_unique<HazardChecker>();
  }
}

IssueAnswer Aiv::issue(const PipeInstruction& in, std::int64_t cycle) {
  State& s = *state_;
  s.parked_on = ParkedOn::nothing;
  switch (in.instruction_class) {
    case CM384_CLASS_SYNC:
      return s.issue_sync(in, cycle);
    case CM384_CLASS_MTE:
      if (in.operation > CM384_MTE_UB_TO_GM_ADD_F32) fault(in.pc, "no such MTE operation");
      return s.push(in.operation == CM384_MTE_GM_TO_UB ? kPipeMte2 : kPipeMte3, in, cycle);
    case CM384_CLASS_VECTOR:
    case CM384_CLASS_REDUCE:
    case CM384_CLASS_CONVERT:
      return s.push(kPipeV, in, cycle);
    default:
      fault(in.pc, "a vector core has no such class of pipe instructions");
  }
}

IssueAnswer Aiv::State::issue_sync(const PipeInstruction& in, std::int64_t cycle) {
  const IssueAnswer next = IssueAnswer::at(cycle + 1);
  switch (in.operation) {
    case CM384_SET_FLAG: {
      const std::uint32_t number = flag_number(in);
      const int source = static_cast<int>(number / 32);
      return source == kPipeS ? scalar_set(in, number, cycle) : push(source, in, cycle);
    }
    case CM384_WAIT_FLAG: {
      const std::uint32_t number = flag_number(in);
      const int destination = static_cast<int>(number / 8 % 4);
      parked_pc = in.pc;
      return destination == kPipeS ? scalar_wait(number, cycle) : push(destination, in, cycle);
    }
    case CM384_PIPE_BARRIER: {
      if (in.a == CM384_PIPE_ALL) {
        parked_pc = in.pc;
        const IssueAnswer done = wait_all(cycle);
        return done.parked ? done : IssueAnswer::at(done.release_cycle + 1);
      }
      const int pipe = pipe_of(in.a);
      if (pipe < 0) fault(in.pc, "barrier on a pipe that a vector core does not have");
      return pipe == kPipeS ? next : push(pipe, in, cycle);
    }
    case CM384_CROSS_CORE_SET: {
      const int pipe = pipe_of(in.a & 0xff);
      if (pipe < 0) fault(in.pc, "cross-core set on a pipe that a vector core does not have");
      if ((in.a >> 8 & 0xff) > 2 || (in.a >> 16) > 15) fault(in.pc, "cross-core set: mode 0..2, flag 0..15");
      if (pipe != kPipeS) return push(pipe, in, cycle);
      fire_cross_core(in.a, cycle + 1);
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
    case CM384_DCCI:
      return next;
    case CM384_PHASE:
      return IssueAnswer::at(cycle);
    default:
      fault(in.pc, "no such synchronisation instruction");
  }
}

IssueAnswer Aiv::State::push(int pipe, const PipeInstruction& in, std::int64_t cycle) {
  PipeQueue& q = queue[pipe];
  if (q.slots.empty()) {
    q.slots.resize(depth);
    q.left.assign(depth, 0);
  }
  parked_pc = in.pc;
  if (q.tail - q.head >= depth) {
    ++statistics.queue_full;
    return park(ParkedOn::queue, static_cast<std::uint32_t>(pipe), cycle);
  }
  const std::int64_t place = q.left[q.tail % depth];
  if (place > cycle) {
    ++statistics.queue_full;
    cycle = place;
  }
  const bool copy = in.instruction_class == CM384_CLASS_MTE;
  q.slots[q.tail % depth] = {in, cycle + 1, copy ? source_stride : mask_low,
                             copy ? destination_stride : mask_high, allocate};
  ++q.tail;
  if (hazards) hazards->pushed(pipe);
  if (q.tail - q.head == 1) advance(1u << pipe);
  return IssueAnswer::at(cycle + 1);
}

IssueAnswer Aiv::State::park(ParkedOn why, std::uint32_t operand, std::int64_t cycle) {
  parked_on = why;
  parked_operand = operand;
  parked_cycle = cycle;
  return IssueAnswer::park();
}

void Aiv::State::wake(std::int64_t cycle) {
  parked_on = ParkedOn::nothing;
  ++progress;
  socket.wake_scalar(core, std::max(cycle, parked_cycle));
}

void Aiv::State::wake_if_possible() {
  std::int64_t cycle = 0;
  switch (parked_on) {
    case ParkedOn::queue: {
      const PipeQueue& q = queue[parked_operand];
      if (q.tail - q.head < depth) wake(q.left[q.tail % depth]);
      return;
    }
    case ParkedOn::flag:
      if (flag(parked_operand).count != 0) wake(flag(parked_operand).front());
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
    default:
      return;
  }
}

IssueAnswer Aiv::State::wait_all(std::int64_t cycle) {
  std::int64_t done = 0;
  if (!idle(done)) return park(ParkedOn::all_pipes, 0, cycle);
  if (hazards) hazards->all_waited();
  return IssueAnswer::at(std::max(cycle, done));
}

IssueAnswer Aiv::State::scalar_set(const PipeInstruction& in, std::uint32_t number, std::int64_t cycle) {
  if (flag_full(number)) return park(ParkedOn::flag_room, number, cycle);
  if (hazards) hazards->flag_set(kPipeS, number);
  set_flag(number, cycle + 1, in.pc);
  advance(0);
  return IssueAnswer::at(cycle + 1);
}

IssueAnswer Aiv::State::scalar_wait(std::uint32_t number, std::int64_t cycle) {
  Flag& f = flag(number);
  if (f.count == 0) return park(ParkedOn::flag, number, cycle);
  const std::int64_t done = std::max(cycle, f.front());
  statistics.scalar_flag_waits += done > cycle ? 1 : 0;
  consume_flag(number, done, parked_pc);
  if (hazards) hazards->flag_waited(kPipeS, number);
  advance(0);
  return IssueAnswer::at(done + 1);
}

IssueAnswer Aiv::State::cross_core_wait(const PipeInstruction& in, std::int64_t cycle) {
  if (in.a > 15) fault(in.pc, "cross-core wait: flag 0..15");
  parked_pc = in.pc;
  if (cross_count[in.a] == 0) return park(ParkedOn::cross_core, static_cast<std::uint32_t>(in.a), cycle);
  --cross_count[in.a];
  return IssueAnswer::at(std::max(cycle, cross_cycle[in.a]) + 1);
}

// The turn that starts at this mark reads the range again; it need not run while nothing has been written
// since the turn before started.
IssueAnswer Aiv::State::poll_mark(const PipeInstruction& in, std::int64_t cycle) {
  const IssueAnswer next = IssueAnswer::at(cycle + 1);
  if (!options.elide_polls || !cm384_is_gm(in.a) || !socket.is_local(in.a)) return next;
  const std::uint64_t offset = cm384_gm_offset(in.a);
  parked_pc = in.pc;
  if (!watching || offset != watch_offset || in.b != watch_bytes) {
    watching = true;
    watch_offset = offset;
    watch_bytes = in.b;
    socket.watch(core, offset, in.b);
  } else if (!watched_written && cycle > mark_cycle) {
    poll_period = cycle - mark_cycle;
    return park(ParkedOn::poll, 0, cycle);
  }
  watched_written = false;
  mark_cycle = cycle;
  return next;
}

void Aiv::watched_write(Time at) {
  State& s = *state_;
  s.watched_written = true;
  if (s.parked_on != ParkedOn::poll) return;
  const std::int64_t late = std::max<std::int64_t>(0, s.tick(at) - s.parked_cycle);
  const std::int64_t turns = (late + s.poll_period - 1) / s.poll_period;
  s.statistics.skipped_polls += static_cast<std::uint64_t>(turns);
  s.wake(s.parked_cycle + turns * s.poll_period);
}

void Aiv::cross_core_flag(std::uint32_t flag, int count, Time at) {
  State& s = *state_;
  const int sum = s.cross_count[flag] + count;
  if (sum > 15) throw MachineError(fmt::format("cross-core flag {}: more than 15 sets outstanding", flag));
  s.cross_count[flag] = static_cast<std::uint8_t>(sum);
  s.cross_cycle[flag] = std::max(s.cross_cycle[flag], s.tick(at));
  s.wake_if_possible();
}

IssueAnswer Aiv::drain(std::int64_t cycle) {
  return state_->wait_all(cycle);
}

void Aiv::reset() {
  State& s = *state_;
  ++s.epoch;
  for (PipeQueue& q : s.queue) q = PipeQueue{};
  s.vector_free = s.vector_complete = 0;
  s.mask_low = s.mask_high = ~std::uint64_t{0};
  s.source_stride = s.destination_stride = 0;
  s.allocate = true;
  for (auto& group : s.flags) group.reset();
  s.cross_count.fill(0);
  s.cross_cycle.fill(0);
  s.parked_on = ParkedOn::nothing;
  if (s.watching) s.socket.watch(s.core, 0, 0);
  s.watching = s.watched_written = false;
  s.mte2.reset();
  s.mte3.reset();
  if (s.hazards) s.hazards = std::make_unique<HazardChecker>();
}

const void* Aiv::engine_state(std::size_t what) const {
  static_assert(State::kMte2Request == 0 && State::kMte3Request == 1);
  return what == State::kMte2Request ? &state_->mte2 : &state_->mte3;
}

UBuffer& Aiv::ubuffer() {
  return state_->ubuffer;
}
const UBuffer& Aiv::ubuffer() const {
  return state_->ubuffer;
}

void Aiv::scalar_access(std::uint32_t offset, std::uint32_t bytes, bool write, std::uint64_t pc) {
  if (!state_->hazards) return;
  state_->hazards->begin_access(kPipeS);
  state_->hazards->access(kPipeS, offset, bytes, write, pc);
}

}  // namespace cm384::npu
