#include "system/observe/timeline_core.h"

#include <fmt/format.h>

#include <algorithm>

#include "firmware/abi/memory_map.h"
#include "npu_core/cube/aic.h"
#include "npu_core/pipes/mte_engine.h"
#include "npu_core/vector/vector_pipes.h"
#include "system/observe/instruction_name.h"

namespace cm384::observe {
namespace {

constexpr std::array<const char*, 8> kLaneNames{"SCALAR", "VECTOR", "CUBE", "MTE1",
                                                "MTE2",   "MTE3",   "FIXP", "phase"};
std::string target_of(std::uint64_t address) {
  return fmt::format("{}{}", cm384_gm_is_cpu(address) ? "cpu" : "die", cm384_gm_unit(address));
}

// The latest moment up to `at` that Perfetto finds within a slice, whose beginning and length it cuts to
// nanoseconds. A flow with an end in no slice is dropped.
Time within_slice(Time at, Time begin, Time end) {
  const std::int64_t last_ns = begin.ps / 1000 + std::max<std::int64_t>((end - begin).ps / 1000, 1) - 1;
  return std::max(begin, std::min(at, Time{last_ns * 1000}));
}

}  // namespace

CoreLanes::CoreLanes(Timeline& out, int die, const npu::Core& core, bool cube, const Clock& clock)
    : out_(out), die_(die), core_(core.number()), watched_(core), cube_(cube), clock_(clock) {
  const auto pipes = static_cast<std::size_t>(cube ? int{npu::kCubePipes} : int{npu::kPipes});
  flags_.resize(pipes * pipes * 8);
  const std::vector<Lane> lanes = cube ? std::vector<Lane>{kScalar, kCube, kMte1, kMte2, kMte3, kFixp, kPhase}
                                       : std::vector<Lane>{kScalar, kVector, kMte2, kMte3, kPhase};
  for (const Lane of : lanes)
    out.name_lane(die, lane(of), fmt::format("{} {} {}", cube ? "cube core" : "core", core_, kLaneNames[of]));
}

int CoreLanes::lane(int of) const {
  return Timeline::kFirstCore + core_ * Timeline::kLanesOfACore + of;
}

int CoreLanes::lane_of(int pipe) const {
  static constexpr std::array<Lane, npu::kPipes> kOfVector{kScalar, kVector, kMte2, kMte3};
  static constexpr std::array<Lane, npu::kCubePipes> kOfCube{kScalar, kCube, kMte1, kMte2, kFixp, kMte3};
  return cube_ ? kOfCube[static_cast<std::size_t>(pipe)] : kOfVector[static_cast<std::size_t>(pipe)];
}

// Slices of a lane do not overlap: one begins where the one before has ended.
void CoreLanes::show(int pipe, std::string_view name, std::int64_t begin, std::int64_t end,
                     std::string_view arguments) {
  Pipe& p = pipes_[static_cast<std::size_t>(pipe)];
  begin = std::max(begin, p.end);
  if (end <= begin) return;
  p.begin = begin;
  p.end = end;
  p.any = true;
  const int to = lane(lane_of(pipe));
  out_.slice(die_, to, name, clock_.start(begin), clock_.start(end), arguments);
  std::erase_if(p.arrows, [&](const auto& arrow) {
    if (arrow.second >= end) return false;
    this->arrow(arrow.first, {to, within_slice(clock_.start(std::max(begin, arrow.second)),
                                               clock_.start(begin), clock_.start(end))});
    return true;
  });
}

void CoreLanes::left(const npu::PipeStep& step) {
  Pipe& p = pipes_[static_cast<std::size_t>(step.pipe)];
  switch (step.kind) {
    case npu::PipeStep::Kind::work:
      show(step.pipe, name_of(*step.instruction), step.start, step.end, place_of(step.instruction->pc));
      break;
    case npu::PipeStep::Kind::copy: {
      const npu::MteCopy& c = *step.copy;
      const bool reads = c.operation == sim::Operation::read;
      p.name = fmt::format("{} {}",
                           reads                                  ? "load"
                           : c.operation == sim::Operation::write ? "store"
                                                                  : "add",
                           target_of(c.gm));
      p.arguments =
          fmt::format("\"bytes\":{},\"bursts\":{},\"offset\":{},{}", std::uint64_t{c.burst_bytes} * c.bursts,
                      c.bursts, cm384_gm_offset(c.gm), place_of(c.pc));
      p.ready = step.end;
      break;
    }
    case npu::PipeStep::Kind::wait_flag:
      show(step.pipe, "wait", step.start, step.end - 1, place_of(step.instruction->pc));
      end_arrow(step.pipe, step.flag, step.end);
      break;
    case npu::PipeStep::Kind::barrier:
      show(step.pipe, "barrier", step.start, step.end - 1, place_of(step.instruction->pc));
      break;
    default:
      break;
  }
}

void CoreLanes::issued(int pipe, std::int64_t cycle) {
  const Pipe& p = pipes_[static_cast<std::size_t>(pipe)];
  show(pipe, p.name, p.ready, std::max(cycle, p.ready) + 1, p.arguments);
}

// The arrow begins in the last slice of what sets the flag, no later than it is set.
void CoreLanes::flag_set(int pipe, std::uint32_t flag, std::int64_t cycle) {
  const Pipe& p = pipes_[static_cast<std::size_t>(pipe)];
  std::int64_t begin = p.begin, end = p.end;
  // The scalar unit's slice is written when it ends; it has gone on until now at least.
  const std::int64_t since = std::max(scalar_since_, p.end);
  if (pipe == npu::kPipeS && scalar_since_ >= 0 && since < cycle) {
    begin = since;
    end = cycle;
  } else if (!p.any) {
    return;
  }
  const Time at = clock_.start(std::min(end, cycle)) - Time{1};
  flags_[flag].push_back({lane(lane_of(pipe)), within_slice(at, clock_.start(begin), clock_.start(end))});
}

// Both ends, or where a filter leaves out one of them none.
void CoreLanes::arrow(const ArrowEnd& from, const ArrowEnd& to) {
  if (from.at < out_.options_.from || to.at >= out_.options_.to) return;
  const std::uint64_t id = ++out_.arrows_;
  out_.arrow(true, id, die_, from.lane, from.at);
  out_.arrow(false, id, die_, to.lane, to.at);
}

void CoreLanes::end_arrow(int pipe, std::uint32_t flag, std::int64_t cycle) {
  auto& set = flags_[flag];
  if (set.empty()) return;
  pipes_[static_cast<std::size_t>(pipe)].arrows.emplace_back(set.front(), cycle);
  set.pop_front();
}

void CoreLanes::scalar_parked(std::int64_t cycle) {
  if (parked_ < 0) parked_ = cycle;
}

void CoreLanes::pushed(int, std::int64_t from, std::int64_t, std::int64_t arrival) {
  if (scalar_since_ < 0) scalar_since_ = from;
  if (parked_ >= 0 || arrival > from + 1) scalar_waits("wait for a place", from, arrival - 1);
  last_ = arrival;
}

// What the scalar unit ran since its last wait, then the wait.
void CoreLanes::scalar_waits(std::string_view name, std::int64_t from, std::int64_t to) {
  if (parked_ >= 0) from = std::min(from, parked_);
  parked_ = -1;
  if (scalar_since_ < 0) scalar_since_ = from;
  if (to > from) {
    show(npu::kPipeS, "run", scalar_since_, from);
    show(npu::kPipeS, name, from, to, place_of(watched_.scalar().pc()));
    scalar_since_ = to;
  }
  last_ = to;
}

void CoreLanes::scalar_waited_for_flag(std::uint32_t flag, std::int64_t from, std::int64_t to) {
  const auto source = static_cast<int>(flag / 8) / (cube_ ? int{npu::kCubePipes} : int{npu::kPipes});
  scalar_waits(fmt::format("wait for {}", kLaneNames[static_cast<std::size_t>(lane_of(source))]), from, to);
  end_arrow(npu::kPipeS, flag, to);
}

void CoreLanes::scalar_waited_for_cross_core(std::uint32_t, std::int64_t from, std::int64_t to) {
  scalar_waits("wait for other cores", from, to);
}

void CoreLanes::scalar_waited_for_all(std::int64_t from, std::int64_t to) {
  scalar_waits("wait for all pipes", from, to);
}

void CoreLanes::scalar_waited_for_pipe(int pipe, std::int64_t from, std::int64_t to) {
  scalar_waits(fmt::format("wait for {}", kLaneNames[static_cast<std::size_t>(lane_of(pipe))]), from, to);
}

void CoreLanes::scalar_polled(std::int64_t from, std::int64_t to) {
  scalar_waits("poll", from, to);
}

void CoreLanes::phase(std::uint32_t number, std::int64_t cycle) {
  if (phase_ >= 0) {
    out_.slice(die_, lane(kPhase), out_.phase_name(die_, phase_), clock_.start(phase_since_),
               clock_.start(cycle));
  }
  phase_ = static_cast<int>(number);
  phase_since_ = cycle;
  last_ = std::max(last_, cycle);
}

void CoreLanes::end() {
  if (scalar_since_ >= 0) show(npu::kPipeS, "run", scalar_since_, last_);
  if (phase_ >= 0) phase(0, last_);
  phase_ = -1;
  scalar_since_ = parked_ = -1;
  for (auto& set : flags_) set.clear();
  for (Pipe& p : pipes_) p.arrows.clear();
}

}  // namespace cm384::observe
