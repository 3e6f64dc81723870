#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "firmware/abi/isa.h"
#include "firmware/abi/memory_map.h"
#include "npu_core/vector/aiv_state.h"
#include "npu_core/vector/bank_conflicts.h"
#include "sim/error.h"

namespace cm384::npu {
namespace {

MteCopy copy_of(const QueuedInstruction& q) {
  const PipeInstruction& in = q.instruction;
  const bool reads = in.operation == CM384_MTE_GM_TO_UB;
  const std::uint64_t gm = reads ? in.b : in.a;
  const std::uint64_t ub = reads ? in.a : in.b;
  const std::uint64_t gm_stride = reads ? q.low : q.high;
  const std::uint64_t ub_stride = reads ? q.high : q.low;
  MteCopy c;
  c.gm = gm;
  c.burst_bytes = static_cast<std::uint32_t>(in.c);
  c.bursts = static_cast<std::uint32_t>(in.c >> 32);
  c.allocate = q.allocate;
  c.pc = in.pc;
  constexpr sim::Operation kOperations[] = {sim::Operation::read, sim::Operation::write,
                                            sim::Operation::atomic_add_s32, sim::Operation::atomic_add_f32};
  c.operation = kOperations[in.operation];
  if (!cm384_is_gm(gm)) {
    throw MachineError(fmt::format("pc {:#x}: copy with {:#x}, which is no global address", in.pc, gm));
  }
  if (c.burst_bytes == 0 || c.bursts == 0 || c.bursts > 65535) {
    fault(in.pc, "copy of 0 bytes or of 0 or more than 65535 bursts");
  }
  if (ub % sim::kBlockBytes != 0 || (c.bursts > 1 && ub_stride % sim::kBlockBytes != 0)) {
    fault(in.pc, "copy: UBuffer offset and stride must be multiples of 32");
  }
  if (in.operation >= CM384_MTE_UB_TO_GM_ADD_S32 && (gm % 4 != 0 || c.burst_bytes % 4 != 0)) {
    fault(in.pc, "atomic add: address and burst must be multiples of 4");
  }
  if (c.bursts > 1) {
    c.gm_stride = static_cast<std::int64_t>(gm_stride);
    c.ub_stride = static_cast<std::uint32_t>(std::min<std::uint64_t>(ub_stride, kUBufferBytes));
  }
  if (ub >= kUBufferBytes || c.burst_bytes > kUBufferBytes ||
      ub + std::uint64_t{c.bursts - 1} * c.ub_stride + c.padded() > kUBufferBytes) {
    throw MachineError(
        fmt::format("pc {:#x}: copy of {} x {} B at UBuffer offset {:#x} leaves the UBuffer (192 KiB)", in.pc,
                    c.bursts, c.burst_bytes, ub));
  }
  c.ub = static_cast<std::uint32_t>(ub);
  return c;
}

}  // namespace

void Aiv::State::advance(std::uint32_t pipes) {
  pending |= pipes;
  while (pending != 0) {
    const int pipe = std::countr_zero(pending);
    pending &= pending - 1;
    pipe == kPipeV ? run_vector() : run_mte(pipe);
  }
  if (parked_on != ParkedOn::nothing) wake_if_possible();
}

void Aiv::State::leave(int pipe, std::int64_t cycle) {
  PipeQueue& q = queue[pipe];
  q.left[q.head % depth] = cycle;
  q.last_pc = q.front().instruction.pc;
  ++q.head;
  ++progress;
}

void Aiv::State::run_vector() {
  PipeQueue& q = queue[kPipeV];
  while (!q.empty()) {
    QueuedInstruction& entry = q.front();
    const PipeInstruction& in = entry.instruction;
    if (in.instruction_class != CM384_CLASS_SYNC) {
      start_vector(entry);
      continue;
    }
    const std::int64_t start = std::max(entry.arrival, q.ready);
    if (in.operation == CM384_WAIT_FLAG) {
      if (!wait_flag(kPipeV, entry)) return;
      continue;
    }
    if (in.operation == CM384_SET_FLAG && flag_full(flag_number(in))) return;
    if (hazards) hazards->started(kPipeV);
    const std::int64_t complete = std::max(vector_complete, start + 1);
    if (in.operation == CM384_SET_FLAG) {
      if (hazards) hazards->flag_set(kPipeV, flag_number(in));
      set_flag(flag_number(in), complete, in.pc);
      q.ready = start + 1;
      leave(kPipeV, start);
    } else if (in.operation == CM384_CROSS_CORE_SET) {
      fire_cross_core(in.a, complete);
      q.ready = start + 1;
      leave(kPipeV, start);
    } else {  // barrier
      q.ready = complete;
      leave(kPipeV, complete - 1);
    }
  }
}

void Aiv::State::start_vector(QueuedInstruction& entry) {
  const VectorInstruction v = decode_vector(entry.instruction, entry.low, entry.high);
  const VectorCostTable::Row& row = costs[v.cost];
  PipeQueue& q = queue[kPipeV];
  if (hazards) {
    hazards->started(kPipeV);
    check_hazards(v);
  }
  // The head overlaps with what the unit still works on: it is paid in full by an empty pipe alone.
  const std::int64_t start = std::max({entry.arrival, q.ready, vector_free - row.head});
  const std::int64_t conflicts = bank_conflict_cycles(v);
  const std::int64_t cycles = occupancy(row, v.repeats, conflicts);
  vector_free = start + row.head + cycles;
  vector_complete = std::max(vector_complete, vector_free + row.tail);
  q.ready = start + 1;
  perform(v, ubuffer);
  ++statistics.vector_instructions;
  statistics.vector_repeats += v.repeats;
  statistics.vector_busy_cycles += static_cast<std::uint64_t>(cycles);
  statistics.bank_conflict_cycles += static_cast<std::uint64_t>(conflicts);
  leave(kPipeV, start);
}

bool Aiv::State::wait_flag(int pipe, const QueuedInstruction& entry) {
  const std::uint32_t number = flag_number(entry.instruction);
  const Flag& f = flag(number);
  if (f.count == 0) return false;
  PipeQueue& q = queue[pipe];
  if (hazards) {
    hazards->started(pipe);
    hazards->flag_waited(pipe, number);
  }
  const std::int64_t start = std::max(entry.arrival, q.ready);
  q.ready = std::max(start + 1, f.front());
  std::uint64_t& waited = pipe == kPipeV      ? statistics.vector_wait_cycles
                          : pipe == kPipeMte2 ? statistics.mte2_wait_cycles
                                              : statistics.mte3_wait_cycles;
  waited += static_cast<std::uint64_t>(q.ready - start - 1);
  consume_flag(number, q.ready, entry.instruction.pc);
  leave(pipe, q.ready - 1);
  return true;
}

// Flags and cross-core sets whose copies are known to be complete.
void Aiv::State::retire(int pipe) {
  MteEngine& e = engine(pipe);
  while (const MteEngine::Mark* m = e.front_mark()) {
    const std::int64_t cycle = std::max(tick(e.complete()), m->cycle);
    if (m->kind == kSetFlag) {
      const auto number = static_cast<std::uint32_t>(m->operand);
      if (flag_full(number)) return;
      set_flag(number, cycle, m->pc);
    } else {
      fire_cross_core(m->operand, cycle);
    }
    e.pop_mark();
    ++progress;
  }
}

void Aiv::State::run_mte(int pipe) {
  PipeQueue& q = queue[pipe];
  MteEngine& e = engine(pipe);
  for (retire(pipe); !q.empty(); retire(pipe)) {
    const QueuedInstruction& entry = q.front();
    const PipeInstruction& in = entry.instruction;
    const std::int64_t start = std::max(entry.arrival, q.ready);
    if (in.instruction_class == CM384_CLASS_MTE) {
      if (e.busy()) return;
      start_copy(pipe, entry);
      continue;
    }
    if (in.operation == CM384_WAIT_FLAG) {
      if (!wait_flag(pipe, entry)) return;
      continue;
    }
    if (in.operation == CM384_PIPE_BARRIER) {
      if (e.busy() || !e.all_complete()) return;
      q.ready = std::max(start + 1, tick(e.complete()));
      if (hazards) hazards->started(pipe);
      leave(pipe, q.ready - 1);
      continue;
    }
    if (hazards) hazards->started(pipe);
    const bool set = in.operation == CM384_SET_FLAG;
    if (hazards && set) hazards->flag_set(pipe, flag_number(in));
    e.mark(set ? kSetFlag : kCrossSet, set ? flag_number(in) : in.a, in.pc, start + 1);
    q.ready = start + 1;
    leave(pipe, start);
  }
}

void Aiv::State::start_copy(int pipe, const QueuedInstruction& entry) {
  const MteCopy copy = copy_of(entry);
  PipeQueue& q = queue[pipe];
  MteEngine& e = engine(pipe);
  if (hazards) {
    hazards->started(pipe);
    check_hazards(pipe, copy);
  }
  // Set-up begins as soon as the instruction may start, behind the requests of the one before.
  const std::int64_t eligible = std::max(entry.arrival, q.ready);
  q.ready = eligible + 1;
  (pipe == kPipeMte2 ? statistics.mte2_instructions : statistics.mte3_instructions) += 1;
  leave(pipe, std::max(eligible, tick(e.last_request())));
  e.start(copy, clock.start(eligible + setup[pipe == kPipeMte2 ? 0 : 1]));
}

bool Aiv::State::idle(std::int64_t& cycle) {
  for (int p = kPipeV; p < kPipes; ++p) {
    if (!queue[p].empty()) return false;
  }
  if (mte2.busy() || mte3.busy() || !mte2.all_complete() || !mte3.all_complete()) return false;
  cycle = std::max({vector_complete, queue[kPipeV].ready, queue[kPipeMte2].ready, queue[kPipeMte3].ready,
                    tick(mte2.complete()), tick(mte3.complete())});
  return true;
}

void Aiv::State::check_hazards(const VectorInstruction& v) {
  hazards->begin_access(kPipeV);
  const auto check = [&](bool write) {
    return [this, &v, write](std::uint32_t offset, std::uint32_t bytes) {
      hazards->access(kPipeV, offset, bytes, write, v.pc);
      return false;
    };
  };
  for (const VectorOperand& source : v.sources) source.any_range(check(false));
  if (v.reads_destination) v.destination.any_range(check(false));
  written_by(v, ubuffer).any_range(check(true));
}

void Aiv::State::check_hazards(int pipe, const MteCopy& copy) {
  hazards->begin_access(pipe);
  for (std::uint32_t b = 0; b < copy.bursts; ++b) {
    hazards->access(pipe, copy.ub + b * copy.ub_stride, copy.padded(), pipe == kPipeMte2, copy.pc);
  }
}

void Aiv::handle(std::uint32_t what, std::uint64_t argument, Time now) {
  State& s = *state_;
  switch (what) {
    case State::kMte2Request:
    case State::kMte3Request: {
      const int pipe = what == State::kMte2Request ? kPipeMte2 : kPipeMte3;
      MteEngine& e = s.engine(pipe);
      if (argument != e.epoch()) return;
      if (e.request(now)) s.advance(1u << pipe);
      return;
    }
    case State::kFlagCheck:
      if (s.timely(argument)) s.check_flag(static_cast<std::uint32_t>(argument & 0xffff), now);
      return;
    case State::kCrossCoreSet:
      if (s.timely(argument)) {
        s.socket.cross_core_set(s.core, static_cast<std::uint32_t>(argument & 0xff),
                                static_cast<std::uint32_t>(argument >> 8 & 0xff));
      }
      return;
    default:
      return;
  }
}

void Aiv::completed(const sim::Completion& completion, Time now) {
  State& s = *state_;
  const int pipe = (completion.tag & 0xffff) >= State::kMte3Tags ? kPipeMte3 : kPipeMte2;
  s.engine(pipe).completed(completion, now);
  s.advance(1u << pipe);
}

}  // namespace cm384::npu
