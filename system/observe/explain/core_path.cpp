#include "system/observe/explain/core_path.h"

#include <utility>

#include "npu_core/causality/pipe_shapes.h"
#include "npu_core/cube/aic.h"
#include "npu_core/pipes/mte_engine.h"
#include "npu_core/vector/vector_pipes.h"

namespace cm384::observe {
namespace {

CoreKind::Engine engine_of_mte(const Clock& clock, double overhead, double interval, Bytes window,
                               int remote) {
  const npu::MteTiming t = npu::mte_timing(clock, overhead, interval, window, remote);
  return {static_cast<double>(t.overhead_ps), static_cast<double>(t.interval_ps), 0, t.window_bytes,
          t.remote_window};
}

}  // namespace

CoreKind::CoreKind(const hw::Machine& machine, bool cube)
    : shape(cube ? npu::cube_shape(machine.cube_core) : npu::vector_shape(machine.vector_core)) {
  const Clock clock(machine.die.clock);
  const hw::Mte& mte = cube ? machine.cube_mte : machine.mte;
  engines[0] = engine_of_mte(clock, mte.read_instruction_overhead, mte.read_request_interval,
                             mte.local_read_window, mte.remote_reads);
  engines[1] = engines[2] = engine_of_mte(clock, mte.write_instruction_overhead, mte.write_request_interval,
                                          mte.local_write_window, mte.remote_writes);
  const Unit copies{Part::copy_issue, Resource::copy_issue};
  units[npu::kPipeS] = {Part::scalar, Resource::scalar};
  if (!cube) {
    units[npu::kPipeV] = {Part::vector, Resource::vector};
    units[npu::kPipeMte2] = units[npu::kPipeMte3] = copies;
    return;
  }
  constexpr double kSector = 128;
  engines[2].sector =
      kSector / machine.cube_core.fixpipe_bytes_per_cycle * static_cast<double>(clock.start(1000).ps) / 1000;
  units[npu::kCubeM] = {Part::cube, Resource::cube};
  units[npu::kCubeMte1] = {Part::l0_load, Resource::l0_load};
  units[npu::kCubeMte2] = units[npu::kCubeMte3] = copies;
  units[npu::kCubeFix] = {Part::fixpipe, Resource::fixpipe};
}

CorePath::CorePath(const Clock& clock, const CoreKind& kind) : clock_(clock), kind_(kind) {
  number_of_engine_.fill(-1);
  for (std::size_t n = 0; n < kind.shape.engine_pipe.size(); ++n) {
    if (kind.shape.engine_pipe[n] != 0)
      number_of_engine_[static_cast<std::size_t>(kind.shape.engine_pipe[n])] = static_cast<std::int8_t>(n);
  }
}

void CorePath::begin(const Path& begun) {
  const auto pipes = static_cast<std::size_t>(kind_.shape.pipes);
  parked_ = polled_ = false;
  flags_.resize(pipes * pipes * 8);
  for (auto& flags : flags_) flags.clear();
  for (auto& queue : queue_) queue.head = queue.tail = 0;
  for (auto& engine : engine_) {
    engine = {};
    engine.cursor = engine.complete = engine.freed = begun;
  }
  for (auto& flags : set_) flags.clear();
  for (auto& flags : arrived_) flags.clear();
  pipe_.fill(begun);
  ends_.fill(0);
  scalar_ = begun;
}

// By its own work the scalar unit comes to `cycle`, unless it was parked.
void CorePath::reaches(std::int64_t cycle) {
  if (!parked_) advance(scalar_, cycle, npu::kPipeS);
  parked_ = false;
}

void CorePath::scalar_parked(std::int64_t cycle) {
  if (!parked_) advance(scalar_, cycle, npu::kPipeS);
  parked_ = true;
}

void CorePath::filled(bool instruction, std::int64_t cycle, double end, double unloaded) {
  advance(scalar_, cycle, npu::kPipeS);
  const Part part = instruction ? Part::fetch : Part::load;
  const Resource own = instruction ? Resource::fetch : Resource::none;
  const double all = std::max(0.0, end - scalar_.at);
  const double plain = std::min(all, unloaded);
  scalar_.add(plain, part, own, Resource::l2);
  scalar_.add(all - plain, part, own);
}

std::size_t CorePath::engine_of(bool write) const {
  if (!write) return 0;
  const Engine& fix = engine_[2];
  return kind_.shape.engine_pipe[2] != 0 && !fix.copies.empty() ? 2 : 1;
}

const Path& CorePath::request(std::size_t number, std::uint32_t units, bool remote, bool merges, double at) {
  const CoreKind::Engine& timing = kind_.engines[number];
  Engine& e = engine_[number];
  if (std::exchange(e.begins, false)) e.cursor.join(e.ready);
  if (remote) {
    if (e.submitted++ >= timing.remote_window && !e.answered.empty()) {
      e.cursor.join(e.answered.front());
      e.answered.pop_front();
    }
    if (merges && e.any_merged) e.cursor.join(e.merged);
  } else {
    const std::int64_t needed = std::int64_t{units} * 128;
    while (!e.window.empty() && e.window_bytes + needed > timing.local_window) {
      e.cursor.join(e.window.front().freed);
      e.window_bytes -= std::int64_t{e.window.front().units} * 128;
      e.window.pop_front();
    }
  }
  e.cursor.meet(at, Part::other, Resource::none);
  const CoreKind::Unit& unit = kind_.units[static_cast<std::size_t>(kind_.shape.engine_pipe[number])];
  e.last_request = e.cursor;
  e.cursor.add(std::max(timing.interval, units * timing.sector), unit.part, unit.resource);
  return e.last_request;
}

void CorePath::local_done(std::size_t number, std::uint32_t units, const Path& done) {
  Engine& e = engine_[number];
  if (!e.copies.empty()) e.copies.back().complete.join(done);
  e.freed.join(done);
  e.window.push_back({e.freed, units});
  e.window_bytes += std::int64_t{units} * 128;
}

void CorePath::remote_done(std::size_t number, std::uint64_t copy, bool merged, const Path& done) {
  Engine& e = engine_[number];
  for (Copy& c : e.copies) {
    if (c.number == copy) c.complete.join(done);
  }
  e.answered.push_back(done);
  if (!merged) return;
  e.merged = done;
  e.any_merged = true;
}

void CorePath::fold(Engine& e, std::uint64_t copies) {
  while (!e.copies.empty() && e.copies.front().number <= copies) {
    e.complete.join(e.copies.front().complete);
    e.copies.pop_front();
  }
}

void CorePath::pushed(int pipe, std::int64_t from, std::int64_t place, std::int64_t arrival) {
  constexpr std::int64_t kRecent = 1024;
  Queue& q = queue_[static_cast<std::size_t>(pipe)];
  if (q.arrivals.empty()) {
    q.arrivals.resize(kind_.shape.depth);
    q.places.resize(kind_.shape.depth);
  }
  const std::size_t slot = std::exchange(q.tail, next(q.tail));
  reaches(from);
  if (place + kRecent > arrival) scalar_.join(q.places[slot]);
  advance(scalar_, arrival, npu::kPipeS);
  q.arrivals[slot] = scalar_;
}

void CorePath::left(const npu::PipeStep& step) {
  using Kind = npu::PipeStep::Kind;
  Queue& q = queue_[static_cast<std::size_t>(step.pipe)];
  const std::size_t slot = std::exchange(q.head, next(q.head));
  Path& own = pipe_[static_cast<std::size_t>(step.pipe)];
  advance(own, step.own, step.pipe);
  own.join(q.arrivals[slot]);
  advance(own, step.start, step.pipe);
  Engine* const e = engine(step.pipe);
  Path& place = q.places[slot];
  switch (step.kind) {
    case Kind::wait_flag: {
      auto& sets = flags_[step.flag];
      if (!sets.empty()) {
        own.join(sets.front());
        sets.pop_front();
      }
      advance(own, step.end, step.pipe);
      break;
    }
    case Kind::barrier:
      if (e != nullptr) {
        fold(*e, e->taken);
        own.join(e->complete);
      }
      advance(own, step.end, step.pipe);
      break;
    case Kind::set_flag:
    case Kind::cross_set:
      if (e != nullptr) e->marks.push_back({own, e->taken});
      break;
    case Kind::copy: {
      const auto number = static_cast<std::size_t>(e - engine_.data());
      e->copies.push_back({++e->taken, own});
      e->ready = own;
      advance(e->ready, step.end, step.pipe);
      e->begins = true;
      e->cursor.add(e->taken == 1 ? 0 : kind_.engines[number].overhead, unit(step.pipe).part,
                    unit(step.pipe).resource);
      place = own;
      if (e->any_issued) place.join(e->last_request);
      advance(place, step.left, step.pipe);
      return;
    }
    case Kind::work:
      busy_[static_cast<std::size_t>(step.pipe)] += start(step.end) - start(step.start);
      ends_[static_cast<std::size_t>(step.pipe)] = step.end;
      break;
  }
  place = own;
  advance(place, step.left, step.pipe);
}

void CorePath::issued(int pipe, std::int64_t) {
  if (Engine* const e = engine(pipe)) e->any_issued = true;
}

// The path of what a pipe sets at `cycle`.
Path CorePath::fired(int pipe, std::int64_t cycle) {
  if (Engine* const e = engine(pipe)) {
    if (e->marks.empty()) return scalar_;
    Path path = e->marks.front().path;
    fold(*e, e->marks.front().copies);
    e->marks.pop_front();
    path.join(e->complete);
    advance(path, cycle, pipe);
    return path;
  }
  Path path = pipe == npu::kPipeS ? scalar_ : pipe_[static_cast<std::size_t>(pipe)];
  advance(path, cycle, pipe);
  return path;
}

void CorePath::flag_set(int pipe, std::uint32_t flag, std::int64_t cycle) {
  if (pipe == npu::kPipeS) advance(scalar_, cycle - 1, pipe);
  flags_[flag].push_back(fired(pipe, cycle));
}

void CorePath::cross_core_set(int pipe, std::uint32_t, std::uint32_t flag, std::int64_t cycle) {
  if (pipe == npu::kPipeS) advance(scalar_, cycle - 1, pipe);
  set_[flag].push_back(fired(pipe, cycle));
}

Path CorePath::take_cross_core_set(std::uint32_t flag) {
  if (set_[flag].empty()) return scalar_;
  Path path = set_[flag].front();
  set_[flag].pop_front();
  return path;
}

void CorePath::scalar_waited_for_flag(std::uint32_t flag, std::int64_t from, std::int64_t to) {
  reaches(from);
  auto& sets = flags_[flag];
  if (!sets.empty()) {
    scalar_.join(sets.front());
    sets.pop_front();
  }
  advance(scalar_, to, npu::kPipeS);
}

void CorePath::scalar_waited_for_cross_core(std::uint32_t flag, std::int64_t from, std::int64_t to) {
  reaches(from);
  auto& sets = arrived_[flag];
  if (!sets.empty()) {
    scalar_.join(sets.front());
    sets.pop_front();
  }
  advance(scalar_, to, npu::kPipeS);
}

void CorePath::scalar_waited_for_all(std::int64_t from, std::int64_t to) {
  reaches(from);
  for (int pipe = 1; pipe < kind_.shape.pipes; ++pipe) {
    if (Engine* const e = engine(pipe)) {
      fold(*e, e->taken);
      scalar_.join(e->complete);
    } else {
      Path idle = pipe_[static_cast<std::size_t>(pipe)];
      advance(idle, std::min(to, ends_[static_cast<std::size_t>(pipe)]), pipe);
      scalar_.join(idle);
    }
  }
  advance(scalar_, to, npu::kPipeS);
}

void CorePath::scalar_polled(std::int64_t, std::int64_t) {
  parked_ = true;
}

// What a loop did meanwhile was waiting: it goes on when something was written, and might have as soon as it
// had begun.
void CorePath::poll_turn(bool first, std::int64_t cycle) {
  if (first) {
    reaches(cycle);
    before_polling_ = scalar_;
    polled_ = false;
    polls_first_ = true;
    return;
  }
  parked_ = false;
  scalar_ = before_polling_;
  if (polled_) scalar_.join(written_);
  scalar_.meet(start(cycle), Part::poll, Resource::none);
}

}  // namespace cm384::observe
