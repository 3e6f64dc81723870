// The rules of a core's pipes: in-order queues of so many places, flags between pipes, barriers, copies that
// are complete later than they leave, cross-core flags, a scalar unit that is parked. Over any algebra of
// moments: who waited for whom (npu_core/causality: moments with their causes), what the time went to
// (system/observe/explain: paths).
//
// It follows what a core tells its observers. When anything happens is the model's (PipeSet); what a moment
// is made of is the algebra's: here stands only which moment has to wait for which.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "npu_core/pipes/fifo.h"
#include "npu_core/pipes/pipe_observer.h"
#include "npu_core/pipes/pipe_queue.h"
#include "npu_core/pipes/pipe_shape.h"

namespace cm384::npu {

// `Algebra` derives from it and has
// - void advance(Value&, std::int64_t cycle, int pipe) const: by the pipe's own work (kPipeS: the scalar
//   unit's) the moment reaches `cycle`; a later moment stays
// - Value nothing() const: what is known of a flag that was never set
// - Copy copy_of(std::uint64_t number, const Value& own) const: a copy that the engine accepts
// - bool complete(const Copy&) const, Value completion(const Copy&) const
// - void join_idle(Value& scalar, int pipe, std::int64_t to) const: the scalar unit has waited for a pipe
//   without an engine
// - void copy_taken(std::size_t engine, const PipeStep&), void worked(const PipeStep&)
// Value: copied, joined (`a.join(b)`: a is not before b). Copy: has a `number`, counted from 1.
template <class Algebra, class Value, class Copy>
class PipeAutomaton : public PipeObserver {
 public:
  explicit PipeAutomaton(const PipeShape& shape) : shape_(shape) {
    engine_of_.fill(-1);
    for (std::size_t n = 0; n < shape.engine_pipe.size(); ++n) {
      if (shape.engine_pipe[n] != 0)
        engine_of_[static_cast<std::size_t>(shape.engine_pipe[n])] = static_cast<std::int8_t>(n);
    }
  }

  const PipeShape& shape() const { return shape_; }
  const Value& scalar() const { return scalar_; }
  // The copies that an engine has taken so far.
  std::uint64_t taken(std::size_t engine) const { return engine_[engine].taken; }

  // Cross-core flags: the moment at which the core set one, and that at which one reaches it.
  Value take_cross_core_set(std::uint32_t flag) {
    if (set_[flag].empty()) return own().nothing();
    const Value value = set_[flag].front();
    set_[flag].pop_front();
    return value;
  }
  void cross_core_flag(std::uint32_t flag, const Value& value) { arrived_[flag].push_back(value); }

  void scalar_parked(std::int64_t cycle) override {
    if (!parked_) own().advance(scalar_, cycle, kPipeS);
    parked_ = true;
  }

  void pushed(int pipe, std::int64_t from, std::int64_t place, std::int64_t arrival) override {
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
    own().advance(scalar_, arrival, kPipeS);
    q.arrivals[slot] = scalar_;
  }

  void left(const PipeStep& step) override {
    Queue& q = queue_[static_cast<std::size_t>(step.pipe)];
    const std::size_t slot = std::exchange(q.head, next(q.head));
    Value& pipe = pipe_[static_cast<std::size_t>(step.pipe)];
    own().advance(pipe, step.own, step.pipe);
    pipe.join(q.arrivals[slot]);
    own().advance(pipe, step.start, step.pipe);
    Engine* const e = engine(step.pipe);
    Value& place = q.places[slot];
    switch (step.kind) {
      case PipeStep::Kind::wait_flag:
        join_front(pipe, flags_[step.flag]);
        own().advance(pipe, step.end, step.pipe);
        break;
      case PipeStep::Kind::barrier:
        if (e != nullptr) {
          fold(*e, e->taken);
          pipe.join(e->complete);
        }
        own().advance(pipe, step.end, step.pipe);
        break;
      case PipeStep::Kind::set_flag:
      case PipeStep::Kind::cross_set:
        if (e != nullptr) e->marks.push_back({pipe, e->taken});
        break;
      case PipeStep::Kind::copy:
        ++e->taken;
        e->copies.push_back(own().copy_of(e->taken, pipe));
        e->ready = pipe;
        own().advance(e->ready, step.end, step.pipe);
        own().copy_taken(static_cast<std::size_t>(e - engine_.data()), step);
        place = pipe;
        if (e->any_issued) place.join(e->issued);
        own().advance(place, step.left, step.pipe);
        return;
      case PipeStep::Kind::work:
        own().worked(step);
        break;
    }
    place = pipe;
    own().advance(place, step.left, step.pipe);
  }

