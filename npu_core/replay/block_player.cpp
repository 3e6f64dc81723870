#include "npu_core/replay/block_player.h"

#include <algorithm>
#include <utility>

#include "npu_core/die/die.h"

namespace cm384::npu {
namespace {

constexpr std::uint64_t kLow = 0xffffffff;
// Lanes issue requests up to so far ahead of the die's time, one lane after another.
constexpr Time kAhead{40'000};

}  // namespace

struct BlockPlayer::Play {
  std::uint32_t launch = 0;
  std::shared_ptr<const PlayedLaunch> what;
  std::vector<std::uint16_t> cores;  // by block
  std::vector<std::uint32_t> waits;  // by step: what it still waits for
  std::vector<Time> ready;           // by step: no earlier
  std::vector<Lane> lanes;           // by block and engine
  std::vector<std::uint32_t> resolved;
  std::size_t left = 0;  // steps that have not happened
  Time end;              // of the last block

  const Recording& recording() const { return *what->recording; }
};

BlockPlayer::BlockPlayer(Die& die, std::uint32_t unit) : die_(die), unit_(unit) {
  const DieParameters& p = die.parameters();
  const auto timings = [&](MteTiming(&of)[kEngines], const hw::Mte& mte) {
    of[0] = mte_timing(die.clock(), mte.read_instruction_overhead, mte.read_request_interval,
                       mte.local_read_window, mte.remote_reads);
    of[1] = mte_timing(die.clock(), mte.write_instruction_overhead, mte.write_request_interval,
                       mte.local_write_window, mte.remote_writes);
    of[kFixEngine] = mte_timing(die.clock(), mte.write_instruction_overhead, 1.0, mte.local_write_window,
                                mte.remote_writes);
  };
  timings(timing_[0], p.mte);
  timings(timing_[1], p.cube_mte);
  timing_[1][kFixEngine].sector_ps =
      mte_timing(die.clock(), 0, 128.0 / p.cube.fixpipe_bytes_per_cycle, 0_B, 0).interval_ps;
}

BlockPlayer::~BlockPlayer() = default;

void BlockPlayer::start_block(const BlockStart& block) {
  const Pacing& pacing = block.played->pacing;
  if (pacing.role == Pacing::Role::follows) return follow(block);
  die_.memory().look_ahead(kAhead);
  auto& play = plays_[block.launch];
  if (!play) {
    play = std::make_unique<Play>();
    play->launch = block.launch;
    play->what = block.played;
    const Recording& r = play->recording();
    play->cores.resize(r.blocks);
    play->lanes.resize(r.blocks * kEngines);
    play->ready.resize(r.steps.size());
    play->waits = r.waits;
    play->left = r.steps.size();
    if (pacing.role == Pacing::Role::sets)
      pacing.board->began(pacing.launch, die_.number(), die_.now(), {pacing.kind, r.alone});
  }
  const Recording& r = play->recording();
  play->cores[block.index] = block.core;
  for (std::size_t engine = 0; engine < kEngines; ++engine) {
    const std::size_t index = block.index * kEngines + engine;
    Lane& lane = play->lanes[index];
    lane.timing = &timing_[die_.cluster().is_cube(block.core) ? 1 : 0][engine];
    lane.core = block.core;
    lane.next = r.lane_steps.data() + r.first_of_lane[index];
    lane.last = r.lane_steps.data() + r.first_of_lane[index + 1];
  }
  happened(*play, r.begin_of[block.index], DependencyKind::completion, die_.now());
  --play->left;
  settle(*play);
  if (play->left == 0) finish(block.launch);
}

void BlockPlayer::follow(const BlockStart& block) {
  const PlayedLaunch& played = *block.played;
  auto [at, first] = following_.try_emplace(block.launch);
  Following& launch = at->second;
  if (first) {
    launch.left = played.recording->blocks;
    const Pacing& pacing = played.pacing;
    pacing.board->follow(pacing.launch, die_.number(), die_.now(), {pacing.kind, played.recording->alone},
                         block.launch, *this);
  }
  launch.cores.push_back(block.core);
  if (launch.ended) followed(block.launch);
}

void BlockPlayer::ends_at(std::uint32_t launch, Time at) {
  die_.queue().push(at, unit_, kFollowed, launch);
}

// Blocks that have begun end now.
void BlockPlayer::followed(std::uint32_t number) {
  Following& launch = following_.at(number);
  launch.ended = true;
  for (const std::uint16_t core : launch.cores) die_.scheduler().block_ended(core, die_.now(), {});
  launch.left -= launch.cores.size();
  launch.cores.clear();
  if (launch.left == 0) following_.erase(number);
}

// All of a launch has happened.
void BlockPlayer::finish(std::uint32_t launch) {
  const auto found = plays_.find(launch);
  const Pacing& pacing = found->second->what->pacing;
  if (pacing.role == Pacing::Role::sets)
    pacing.board->ended(pacing.launch, die_.number(), found->second->end);
  plays_.erase(found);
}

// A step got so far: those that waited for it may begin.
void BlockPlayer::happened(Play& play, std::uint32_t step, DependencyKind kind, Time at) {
  const Recording& r = play.recording();
  for (std::uint32_t e = r.first_edge[step]; e < r.first_edge[step + 1]; ++e) {
    const Recording::Edge& edge = r.edges[e];
    if (edge.kind != kind) continue;
    play.ready[edge.to] = std::max(play.ready[edge.to], at + edge.delay);
    if (--play.waits[edge.to] == 0) play.resolved.push_back(edge.to);
  }
}

void BlockPlayer::settle(Play& play) {
  while (!play.resolved.empty()) {
    const std::uint32_t step = play.resolved.back();
    play.resolved.pop_back();
    resolved(play, step);
  }
}

void BlockPlayer::resolved(Play& play, std::uint32_t number) {
  const Recording::Step& step = play.recording().steps[number];
  const Time ready = play.ready[number];
  switch (step.kind) {
    case Recording::Step::Kind::begin:
      return;
    case Recording::Step::Kind::end:
      die_.scheduler().block_ended(play.cores[step.block], ready, {});
      play.end = std::max(play.end, ready);
      finished(play, number, ready, ready);
      return;
    case Recording::Step::Kind::join:
      return finished(play, number, ready, ready);
    case Recording::Step::Kind::fill:
      die_.queue().push(std::max(ready, die_.now()), unit_, kFill, std::uint64_t{play.launch} << 32 | number);
      return;
    case Recording::Step::Kind::transfer:
      break;
  }
  const std::size_t index = step.block * kEngines + step.engine;
  Lane& lane = play.lanes[index];
  if (lane.busy || lane.armed || *lane.next != number) return;
  start(play, lane, number);
  arm(play, index, Time{lane.cursor_ps});
}

void BlockPlayer::finished(Play& play, std::uint32_t step, Time issued, Time completed) {
  --play.left;
  happened(play, step, DependencyKind::issue, issued);
  happened(play, step, DependencyKind::arrival, completed);
  happened(play, step, DependencyKind::completion, completed);
}

void BlockPlayer::arm(Play& play, std::size_t index, Time at) {
  play.lanes[index].armed = true;
  die_.queue().push(std::max(at, die_.now()), unit_, kLane, std::uint64_t{play.launch} << 32 | index);
}

void BlockPlayer::handle(const sim::Event& event) {
  if (event.what == kFollowed) {
    die_.progressed();
    return followed(static_cast<std::uint32_t>(event.argument));
  }
  const auto found = plays_.find(static_cast<std::uint32_t>(event.argument >> 32));
  if (found == plays_.end()) return;
  Play& play = *found->second;
  die_.progressed();
  if (event.what == kFill) {
    fill(play, static_cast<std::uint32_t>(event.argument & kLow));
  } else {
    run(play, event.argument & kLow);
  }
  settle(play);
  if (play.left == 0) finish(found->first);
}

std::uint64_t BlockPlayer::offset_of(const Play& play, const Recording::Step& step) const {
  if (step.region == Recording::kImage) return die_.allocatable() + step.offset;
  if (step.region == Recording::kPrivate)
    return die_.memory_system().private_begin(play.cores[step.block]) + step.offset;
  return play.what->regions[step.region] + step.offset;
}

void BlockPlayer::fill(Play& play, std::uint32_t number) {
  const Recording::Step& step = play.recording().steps[number];
  const Time done = die_.memory().access({offset_of(play, step), step.burst_bytes,
                                          step.operation != Recording::Step::Operation::read, true,
                                          play.cores[step.block], die_.now()});
  finished(play, number, die_.now(), done);
}

// Takes the lane's next transfer in hand.
void BlockPlayer::start(Play& play, Lane& lane, std::uint32_t number) const {
  const Recording::Step& step = play.recording().steps[number];
  lane.busy = true;
  lane.done = 0;
  lane.bursts = step.bursts;
  lane.burst = offset_of(play, step);
  lane.complete_ps = 0;
  lane.cursor_ps = std::max(play.ready[number].ps, lane.cursor_ps + lane.timing->overhead_ps);
}

// Issues requests that may leave before `until`; false when some are left.
bool BlockPlayer::request(Lane& lane, const Recording::Step& step, std::int64_t until) {
  const MteTiming& timing = *lane.timing;
  const bool write = step.operation != Recording::Step::Operation::read;
  const bool add = step.operation == Recording::Step::Operation::add;
  DieMemory& memory = die_.memory();
  while (lane.bursts != 0) {
    const std::uint64_t address = lane.burst + lane.done;
    const auto in_line = static_cast<std::uint32_t>(address % sim::kRequestBytes);
    const std::uint32_t piece = std::min(step.burst_bytes - lane.done, sim::kRequestBytes - in_line);
    const std::uint32_t sectors = RequestWindow::sectors_of(address, piece);
    lane.cursor_ps = lane.window.room(sectors, timing.window_bytes, lane.cursor_ps);
    if (lane.cursor_ps > until) return false;
    // Past the end of the transfer it asks for nothing of use.
    const auto next = step.burst_bytes > sim::kRequestBytes ? std::uint64_t{sim::kRequestBytes}
                                                            : static_cast<std::uint64_t>(step.stride);
    memory.prefetch_run(address + 4 * next, address + 8 * next);
    const MemoryAccess access{address, piece, write, step.allocate != 0, lane.core, Time{lane.cursor_ps}};
    const Time done = add ? memory.atomic_add(access) : memory.access(access);
    lane.complete_ps = std::max(lane.complete_ps, done.ps);
    lane.window.add(sectors, done.ps);
    lane.issued_ps = lane.cursor_ps;
    lane.cursor_ps += std::max(timing.interval_ps, sectors * timing.sector_ps);
    lane.done += piece;
    if (lane.done < step.burst_bytes) continue;
    lane.done = 0;
    lane.burst += static_cast<std::uint64_t>(step.stride);
    --lane.bursts;
  }
  return true;
}

void BlockPlayer::run(Play& play, std::size_t index) {
  Lane& lane = play.lanes[index];
  lane.armed = false;
  const Time now = die_.now();
  const Time until = now + kAhead;
  for (;;) {
    const std::uint32_t number = *lane.next;
    lane.cursor_ps = std::max(lane.cursor_ps, now.ps);
    if (!request(lane, play.recording().steps[number], until.ps)) break;
    lane.busy = false;
    ++lane.next;
    lane.armed = true;  // what it waits for may come to be known while it is at work
    finished(play, number, Time{lane.issued_ps}, Time{lane.complete_ps});
    settle(play);
    lane.armed = false;
    if (lane.next == lane.last || play.waits[*lane.next] != 0) return;
    start(play, lane, *lane.next);
  }
  arm(play, index, Time{lane.cursor_ps});
}

}  // namespace cm384::npu
