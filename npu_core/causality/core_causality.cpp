#include "npu_core/causality/core_causality.h"

#include <utility>

#include "npu_core/pipes/mte_engine.h"

namespace cm384::npu {

CoreCausality::CoreCausality(const Clock& clock, const PipeShape& shape) : clock_(clock), shape_(shape) {
  engine_of_.fill(-1);
  for (std::size_t n = 0; n < shape.engine_pipe.size(); ++n) {
    if (shape.engine_pipe[n] != 0)
      engine_of_[static_cast<std::size_t>(shape.engine_pipe[n])] = static_cast<std::int8_t>(n);
  }
}

void CoreCausality::begin(const Moment& start) {
  *this = CoreCausality(clock_, shape_);
  flags_.resize(static_cast<std::size_t>(shape_.pipes * shape_.pipes) * 8);
  scalar_ = start;
}

const Moment& CoreCausality::start_transaction(std::size_t engine, bool reads, sim::TransactionId id) {
  Engine& e = engine_[engine];
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
  scalar_.join(Moment(cycle, fill));
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
    e.complete.join(Moment(clock_.tick_at_or_after(c.completed),
                           {c.id, c.completed.ps, 0, DependencyKind::completion, class_of(e)}));
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
    q.arrivals.resize(shape_.depth);
    q.places.resize(shape_.depth);
  }
  const std::size_t slot = std::exchange(q.tail, next(q.tail));
  reaches(from);
  if (place + kRecent > arrival) scalar_.join(q.places[slot]);
  scalar_.advance(arrival);
  q.arrivals[slot] = scalar_;
}

void CoreCausality::left(const PipeStep& step) {
  Queue& q = queue_[static_cast<std::size_t>(step.pipe)];
  const std::size_t slot = std::exchange(q.head, next(q.head));
  Moment& own = pipe_[static_cast<std::size_t>(step.pipe)];
  own.advance(step.own);
  own.join(q.arrivals[slot]);
  own.advance(step.start);
  Moment& place = q.places[slot];
  Engine* const e = engine(step.pipe);
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
      if (e != nullptr) {
        fold(*e, e->taken);
        own.join(e->complete);
      }
      own.advance(step.end);
      break;
    case PipeStep::Kind::set_flag:
    case PipeStep::Kind::cross_set:
      if (e != nullptr) e->marks.push_back({own, e->taken});
      break;
    case PipeStep::Kind::copy:
      e->copies.push_back({++e->taken, 0, Time::never()});
      e->next = own;
      e->next.advance(step.end);
      e->ready = clock_.start(step.end);
      place = own;
      if (e->any_issued) place.join(Moment(clock_.tick_at_or_after(Time{e->issued.at_ps}), e->issued));
      place.advance(step.left);
      return;
    case PipeStep::Kind::work:
      break;
  }
  place = own;
  place.advance(step.left);
}

void CoreCausality::issued(int pipe, std::int64_t cycle) {
  Engine& e = *engine(pipe);
  if (e.copies.empty()) return;
  e.any_issued = true;
  e.issued = {e.copies.back().id, clock_.start(cycle).ps, 0, DependencyKind::issue, class_of(e)};
}

// The moment of what a pipe sets at `cycle`.
Moment CoreCausality::fired(int pipe, std::int64_t cycle) {
  if (Engine* const e = engine(pipe)) {
    if (e->marks.empty()) return {};
    Moment moment = e->marks.front().moment;
    fold(*e, e->marks.front().copies);
    e->marks.pop_front();
    moment.join(e->complete);
    moment.advance(cycle);
    return moment;
  }
  Moment moment = pipe == kPipeS ? scalar_ : pipe_[static_cast<std::size_t>(pipe)];
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
  scalar_.join(Moment(clock_.tick_at_or_after(Time{cause.at_ps}), cause));
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
  for (int pipe = 1; pipe < shape_.pipes; ++pipe) {
    if (Engine* const e = engine(pipe)) {
      fold(*e, e->taken);
      scalar_.join(e->complete);
    } else {
      scalar_.join(pipe_[static_cast<std::size_t>(pipe)]);
    }
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