  void flag_set(int pipe, std::uint32_t flag, std::int64_t cycle) override {
    if (pipe == kPipeS) own().advance(scalar_, cycle - 1, pipe);
    flags_[flag].push_back(fired(pipe, cycle));
  }
  void cross_core_set(int pipe, std::uint32_t, std::uint32_t flag, std::int64_t cycle) override {
    if (pipe == kPipeS) own().advance(scalar_, cycle - 1, pipe);
    set_[flag].push_back(fired(pipe, cycle));
  }
  void scalar_waited_for_flag(std::uint32_t flag, std::int64_t from, std::int64_t to) override {
    reaches(from);
    join_front(scalar_, flags_[flag]);
    own().advance(scalar_, to, kPipeS);
  }
  void scalar_waited_for_cross_core(std::uint32_t flag, std::int64_t from, std::int64_t to) override {
    reaches(from);
    join_front(scalar_, arrived_[flag]);
    own().advance(scalar_, to, kPipeS);
  }
  void scalar_waited_for_all(std::int64_t from, std::int64_t to) override {
    reaches(from);
    for (int pipe = 1; pipe < shape_.pipes; ++pipe) join_pipe(pipe, to);
    own().advance(scalar_, to, kPipeS);
  }
  void scalar_waited_for_pipe(int pipe, std::int64_t from, std::int64_t to) override {
    reaches(from);
    join_pipe(pipe, to);
    own().advance(scalar_, to, kPipeS);
  }

 protected:
  ~PipeAutomaton() = default;
  // A flag behind the copies before it.
  struct Mark {
    Value value;
    std::uint64_t copies = 0;  // taken before it
  };
  struct Engine {
    std::uint64_t taken = 0;
    Fifo<Copy> copies;  // not folded into `complete`
    Fifo<Mark> marks;
    Value complete;  // of the copies before the mark looked at last
    Value ready;     // the first request of the copy taken last may leave
    Value issued;    // the last request of the copy before has left
    bool any_issued = false;
  };

  // A block begins at `start`; its pipes and engines have done nothing since `idle`.
  void begin(const Value& start, const Value& idle) {
    const auto pipes = static_cast<std::size_t>(shape_.pipes);
    flags_.resize(pipes * pipes * 8);
    for (auto* sets : {&set_, &arrived_}) {
      for (auto& flags : *sets) flags.clear();
    }
    for (auto& flags : flags_) flags.clear();
    for (Queue& queue : queue_) {
      queue.head = queue.tail = 0;
      for (auto* values : {&queue.arrivals, &queue.places})
        std::fill(values->begin(), values->end(), Value());
    }
    for (Engine& e : engine_) {
      e.taken = 0;
      e.copies.clear();
      e.marks.clear();
      e.any_issued = false;
      e.complete = e.ready = idle;
    }
    pipe_.fill(idle);
    scalar_ = start;
    parked_ = false;
  }
  // The scalar unit reaches `cycle` by its own work, unless it was parked: then by what it waited
  // for.
  void reaches(std::int64_t cycle) {
    if (!parked_) own().advance(scalar_, cycle, kPipeS);
    parked_ = false;
  }
  // The engine of a pipe that copies; nullptr for others.
  Engine* engine(int pipe) {
    const std::int8_t n = engine_of_[static_cast<std::size_t>(pipe)];
    return n < 0 ? nullptr : &engine_[static_cast<std::size_t>(n)];
  }

  Value scalar_;
  bool parked_ = false;
  std::array<Value, kMostPipes> pipe_;
  std::array<Engine, PipeShape::kMostEngines> engine_;

 private:
  static constexpr std::size_t kCrossCoreFlags = 16;
  struct Queue {
    std::vector<Value> arrivals, places;  // rings over the queue's depth
    std::size_t head = 0, tail = 0;       // slots of the next to leave, of the next to be pushed
  };

  Algebra& own() { return static_cast<Algebra&>(*this); }
  std::size_t next(std::size_t slot) const { return slot + 1 == shape_.depth ? 0 : slot + 1; }
  static void join_front(Value& value, Fifo<Value>& sets) {
    if (sets.empty()) return;
    value.join(sets.front());
    sets.pop_front();
  }
  // The scalar unit has waited for what the pipe has done until `to`.
  void join_pipe(int pipe, std::int64_t to) {
    if (Engine* const e = engine(pipe)) {
      fold(*e, e->taken);
      scalar_.join(e->complete);
    } else {
      own().join_idle(scalar_, pipe, to);
    }
  }
  // All copies up to number `copies` are complete, as far as that is known.
  void fold(Engine& e, std::uint64_t copies) {
    while (!e.copies.empty() && e.copies.front().number <= copies) {
      if (!own().complete(e.copies.front())) return;
      e.complete.join(own().completion(e.copies.front()));
      e.copies.pop_front();
    }
  }
  // The moment of what a pipe sets at `cycle`.
  Value fired(int pipe, std::int64_t cycle) {
    Engine* const e = engine(pipe);
    if (e == nullptr) {
      Value value = pipe == kPipeS ? scalar_ : pipe_[static_cast<std::size_t>(pipe)];
      own().advance(value, cycle, pipe);
      return value;
    }
    if (e->marks.empty()) return own().nothing();
    Value value = e->marks.front().value;
    fold(*e, e->marks.front().copies);
    e->marks.pop_front();
    value.join(e->complete);
    own().advance(value, cycle, pipe);
    return value;
  }

  PipeShape shape_;
  std::array<std::int8_t, kMostPipes> engine_of_;
  std::array<Queue, kMostPipes> queue_;
  std::vector<Fifo<Value>> flags_;
  std::array<Fifo<Value>, kCrossCoreFlags> set_, arrived_;
};

}  // namespace cm384::npu
