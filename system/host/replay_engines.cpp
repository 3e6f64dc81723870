// A replay's transfers on the engines of its dies: MTE2, MTE3 and fixpipe of the cores, and SDMA.
#include "system/host/replay_engines.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/engine/peers.h"
#include "firmware/abi/memory_map.h"
#include "npu_core/cube/aic.h"
#include "npu_core/pipes/mte_engine.h"
#include "npu_core/vector/vector_pipes.h"
#include "system/host/replay.h"

namespace cm384::host {

using traces::TrafficRecord;
using Kind = traces::TrafficDependency::Kind;

namespace {

using EnginePipes = std::array<int, npu::kEngines>;
constexpr EnginePipes kVectorPipes{npu::kPipeMte2, npu::kPipeMte3, 0};
constexpr EnginePipes kCubePipes{npu::kCubeMte2, npu::kCubeMte3, npu::kCubeFix};

// While no other one has shared the die with it: between two turns a core idles for a moment.
constexpr std::uint64_t kTurnAlone = 16u << 10;

}  // namespace

// Of a core's callbacks a replay needs only the one of a copy that has left.
struct Replay::CoreObserver final : npu::PipeObserver {
  CoreObserver(Replay& to, int die_number, int core_number, const EnginePipes& pipes_of_engines)
      : replay(to), die(die_number), core(core_number), pipes(pipes_of_engines) {}
  void issued(int pipe, std::int64_t) override {
    const auto engine = static_cast<std::size_t>(std::ranges::find(pipes, pipe) - pipes.begin());
    replay.issued(die, lane_index(core, engine), replay.machine_.die(die).now());
  }

