#include "npu_core/causality/core_causality.h"

namespace cm384::npu {

CoreCausality::CoreCausality(const Clock& clock, const CoreShape& shape)
    : PipeAutomaton(shape), clock_(clock), classes_(shape.classes) {}

void CoreCausality::begin(const Moment& start) {
  PipeAutomaton::begin(start, Moment());
  ready_ = {};
  woken_ = polled_ = false;
  writing_ = 0;
}

const Moment& CoreCausality::start_transaction(std::size_t engine, bool reads, sim::TransactionId id) {
  Engine& e = engine_[engine];
  if (!e.copies.empty()) e.copies.back().id = id;
  if (!reads) writing_ = id;
  polled_ = reads && woken_;
  if (reads) woken_ = false;
  return e.ready;
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
    for (CausalCopy& c : e.copies) {
      if (c.id != id) continue;
      c.completed = at;
      return;
    }
  }
}

Moment CoreCausality::completion(const CausalCopy& c) const {
  return Moment(clock_.tick_at_or_after(c.completed),
                {c.id, c.completed.ps, 0, DependencyKind::completion, c.of});
}

void CoreCausality::copy_taken(std::size_t engine, const PipeStep& step) {
  ready_[engine] = clock_.start(step.end);
  engine_[engine].copies.back().of = classes_[engine];
}

void CoreCausality::issued(int pipe, std::int64_t cycle) {
  Engine& e = *engine(pipe);
  if (e.copies.empty()) return;
  const CausalCopy& copy = e.copies.back();
  const Time at = clock_.start(cycle);
  e.any_issued = true;
  e.issued = Moment(clock_.tick_at_or_after(at), {copy.id, at.ps, 0, DependencyKind::issue, copy.of});
}

void CoreCausality::poll_woken_by(const Cause& cause) {
  if (cause.on == 0 || !parked_) return;
  scalar_.join(Moment(clock_.tick_at_or_after(Time{cause.at_ps}), cause));
}

// The turn of the loop comes up to a period after the write that ends the wait.
void CoreCausality::scalar_polled(std::int64_t, std::int64_t to) {
  scalar_.advance(to);
  parked_ = false;
  woken_ = true;
}

}  // namespace cm384::npu
