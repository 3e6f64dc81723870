// What the transactions of one core waited for, vector or cube: the rules of its pipes over moments with
// causes.
#pragma once

#include <array>

#include "base/text/units.h"
#include "npu_core/causality/moment.h"
#include "npu_core/pipes/pipe_automaton.h"

namespace cm384::npu {

// A kind of core, and the class of what each of its engines causes.
struct CoreShape : PipeShape {
  std::array<Cause::Class, kMostEngines> classes{};
};

// A copy that its engine has taken.
struct CausalCopy {
  std::uint64_t number = 0;
  sim::TransactionId id = 0;
  Time completed = Time::never();
  Cause::Class of = Cause::Class::node;
};

class CoreCausality final : public PipeAutomaton<CoreCausality, Moment, CausalCopy> {
 public:
  CoreCausality(const Clock& clock, const CoreShape& shape);

  // A block of a launch starts at this moment: its causes are those of the block's first instruction.
  void begin(const Moment& start);
  // The copy that `engine` (number of its event) accepted last becomes transaction `id`. Returns the moment
  // at which its first request could have left, with its causes.
  const Moment& start_transaction(std::size_t engine, bool reads, sim::TransactionId id);
  // Whether the transaction started last is the first read after a wait in a polling loop.
  bool polled() const { return polled_; }
  Time ready(std::size_t engine) const { return ready_[engine]; }
  void transaction_completed(sim::TransactionId id, Time at);
  // The scalar unit fills or writes back a cache line at `cycle`. Returns the moment with its causes.
  const Moment& start_fill(std::int64_t cycle);
  void end_fill(const Cause& fill, std::int64_t cycle);
  // The write that the core's engines started last; 0: none.
  sim::TransactionId writing() const { return writing_; }
  // A write has touched the range that the scalar unit polls.
  void poll_woken_by(const Cause& cause);

  void issued(int pipe, std::int64_t cycle) override;
  void scalar_polled(std::int64_t from, std::int64_t to) override;

 private:
  friend PipeAutomaton;

  void advance(Moment& moment, std::int64_t cycle, int) const { moment.advance(cycle); }
  Moment nothing() const { return {}; }
  CausalCopy copy_of(std::uint64_t number, const Moment&) const { return {number, 0, Time::never(), {}}; }
  bool complete(const CausalCopy& copy) const { return copy.completed != Time::never(); }
  Moment completion(const CausalCopy& copy) const;
  void join_idle(Moment& scalar, int pipe, std::int64_t) const {
    scalar.join(pipe_[static_cast<std::size_t>(pipe)]);
  }
  void copy_taken(std::size_t engine, const PipeStep& step);
  void worked(const PipeStep&) {}

  Clock clock_;
  std::array<Cause::Class, PipeShape::kMostEngines> classes_;
  std::array<Time, PipeShape::kMostEngines> ready_{};
  bool woken_ = false, polled_ = false;
  sim::TransactionId writing_ = 0;
};

}  // namespace cm384::npu