  Replay& replay;
  int die, core;
  const EnginePipes& pipes;
};

Replay::Replay(supernode::Supernode& machine, traces::TrafficSource& source, ReplayOptions options)
    : machine_(machine),
      source_(source),
      options_(std::move(options)),
      cores_(machine.parameters().accelerator.has_cores()) {
  const auto dies = static_cast<std::size_t>(machine.parameters().topology.dies());
  lanes_.resize(dies);
  dies_.resize(dies);
  options_.cores = std::min(options_.cores, machine.parameters().die.aiv);
  sim::peers().needs_one("a replay");
  acting_.set_workers(machine.workers());
  const bool in_order = options_.host && by_own_models();
  if (in_order) machine.need_order("a replay of host threads");
  for (const int die : machine.dies()) {
    units_.resize(static_cast<std::size_t>(die) + 1);
    units_.back() = machine.attach(die, *this);
  }
  hosts_.resize(dies);
  for (const int number : machine.dies()) {
    machine.accelerator(number).transfer_issued().attach(
        this, [](void* self, sim::TransactionId id) { static_cast<Replay*>(self)->copy_issued(id); });
    if (!by_own_models()) continue;
    machine.die(number).transactions().set_block_runner(*this);
    auto& host = hosts_[static_cast<std::size_t>(number)] = std::make_unique<HostThread>(machine, number);
    host->call_done = [this, number](const HostCall& call, Time begin, Time end) {
      call_done(number, call, begin, end);
    };
  }
  ++machine.unfinished();
  machine.follow_transactions(!in_order);
  supernode::Probes& probes = machine.probes();
  probes.between_windows.attach(
      this, [](void* self, Time reached) { static_cast<Replay*>(self)->between_windows(reached); });
  probes.transaction_begun.attach(this, [](void* self, const npu::TransactionBegun& t) {
    static_cast<Replay*>(self)->begun(t.id, t.at);
  });
  probes.transaction_completed.attach(this, [](void* self, const npu::TransactionCompleted& t) {
    auto& replay = *static_cast<Replay*>(self);
    const Subject subject = replay.subject_of(t.id);
    if (subject.early != nullptr) {
      subject.early->past.completed = t.at;
    } else {
      replay.completed(subject.number, t.die, t.at);
    }
  });
  probes.transaction_arrived.attach(
      this, [](void* self, sim::TransactionId id, int target, std::uint32_t bytes, Time at) {
        if (id == 0) return;  // a word of a task scheduler
        auto& replay = *static_cast<Replay*>(self);
        const Subject subject = replay.subject_of(id);
        if (subject.early != nullptr) {
          subject.early->arrived += bytes;
          subject.early->last_arrival = at;
        } else {
          replay.arrived(subject.number, target, bytes, at);
        }
      });
}

Replay::~Replay() {
  supernode::Probes& probes = machine_.probes();
  probes.between_windows.detach(this);
  probes.transaction_begun.detach(this);
  probes.transaction_completed.detach(this);
  probes.transaction_arrived.detach(this);
}

std::vector<Replay::Lane>& Replay::lanes_of(int number) {
  auto& lanes = lanes_[static_cast<std::size_t>(number)];
  if (!lanes.empty()) return lanes;
  npu::Die& die = machine_.die(number);
  lanes.resize(static_cast<std::size_t>(die.cluster().size()) * npu::kEngines);
  for (int core = 0; core < die.cluster().size(); ++core) {
    const bool cube = die.cluster().is_cube(static_cast<std::uint16_t>(core));
    observers_.push_back(
        std::make_unique<CoreObserver>(*this, number, core, cube ? kCubePipes : kVectorPipes));
    npu::CorePipes& pipes = die.cluster().core(core).pipes();
    pipes.add_observer(*observers_.back());
    pipes.forget_values();
  }
  return lanes;
}

// Cuts a transfer into pieces for the cores of its die, in turn, which move them turn by turn.
void Replay::split_over_cores(std::uint64_t number) {
  Entry& e = entry(number);
  const int die = e.record.source.number;
  const std::uint64_t bytes = e.record.bytes;
  const std::uint64_t share = share_of_core(bytes, options_.cores, options_.piece_bytes);
  e.pieces = 0;
  Turns& shared_out = dies_[static_cast<std::size_t>(die)].turns[kSharedOut];
  const auto self = shared_out.ready.find({e.ready, number});
  const auto next = std::next(self);
  shared_out.busy = shared_out.busy || self != shared_out.ready.begin() ||
                    (next != shared_out.ready.end() && next->first == e.ready);
  for (std::uint64_t offset = 0; offset < bytes; offset += share) {
    const std::uint64_t piece = std::min(share, bytes - offset);
    int& core = dies_[static_cast<std::size_t>(die)].next_core;
    const std::size_t index = lane_index(core, engine_of(e.record));
    core = (core + 1) % options_.cores;
    lanes_of(die)[index].pieces.push_back({number, offset, piece});
    ++e.pieces;
    arm(die, index);
  }
}

// An event of the die that is active, or between windows of any, at `at` or the first moment that is left.
void Replay::post(int die, Time at, std::uint32_t what, std::uint64_t argument) {
  const int active = acting_.mine().die;
  assert(active < 0 || active == die);
  sim::EventQueue& queue = machine_.accelerator(die).queue();
  queue.push(std::max(at, active < 0 ? reached_ : queue.now()), units_[static_cast<std::size_t>(die)], what,
             argument);
}

// Has the die look at a pipe's next copy.
void Replay::arm(int die, std::size_t index) {
  Lane& l = lane(die, index);
  if (l.armed || l.current != 0) return;
  l.armed = true;
  post(die, Time{}, kLane, index);
}

void Replay::handle(int die, const sim::Event& event) {
  acting_.mine().die = die;
  if (event.what == kFill) {
    fill(event.argument, die, event.at);
    return;
  }
  switch (static_cast<What>(event.what)) {
    case kCopy:
      return start_copy(event.argument, die);
    case kGiven:
      return submit_given(event.argument);
    case kBlockEnds:
      return end_block(event.argument);
    case kShare:
      return split_over_cores(event.argument);
    case kTurn: {
      const int queue = entry(event.argument).record.lane;
      dies_[static_cast<std::size_t>(die)].turns[queue].ready.emplace(event.at, event.argument);
      return take_turn(die, queue, event.at);
    }
    case kTurnEnds:
      dies_[static_cast<std::size_t>(die)].turns[static_cast<int>(event.argument)].busy = false;
      return take_turn(die, static_cast<int>(event.argument), event.at);
    default:
      break;
  }
  const auto index = static_cast<std::size_t>(event.argument);
  lane(die, index).armed = false;
  start_next(die, index);
}

void Replay::fill(std::uint64_t number, int die, Time now) {
  Entry& e = entry(number);
  const TrafficRecord& r = e.record;
  e.begun = now;
  const Time end = machine_.die(die).memory_system().private_access(
      {r.offset, static_cast<std::uint32_t>(r.bytes), static_cast<std::uint16_t>(r.core),
       r.operation != sim::Operation::read, true, now});
  happened(number, Kind::issue, now);
  completed(number, die, end);
}

// The address of other memory, as a path that was chosen for all reaches it.
std::uint64_t Replay::by_path(int die, std::uint64_t address) const {
  if (options_.path == ReplayOptions::Path::recorded || !cm384_is_gm(address)) return address;
  address &= ~CM384_GM_VIA_RDMA_BIT;
  const bool other = !cm384_gm_is_cpu(address) && cm384_gm_unit(address) != static_cast<std::uint64_t>(die);
  if (options_.path != ReplayOptions::Path::rdma || !other) return address;
  return (address & ~CM384_GM_VIA_UB_BIT) | CM384_GM_VIA_RDMA_BIT;
}

std::uint64_t Replay::address_of(const TrafficRecord& r) const {
  const std::uint64_t base =
      r.target.cpu ? cm384_gm_cpu(r.target.number, r.offset) : cm384_gm_die(r.target.number, r.offset);
  return by_path(r.source.number,
                 base | (r.by_ub ? CM384_GM_VIA_UB_BIT : 0) | (r.by_rdma ? CM384_GM_VIA_RDMA_BIT : 0));
}

// A transfer without a core's engine. Where it lies in the own die's memory is not recorded: as in the other
// one's. One of several bursts is as many transfers, which begin in their order.
void Replay::start_copy(std::uint64_t number, int die) {
  Entry& e = entry(number);
  const TrafficRecord& r = e.record;
  npu::Accelerator& accelerator = machine_.accelerator(die);
  const bool reads = r.operation == sim::Operation::read;
  e.begun = accelerator.queue().now();
  e.pieces = r.bursts;
  const std::uint64_t there = address_of(r);
  const std::uint64_t own =
      cm384_gm_die(static_cast<std::uint64_t>(die), std::min(r.offset, accelerator.allocatable() - r.bytes));
  const sim::TransactionId id = (static_cast<sim::TransactionId>(die + 1) << 48) | (number + 1);
  for (std::uint32_t burst = 0; burst < r.bursts; ++burst) {
    const std::uint64_t at = there + static_cast<std::uint64_t>(r.stride) * burst;
    accelerator.transfer({reads ? at : own, reads ? own : at, r.bytes, id});
  }
}

void Replay::copy_issued(sim::TransactionId id) {
  const int die = static_cast<int>(id >> 48) - 1;
  acting_.mine().die = die;
  const Time now = machine_.accelerator(die).queue().now();
  const Subject subject = subject_of(id);
  if (subject.early != nullptr) {
    subject.early->past.issued = now;
    return;
  }
  Entry& e = entry(subject.number);
  if (++e.pieces_issued < e.pieces) return;
  happened(subject.number, Kind::issue, now);
  settle();
}

void Replay::start_next(int die, std::size_t index) {
  Lane& l = lane(die, index);
  if (l.current != 0 || l.pieces.empty()) return;
  const Piece piece = l.pieces.front();
  Entry& e = entry(piece.number);
  if (e.unresolved != 0) return;
  const TrafficRecord& r = e.record;
  npu::MteCopy copy;
  copy.gm = address_of(r) + piece.offset;
  copy.operation = r.operation;
  copy.allocate = r.allocate;
  copy.lane = r.lane;
  copy.transaction = transaction_of(r, piece.number);
  copy.bursts = r.bursts;
  copy.burst_bytes = static_cast<std::uint32_t>(r.bytes);
  copy.gm_stride = r.stride;
  l.pieces.pop_front();
  if (piece.bytes == 0) {
    --l.recorded;
  } else {
    const std::uint64_t turn = std::min(
        piece.bytes, dies_[static_cast<std::size_t>(die)].turns[kSharedOut].busy ? kReplayTurn : kTurnAlone);
    copy.bursts = 1;
    copy.burst_bytes = static_cast<std::uint32_t>(turn);
    // Behind the other transfers that are shared out, before the next one that takes its turn as recorded.
    if (turn < piece.bytes) {
      ++e.pieces;
      l.pieces.insert(
          l.recorded == 0 ? l.pieces.end() : std::ranges::find(l.pieces, std::uint64_t{0}, &Piece::bytes),
          {piece.number, piece.offset + turn, piece.bytes - turn});
    }
  }
  l.current = piece.number + 1;
  const auto core = static_cast<int>(index / npu::kEngines);
  npu::Die& of = machine_.die(die);
  const auto& pipes = of.cluster().is_cube(static_cast<std::uint16_t>(core)) ? kCubePipes : kVectorPipes;
  of.cluster().core(core).pipes().copy(pipes[index % npu::kEngines], copy, e.ready);
}

// The last request of what a pipe has in hand has left.
void Replay::issued(int die, std::size_t index, Time at) {
  acting_.mine().die = die;
  Lane& l = lane(die, index);
  const std::uint64_t number = l.current - 1;
  l.current = 0;
  Entry& e = entry(number);
  if (++e.pieces_issued == e.pieces) {
    if (is_shared_out(e.record)) {
      Turns& shared_out = dies_[static_cast<std::size_t>(die)].turns[kSharedOut];
      shared_out.ready.erase({e.ready, number});
      shared_out.busy = shared_out.busy && !shared_out.ready.empty() && shared_out.ready.begin()->first <= at;
    }
    happened(number, Kind::issue, at);
  }
  if (!l.pieces.empty() && entry(l.pieces.front().number).unresolved == 0) arm(die, index);
  settle();
}

}  // namespace cm384::host
