// What the transactions of one vector core waited for, found by following its flags, queues and barriers.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "hw/units.h"
#include "npu_core/causality/moment.h"
#include "npu_core/vector/aiv_observer.h"

namespace cm384::npu {

class CoreCausality final : public AivObserver {
 public:
  CoreCausality(const Clock& clock, std::size_t queue_depth) : clock_(clock), depth_(queue_depth) {}

  // A block begins with this moment.
  void begin(const Moment& start);
  // The copy that the MTE pipe took last has become transaction `id`: when its first request could have left,
  // and the causes of that.
  const Moment& start_transaction(bool reads, sim::TransactionId id);
  // The transaction begun last is the first read after a wait in a polling loop.
  bool polled() const { return polled_; }
  Time ready(bool reads) const { return ready_[reads ? 0 : 1]; }
  void transaction_completed(sim::TransactionId id, Time at);
  // The scalar unit fills or writes back a cache line: the causes of that; then it goes on.
  const Moment& start_fill(std::int64_t cycle);
  void end_fill(const Cause& fill, std::int64_t cycle);
  // The transaction that the core's MTE3 works on; 0: none.
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
  static constexpr std::size_t kPipeCount = 4, kCrossCoreFlags = 16;
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
  };
  struct Queue {
    std::vector<Moment> arrivals, places;  // rings over the queue's depth
    std::uint64_t head = 0, tail = 0;
  };

  Engine& engine(int pipe);
  // All copies up to number `copies` are complete.
  void fold(Engine& engine, std::uint64_t copies);
  Moment fired(int pipe, std::int64_t cycle);
  void reaches(std::int64_t cycle);

  Clock clock_;
  std::size_t depth_;
  Moment scalar_;
  bool parked_ = false, woken_ = false, polled_ = false;
  std::array<Moment, kPipeCount> pipe_;
  std::array<Queue, kPipeCount> queue_;
  std::array<Engine, 2> engine_;  // MTE2, MTE3
  std::array<Time, 2> ready_;
  sim::TransactionId writing_ = 0;
  std::vector<MomentQueue> flags_;
  std::array<MomentQueue, kCrossCoreFlags> set_, arrived_;
};

}  // namespace cm384::npu
