// How what is queued in the pipes gets its time stamps.
#include <algorithm>
#include <bit>

#include "firmware/abi/isa.h"
#include "npu_core/pipes/pipe_set.h"

namespace cm384::npu {

void PipeSet::advance(std::uint32_t which) {
  pending |= which;
  while (pending != 0) {
    const int pipe = std::countr_zero(pending);
    pending &= pending - 1;
    engine[pipe] == nullptr ? run_work(pipe) : run_copies(pipe);
  }
  if (parked_on != ParkedOn::nothing) wake_if_possible();
}

void PipeSet::retire(int pipe, std::int64_t cycle) {
  queue[pipe].pop(cycle);
}

void PipeSet::step(PipeStep::Kind which, int pipe, const QueuedInstruction& q, std::int64_t own,
                   std::int64_t start, std::int64_t end, std::int64_t left, const MteCopy* copy,
                   const VectorWork& vector) const {
  if (observers.empty()) return;
  const std::uint32_t waited = which == PipeStep::Kind::wait_flag ? flag_number(q.instruction) : 0;
  const PipeStep made{which,  pipe,           own,   start,  end,  left,
                      waited, &q.instruction, q.low, q.high, copy, vector};
  for (PipeObserver* o : observers) o->left(made);
}

// A pipe whose unit works by time stamps alone.
void PipeSet::run_work(int pipe) {
  PipeQueue& q = queue[pipe];
  while (!q.empty()) {
    QueuedInstruction& entry = q.front();
    const PipeInstruction& in = entry.instruction;
    if (in.instruction_class != CM384_CLASS_SYNC) {
      start_work(pipe, entry);
      continue;
    }
    const std::int64_t start = std::max(entry.cycle, q.ready);
    if (in.operation == CM384_WAIT_FLAG) {
      if (!wait_flag(pipe, entry)) return;
      continue;
    }
    if (in.operation == CM384_SET_FLAG && flag_full(flag_number(in))) return;
    if (hazards) hazards->started(pipe);
    const std::int64_t complete = std::max(q.unit_complete, start + 1);
    if (in.operation == CM384_SET_FLAG) {
      if (hazards) hazards->flag_set(pipe, flag_number(in));
      step(PipeStep::Kind::set_flag, pipe, entry, q.ready, start, start + 1, start);
      for (PipeObserver* o : observers) o->flag_set(pipe, flag_number(in), complete);
      set_flag(flag_number(in), complete);
      q.ready = start + 1;
      retire(pipe, start);
    } else if (in.operation == CM384_CROSS_CORE_SET) {
      step(PipeStep::Kind::cross_set, pipe, entry, q.ready, start, start + 1, start);
      fire_cross_core(pipe, in.a, complete);
      q.ready = start + 1;
      retire(pipe, start);
    } else {  // barrier
      if (hazards) hazards->barrier(pipe);
      step(PipeStep::Kind::barrier, pipe, entry, q.ready, start, complete, complete - 1);
      q.ready = complete;
      retire(pipe, complete - 1);
    }
  }
}

bool PipeSet::wait_flag(int pipe, const QueuedInstruction& entry) {
  const std::uint32_t number = flag_number(entry.instruction);
  const Flag& f = flag(number);
  if (f.count == 0) return false;
  PipeQueue& q = queue[pipe];
  if (hazards) {
    hazards->started(pipe);
    hazards->flag_waited(pipe, number);
  }
  const std::int64_t start = std::max(entry.cycle, q.ready);
  const std::int64_t gone_on = std::max(start + 1, f.cycle);
  step(PipeStep::Kind::wait_flag, pipe, entry, q.ready, start, gone_on, gone_on - 1);
  q.ready = gone_on;
  const auto waited = static_cast<std::uint64_t>(q.ready - start - 1);
  *wait_cycles[pipe] += waited;
  if (waits != nullptr) {
    // Only while the pipe had nothing left to do.
    const std::int64_t idle_from = engine[pipe] == nullptr ? q.unit_free
                                   : engine[pipe]->busy()  ? q.ready
                                                           : tick(engine[pipe]->last_request());
    waits[pipe][static_cast<std::size_t>(flag_source(number))] +=
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, q.ready - std::max(start + 1, idle_from)));
  }
  consume_flag(number);
  retire(pipe, q.ready - 1);
  return true;
}

// Flags and cross-core sets whose copies are known to be complete.
void PipeSet::retire(int pipe) {
  MteEngine& e = *engine[pipe];
  while (const MteEngine::Mark* m = e.front_mark()) {
    const std::int64_t cycle = std::max(tick(e.complete()), m->cycle);
    if (m->kind == kOrdered) {
      order->completed(pipe, cycle);
    } else if (m->kind == kSetFlag) {
      const auto number = static_cast<std::uint32_t>(m->operand);
      if (flag_full(number)) return;
      for (PipeObserver* o : observers) o->flag_set(pipe, number, cycle);
      set_flag(number, cycle);
    } else {
      fire_cross_core(pipe, m->operand, cycle);
    }
    e.pop_mark();
  }
}

