// What the transactions of one core waited for, vector or cube, found by following its flags, queues and
// barriers.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "base/text/units.h"
#include "npu_core/causality/moment.h"
#include "npu_core/pipes/pipe_observer.h"
#include "npu_core/pipes/pipe_queue.h"

namespace cm384::npu {

// A kind of core, as far as it matters here.
struct PipeShape {
  static constexpr std::size_t kMostEngines = 3;
  int pipes = 0;                                // with S
  std::size_t depth = 0;                        // of a pipe's queue
  std::array<int, kMostEngines> engine_pipe{};  // pipe of each engine, in the order of their events; 0: none
  std::array<Cause::Class, kMostEngines> classes{};
};

class CoreCausality final : public PipeObserver {
 public:
  CoreCausality(const Clock& clock, const PipeShape& shape);

  // A block begins with this moment.
  void begin(const Moment& start);
  // The copy that an engine (by its event) took last has become transaction `id`: when its first request
  // could have left, and the causes of that.
  const Moment& start_transaction(std::size_t engine, bool reads, sim::TransactionId id);
  // The transaction begun last is the first read after a wait in a polling loop.
  bool polled() const { return polled_; }
  Time ready(std::size_t engine) const { return engine_[engine].ready; }
  void transaction_completed(sim::TransactionId id, Time at);
  // The scalar unit fills or writes back a cache line: the causes of that; then it goes on.
  const Moment& start_fill(std::int64_t cycle);
  void end_fill(const Cause& fill, std::int64_t cycle);
  // The write that the core's engines have begun last; 0: none.
  sim::TransactionId writing() const { return writing_; }

  // Cross-core flags: the moment at which the core set one, and that at which one reaches it.
  Moment take_cross_core_set(std::uint32_t flag);
  void cross_core_flag(std::uint32_t flag, const Moment& moment) { arrived_[flag].push_back(moment); }
  // A write has touched what the scalar unit polls.
  void poll_woken_by(const Cause& cause);
  // Of the scalar unit.
  const Moment& moment() const { return scalar_; }

  void scalar_parked(std::int64_t cycle) override;
  void pushed(int pipe, std::int64_t from, std::int64_t place, std::int64_t arrival) override;
  void left(const PipeStep& step) override;
  void issued(int pipe, std::int64_t cycle) override;
  void flag_set(int pipe, std::uint32_t flag, std::int64_t cycle) override;
  void cross_core_set(int pipe, std::uint32_t mode, std::uint32_t flag, std::int64_t cycle) override;
  void scalar_waited_for_flag(std::uint32_t flag, std::int64_t from, std::int64_t to) override;
  void scalar_waited_for_cross_core(std::uint32_t flag, std::int64_t from, std::int64_t to) override;
  void scalar_waited_for_all(std::int64_t from, std::int64_t to) override;
  void scalar_polled(std::int64_t from, std::int64_t to) override;

 private:
  static constexpr std::size_t kCrossCoreFlags = 16;
  // A copy that its engine has taken.
  struct Copy {
    std::uint64_t number = 0;
    sim::TransactionId id = 0;
    Time completed = Time::never();
  };
  // A flag behind the copies before it.
  struct Mark {
    Moment moment;
    std::uint64_t copies = 0;  // taken before it
  };
  struct Engine {
    std::uint64_t taken = 0;
    std::deque<Copy> copies;  // not folded into `complete`
    std::deque<Mark> marks;
    Moment complete;  // of the copies before the mark looked at last
    Cause issued;     // the last request of the copy before
    bool any_issued = false;
    Moment next;  // of the copy taken last
    Time ready;   // its first request could have left
  };
  struct Queue {
    std::vector<Moment> arrivals, places;  // rings over the queue's depth
    std::size_t head = 0, tail = 0;        // slots of the next to leave, of the next to be pushed
  };

  std::size_t next(std::size_t slot) const { return slot + 1 == shape_.depth ? 0 : slot + 1; }
  // Of a pipe that copies; nullptr for others.
  Engine* engine(int pipe) {
    const std::int8_t n = engine_of_[static_cast<std::size_t>(pipe)];
    return n < 0 ? nullptr : &engine_[static_cast<std::size_t>(n)];
  }
  Cause::Class class_of(const Engine& e) const {
    return shape_.classes[static_cast<std::size_t>(&e - engine_.data())];
  }
  // All copies up to number `copies` are complete.
  void fold(Engine& engine, std::uint64_t copies);
  Moment fired(int pipe, std::int64_t cycle);
  void reaches(std::int64_t cycle);

  Clock clock_;
  PipeShape shape_;
  std::array<std::int8_t, kMostPipes> engine_of_;
  Moment scalar_;
  bool parked_ = false, woken_ = false, polled_ = false;
  std::array<Moment, kMostPipes> pipe_;
  std::array<Queue, kMostPipes> queue_;
  std::array<Engine, PipeShape::kMostEngines> engine_;
  sim::TransactionId writing_ = 0;
  std::vector<MomentQueue> flags_;
  std::array<MomentQueue, kCrossCoreFlags> set_, arrived_;
};

}  // namespace cm384::npu
