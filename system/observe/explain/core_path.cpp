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

CorePath::CorePath(const Clock& clock, const CoreKind& kind)
    : PipeAutomaton(kind.shape), clock_(clock), kind_(kind) {}

void CorePath::begin(const Path& begun) {
  PipeAutomaton::begin(begun, begun);
  polled_ = false;
  for (Requests& r : requests_) {
    r = {};
    r.cursor = r.freed = begun;
  }
  ends_.fill(0);
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
  return kind_.shape.engine_pipe[2] != 0 && !engine_[2].copies.empty() ? 2 : 1;
}

const Path& CorePath::request(std::size_t number, std::uint32_t units, bool remote, bool merges, double at) {
  const CoreKind::Engine& timing = kind_.engines[number];
  Engine& e = engine_[number];
  Requests& r = requests_[number];
  if (std::exchange(r.begins, false)) r.cursor.join(e.ready);
  const bool waits = remote && r.submitted++ >= timing.remote_window && !r.answered.empty();
  if (!remote && std::exchange(r.waited, false)) r.cursor.join(e.issued);
  if (remote) {
    if (merges && r.any_merged) r.cursor.join(r.merged);
  } else {
    const std::int64_t needed = std::int64_t{units} * 128;
    while (!r.window.empty() && r.window_bytes + needed > timing.local_window) {
      r.cursor.join(r.window.front().freed);
      r.window_bytes -= std::int64_t{r.window.front().units} * 128;
      r.window.pop_front();
    }
  }
  // In another order of answers the requests that wait for them leave in that order: none of them waits for
  // what another one has waited for.
  if (waits) {
    r.leaves = r.cursor;
    r.leaves.join(r.answered.front());
    r.answered.pop_front();
    r.leaves.meet(at, Part::other, Resource::none);
    e.issued.join(r.leaves);
    r.waited = true;
  } else {
    r.cursor.meet(at, Part::other, Resource::none);
    e.issued = r.leaves = r.cursor;
  }
  const CoreKind::Unit& unit = kind_.units[static_cast<std::size_t>(kind_.shape.engine_pipe[number])];
  r.cursor.add(std::max(timing.interval, units * timing.sector), unit.part, unit.resource);
  return r.leaves;
}

Path CorePath::leaving(bool write) const {
  const std::size_t number = engine_of(write);
  Path path = requests_[number].cursor;
  if (requests_[number].begins) path.join(engine_[number].ready);
  if (requests_[number].waited) path.join(engine_[number].issued);
  return path;
}

void CorePath::local_done(std::size_t number, std::uint32_t units, const Path& done) {
  Engine& e = engine_[number];
  Requests& r = requests_[number];
  if (!e.copies.empty()) e.copies.back().complete.join(done);
  r.freed.join(done);
  r.window.push_back({r.freed, units});
  r.window_bytes += std::int64_t{units} * 128;
}

void CorePath::remote_done(std::size_t number, std::uint64_t copy, bool merged, const Path& done) {
  Requests& r = requests_[number];
  for (CopyPath& c : engine_[number].copies) {
    if (c.number == copy) c.complete.join(done);
  }
  r.answered.push_back(done);
  if (!merged) return;
  r.merged = done;
  r.any_merged = true;
}

void CorePath::copy_taken(std::size_t number, const npu::PipeStep& step) {
  Requests& r = requests_[number];
  r.begins = true;
  r.cursor.add(taken(number) == 1 ? 0 : kind_.engines[number].overhead, unit(step.pipe).part,
               unit(step.pipe).resource);
}

void CorePath::worked(const npu::PipeStep& step) {
  busy_[static_cast<std::size_t>(step.pipe)] += start(step.end) - start(step.start);
  ends_[static_cast<std::size_t>(step.pipe)] = step.end;
}

void CorePath::issued(int pipe, std::int64_t) {
  if (Engine* const e = engine(pipe)) e->any_issued = true;
}

void CorePath::join_idle(Path& scalar, int pipe, std::int64_t to) const {
  Path idle = pipe_[static_cast<std::size_t>(pipe)];
  advance(idle, std::min(to, ends_[static_cast<std::size_t>(pipe)]), pipe);
  scalar.join(idle);
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