void PipeSet::run_copies(int pipe) {
  PipeQueue& q = queue[pipe];
  MteEngine& e = *engine[pipe];
  for (retire(pipe); !q.empty(); retire(pipe)) {
    const QueuedInstruction& entry = q.front();
    const PipeInstruction& in = entry.instruction;
    const std::int64_t start = std::max(entry.cycle, q.ready);
    if (in.instruction_class != CM384_CLASS_SYNC) {
      if (e.busy()) return;
      copies(in) ? start_copy(pipe, entry) : start_work(pipe, q.front());
      continue;
    }
    if (in.operation == CM384_WAIT_FLAG) {
      if (!wait_flag(pipe, entry)) return;
      continue;
    }
    if (in.operation == CM384_PIPE_BARRIER) {
      if (e.busy() || !e.all_complete()) return;
      const std::int64_t gone_on = std::max(start + 1, tick(e.complete()));
      step(PipeStep::Kind::barrier, pipe, entry, q.ready, start, gone_on, gone_on - 1);
      q.ready = gone_on;
      if (hazards) {
        hazards->started(pipe);
        hazards->barrier(pipe);
      }
      retire(pipe, q.ready - 1);
      continue;
    }
    if (hazards) hazards->started(pipe);
    const bool set = in.operation == CM384_SET_FLAG;
    if (hazards && set) hazards->flag_set(pipe, flag_number(in));
    step(set ? PipeStep::Kind::set_flag : PipeStep::Kind::cross_set, pipe, entry, q.ready, start, start + 1,
         start);
    e.mark(set ? kSetFlag : kCrossSet, set ? flag_number(in) : in.a, in.pc, start + 1);
    q.ready = start + 1;
    retire(pipe, start);
  }
}

// The last request of the copy in hand has left.
void PipeSet::issued(int pipe, Time now) {
  for (PipeObserver* o : observers) o->issued(pipe, tick(now));
  advance(1u << pipe);
}

void PipeSet::start_copy(int pipe, const QueuedInstruction& entry) {
  PipeQueue& q = queue[pipe];
  MteEngine& e = *engine[pipe];
  if (hazards) hazards->started(pipe);
  const MteCopy copy = prepare_copy(pipe, entry);
  // Set-up begins as soon as the instruction may start, behind the requests of the one before.
  const std::int64_t eligible = std::max(entry.cycle, q.ready);
  const std::int64_t first = eligible + setup[pipe];
  const std::int64_t left = std::max(eligible, tick(e.last_request()));
  step(PipeStep::Kind::copy, pipe, entry, q.ready, eligible, first, left, &copy);
  q.ready = eligible + 1;
  if (order) order->left(pipe, touched(pipe, entry), LocalOrder::kUnknown, entry.cycle);
  retire(pipe, left);
  e.start(copy, clock.start(first));
  if (order) e.mark(kOrdered, 0, copy.pc, 0);
}

bool PipeSet::idle(std::int64_t& cycle) {
  for (int p = 1; p < pipes; ++p) {
    if (!queue[p].empty()) return false;
    if (engine[p] != nullptr && (engine[p]->busy() || !engine[p]->all_complete())) return false;
  }
  for (int p = 1; p < pipes; ++p) {
    cycle = std::max({cycle, queue[p].unit_complete, queue[p].ready});
    if (engine[p] != nullptr) cycle = std::max(cycle, tick(engine[p]->complete()));
  }
  return true;
}

void PipeSet::handle(std::uint32_t what, std::uint64_t argument, Time now) {
  switch (what) {
    case kEngine0:
    case kEngine1:
    case kEngine2: {
      const int pipe = engine_pipe[what];
      MteEngine& e = *engine[pipe];
      if (argument != e.epoch()) return;
      if (e.request(now)) issued(pipe, now);
      return;
    }
    case kCrossCoreSet:
      if (timely(argument)) {
        socket.cross_core_set(core, static_cast<std::uint32_t>(argument & 0xff),
                              static_cast<std::uint32_t>(argument >> 8 & 0xff));
      }
      return;
    default:
      return;
  }
}

void PipeSet::completed(const sim::Completion& completion, Time now) {
  const int pipe = engine_pipe[(completion.tag & 0xffff) / kEngineTags];
  if (engine[pipe]->completed(completion, now)) {
    issued(pipe, now);
  } else {
    advance(1u << pipe);
  }
}

}  // namespace cm384::npu
