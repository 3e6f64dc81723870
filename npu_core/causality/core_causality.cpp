#include "npu_core/causality/core_causality.h"

#include <cassert>

#include "npu_core/pipes/mte_engine.h"
#include "npu_core/vector/vector_pipes.h"

namespace cm384::npu {
namespace {

constexpr std::size_t kFlags = 4 * 4 * 8;

}  // namespace

void CoreCausality::begin(const Moment& start) {
  *this = CoreCausality(clock_, depth_);
  flags_.resize(kFlags);
  scalar_ = start;
}

CoreCausality::Engine& CoreCausality::engine(int pipe) {
  return engine_[pipe == kPipeMte2 ? 0 : 1];
}

const Moment& CoreCausality::start_transaction(bool reads, sim::TransactionId id) {
  Engine& e = engine_[reads ? 0 : 1];
  if (!e.copies.empty()) e.copies.back().id = id;
  if (!reads) writing_ = id;
  polled_ = reads && woken_;
  if (reads) woken_ = false;
  return e.next;
}

const Moment& CoreCausality::start_fill(std::int64_t cycle) {
  scalar_.advance(cycle);
  return scalar_;
}

void CoreCausality::end_fill(const Cause& fill, std::int64_t cycle) {
  Moment done;
  done.cycle = cycle;
  done.add(fill);
  scalar_.join(done);
}

void CoreCausality::transaction_completed(sim::TransactionId id, Time at) {
  for (Engine& e : engine_) {
    for (Copy& c : e.copies) {
      if (c.id != id) continue;
      c.completed = at;
      return;
    }
  }
}

void CoreCausality::fold(Engine& e, std::uint64_t copies) {
  while (!e.copies.empty() && e.copies.front().number <= copies) {
    const Copy& c = e.copies.front();
    if (c.completed == Time::never()) return;
    Moment m;
    m.cycle = clock_.tick_at_or_after(c.completed);
    m.add({c.id, c.completed.ps, 0, DependencyKind::completion,
           &e == engine_.data() ? Cause::Class::mte2 : Cause::Class::mte3});
    e.complete.join(m);
    e.copies.pop_front();
  }
}

// By its own work the scalar unit comes to `cycle`, unless it was parked: then something else brought it
// there.
void CoreCausality::reaches(std::int64_t cycle) {
  if (!parked_) scalar_.advance(cycle);
  parked_ = false;
}

void CoreCausality::scalar_parked(std::int64_t cycle) {
  if (!parked_) scalar_.advance(cycle);
  parked_ = true;
}

void CoreCausality::pushed(int pipe, std::int64_t from, std::int64_t place, std::int64_t arrival) {
  // A place that came free long before has nothing to say of the present.
  constexpr std::int64_t kRecent = 1024;
  Queue& q = queue_[static_cast<std::size_t>(pipe)];
  if (q.arrivals.empty()) {
    q.arrivals.resize(depth_);
    q.places.resize(depth_);
  }
  const std::size_t slot = q.tail++ % depth_;
  reaches(from);
  if (place + kRecent > arrival) scalar_.join(q.places[slot]);
  scalar_.advance(arrival);
  q.arrivals[slot] = scalar_;
}

void CoreCausality::left(const PipeStep& step) {
  Queue& q = queue_[static_cast<std::size_t>(step.pipe)];
  const std::size_t slot = q.head++ % depth_;
  Moment& own = pipe_[static_cast<std::size_t>(step.pipe)];
  own.advance(step.own);
  own.join(q.arrivals[slot]);
  own.advance(step.start);
  Moment& place = q.places[slot];
  switch (step.kind) {
    case PipeStep::Kind::wait_flag: {
      auto& sets = flags_[step.flag];
      if (!sets.empty()) {
        own.join(sets.front());
        sets.pop_front();
      }
      own.advance(step.end);
      break;
    }
    case PipeStep::Kind::barrier:
      if (step.pipe != kPipeV) {
        fold(engine(step.pipe), engine(step.pipe).taken);
        own.join(engine(step.pipe).complete);
      }
      own.advance(step.end);
      break;
    case PipeStep::Kind::set_flag:
    case PipeStep::Kind::cross_set:
      if (step.pipe != kPipeV) engine(step.pipe).marks.push_back({own, engine(step.pipe).taken});
      break;
    case PipeStep::Kind::copy: {
      Engine& e = engine(step.pipe);
      e.copies.push_back({++e.taken, 0, Time::never()});
      e.next = own;
      e.next.advance(step.end);
      ready_[step.pipe == kPipeMte2 ? 0 : 1] = clock_.start(step.end);
      place = own;
      if (e.any_issued) {
        Moment before;
        before.cycle = clock_.tick_at_or_after(Time{e.issued.at_ps});
        before.add(e.issued);
        place.join(before);
      }
      place.advance(step.left);
      return;
    }
    case PipeStep::Kind::vector:
      break;
  }
  place = own;
  place.advance(step.left);
}

void CoreCausality::issued(int pipe, std::int64_t cycle) {
  Engine& e = engine(pipe);
  if (e.copies.empty()) return;
  e.any_issued = true;
  e.issued = {e.copies.back().id, clock_.start(cycle).ps, 0, DependencyKind::issue,
              pipe == kPipeMte2 ? Cause::Class::mte2 : Cause::Class::mte3};
}

// The moment of what a pipe sets at `cycle`.
Moment CoreCausality::fired(int pipe, std::int64_t cycle) {
  if (pipe == kPipeMte2 || pipe == kPipeMte3) {
    Engine& e = engine(pipe);
    if (e.marks.empty()) return {};
    Moment moment = e.marks.front().moment;
    fold(e, e.marks.front().copies);
    e.marks.pop_front();
    moment.join(e.complete);
    moment.advance(cycle);
    return moment;
  }
  Moment moment = pipe == kPipeS ? scalar_ : pipe_[kPipeV];
  moment.advance(cycle);
  return moment;
}

void CoreCausality::flag_set(int pipe, std::uint32_t flag, std::int64_t cycle) {
  if (pipe == kPipeS) scalar_.advance(cycle - 1);
  flags_[flag].push_back(fired(pipe, cycle));
}

void CoreCausality::cross_core_set(int pipe, std::uint32_t, std::uint32_t flag, std::int64_t cycle) {
  if (pipe == kPipeS) scalar_.advance(cycle - 1);
  set_[flag].push_back(fired(pipe, cycle));
}

Moment CoreCausality::take_cross_core_set(std::uint32_t flag) {
  if (set_[flag].empty()) return {};
  const Moment moment = set_[flag].front();
  set_[flag].pop_front();
  return moment;
}

void CoreCausality::poll_woken_by(const Cause& cause) {
  if (cause.on == 0 || !parked_) return;
  Moment m;
  m.cycle = clock_.tick_at_or_after(Time{cause.at_ps});
  m.add(cause);
  scalar_.join(m);
}

void CoreCausality::scalar_waited_for_flag(std::uint32_t flag, std::int64_t from, std::int64_t to) {
  reaches(from);
  auto& sets = flags_[flag];
  if (!sets.empty()) {
    scalar_.join(sets.front());
    sets.pop_front();
  }
  scalar_.advance(to);
}

void CoreCausality::scalar_waited_for_cross_core(std::uint32_t flag, std::int64_t from, std::int64_t to) {
  reaches(from);
  if (!arrived_[flag].empty()) {
    scalar_.join(arrived_[flag].front());
    arrived_[flag].pop_front();
  }
  scalar_.advance(to);
}

void CoreCausality::scalar_waited_for_all(std::int64_t from, std::int64_t to) {
  reaches(from);
  scalar_.join(pipe_[kPipeV]);
  for (const int pipe : {static_cast<int>(kPipeMte2), static_cast<int>(kPipeMte3)}) {
    fold(engine(pipe), engine(pipe).taken);
    scalar_.join(engine(pipe).complete);
  }
  scalar_.advance(to);
}

// The turn of the loop comes up to a period after the write that ends the wait.
void CoreCausality::scalar_polled(std::int64_t, std::int64_t to) {
  scalar_.advance(to);
  parked_ = false;
  woken_ = true;
}

}  // namespace cm384::npu
