#include "supernode/replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "firmware/abi/memory_map.h"
#include "npu_core/pipes/mte_engine.h"
#include "npu_core/vector/vector_pipes.h"
#include "sim/error.h"

namespace cm384::supernode {

using traces::TrafficDependency;
using traces::TrafficRecord;
using Kind = TrafficDependency::Kind;

namespace {

constexpr std::uint32_t kChunk = 64u << 10;  // of a piece that is larger than a UBuffer
constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << 48) - 1;

std::uint64_t address_of(const TrafficRecord& r) {
  const std::uint64_t base =
      r.target.cpu ? cm384_gm_cpu(r.target.number, r.offset) : cm384_gm_die(r.target.number, r.offset);
  return r.by_ub ? base | CM384_GM_VIA_UB_BIT : base;
}

int pipe_of(const TrafficRecord& r) {
  return r.operation == sim::Operation::read ? npu::kPipeMte2 : npu::kPipeMte3;
}

std::size_t lane_index(int core, int pipe) {
  return static_cast<std::size_t>(core) * 2 + (pipe == npu::kPipeMte3 ? 1 : 0);
}

}  // namespace

// Of all a core tells, a replay needs to know only when a copy has left.
struct Replay::CoreObserver final : npu::AivObserver {
  CoreObserver(Replay& to, int die_number, int core_number)
      : replay(to), die(die_number), core(core_number) {}
  void issued(int pipe, std::int64_t) override {
    replay.issued(die, core, pipe, replay.machine_.die(die).now());
  }
  void scalar_parked(std::int64_t) override {}
  void pushed(int, std::int64_t, std::int64_t, std::int64_t) override {}
  void left(const npu::PipeStep&) override {}
  void flag_set(int, std::uint32_t, std::int64_t) override {}
  void cross_core_set(int, std::uint32_t, std::uint32_t, std::int64_t) override {}
  void scalar_waited_for_flag(std::uint32_t, std::int64_t, std::int64_t) override {}
  void scalar_waited_for_cross_core(std::uint32_t, std::int64_t, std::int64_t) override {}
  void scalar_waited_for_all(std::int64_t, std::int64_t) override {}
  void scalar_polled(std::int64_t, std::int64_t) override {}

  Replay& replay;
  int die, core;
};

TrafficUnits units_of(traces::TrafficSource& source) {
  TrafficUnits units;
  TrafficRecord record;
  for (; source.next(record); ++units.records) {
    for (const traces::Unit unit : {record.source, record.target})
      (unit.cpu ? units.sockets : units.dies).insert(unit.number);
  }
  return units;
}

Replay::Replay(Supernode& machine, traces::TrafficSource& source, ReplayOptions options)
    : machine_(machine), source_(source), options_(std::move(options)) {
  const auto dies = static_cast<std::size_t>(machine.parameters().topology.dies());
  lanes_.resize(dies);
  next_core_.resize(dies, 0);
  options_.cores = std::min(options_.cores, machine.parameters().die.aiv);
  machine.drive(*this);
  machine.follow_transactions();
  Probes& probes = machine.probes();
  probes.transaction_begun.attach(this, [](void* self, const npu::TransactionBegun& t) {
    Entry& e = static_cast<Replay*>(self)->entry((t.id & kNumberMask) - 1);
    if (e.begun == Time::never()) e.begun = t.at;
  });
  probes.transaction_completed.attach(this, [](void* self, const npu::TransactionCompleted& t) {
    static_cast<Replay*>(self)->completed((t.id & kNumberMask) - 1, t.die, t.at);
  });
  probes.transaction_arrived.attach(
      this, [](void* self, sim::TransactionId id, int target, std::uint32_t bytes, Time at) {
        static_cast<Replay*>(self)->arrived((id & kNumberMask) - 1, target, bytes, at);
      });
}

Replay::~Replay() {
  Probes& probes = machine_.probes();
  probes.transaction_begun.detach(this);
  probes.transaction_completed.detach(this);
  probes.transaction_arrived.detach(this);
}

bool Replay::run() {
  began_ = machine_.earliest();
  feed();
  if (done_) return true;
  return machine_.run();
}

void Replay::check(const TrafficRecord& r) const {
  const std::uint64_t capacity = r.target.cpu ? machine_.socket_store(r.target.number).capacity()
                                              : machine_.die(r.target.number).store().capacity();
  const std::int64_t span = r.stride * static_cast<std::int64_t>(r.bursts - 1);
  const std::int64_t low = static_cast<std::int64_t>(r.offset) + std::min<std::int64_t>(span, 0);
  const std::uint64_t high = r.offset + static_cast<std::uint64_t>(std::max<std::int64_t>(span, 0)) + r.bytes;
  if (low < 0 || high > capacity)
    throw InputError(fmt::format("record {}: offset: {} with {} B leaves the memory of {}, {} B", next_,
                                 r.offset, r.total_bytes(), text_of(r.target), capacity));
  if (r.core >= machine_.die(r.source.number).cores())
    throw InputError(fmt::format("record {}: core: {}; this machine's dies have {}", next_, r.core,
                                 machine_.die(r.source.number).cores()));
}

// Takes records until as many are under way as may be.
void Replay::feed() {
  retire();
  TrafficRecord record;
  while (!read_all_ && entries_.size() < options_.window) {
    if (source_.next(record)) {
      enter(record);
      settle();
    } else {
      read_all_ = true;
    }
    retire();
  }
  if (read_all_ && entries_.empty() && !done_) {
    done_ = true;
    machine_.driver_finished();
  }
}

Time Replay::known(std::uint64_t number, Kind kind) const {
  const Past& past = number >= base_ ? entries_[number - base_].past : past_[number % traces::kReach];
  return kind == Kind::completion ? past.completed : kind == Kind::arrival ? past.arrived : past.issued;
}

std::vector<Replay::Lane>& Replay::lanes_of(int number) {
  auto& lanes = lanes_[static_cast<std::size_t>(number)];
  if (!lanes.empty()) return lanes;
  npu::Die& die = machine_.die(number);
  lanes.resize(static_cast<std::size_t>(die.cores()) * kPipesOfACore);
  for (int core = 0; core < die.cores(); ++core) {
    observers_.push_back(std::make_unique<CoreObserver>(*this, number, core));
    npu::Aiv& aiv = die.core(core).aiv();
    aiv.add_observer(*observers_.back());
    // What is moved has no bytes: they decide nothing.
    aiv.ubuffer().set_payload(0, npu::kUBufferBytes, true);
  }
  return lanes;
}

void Replay::enter(TrafficRecord& record) {
  if (record.moves()) check(record);
  const std::uint64_t number = next_++;
  Entry& e = entries_.emplace_back();
  std::swap(e.record, record);
  // Nothing begins before the replay does, whatever the delays.
  e.ready = began_;
  if (options_.mode == ReplayOptions::Mode::time || e.record.dependencies.empty()) {
    e.ready = std::max(began_, e.record.start);
  } else {
    for (const TrafficDependency& d : e.record.dependencies) {
      if (const Time at = known(d.on, d.kind); at != Time::never()) {
        e.ready = std::max(e.ready, at + d.delay);
      } else {
        ++e.unresolved;
        entry(d.on).waiters.push_back({number, d.kind, d.delay});
      }
    }
  }
  if (e.record.kind == TrafficRecord::Kind::transfer && e.record.core != TrafficRecord::kAnyCore)
    lanes_of(e.record.source.number)[lane_index(e.record.core, pipe_of(e.record))].pieces.push_back(
        {number, 0, 0});
  e.to_arrive = e.record.total_bytes();
  if (e.unresolved == 0) resolved_.push_back(number);
}

// All that the record waits for has happened.
void Replay::resolved(std::uint64_t number) {
  Entry& e = entry(number);
  const TrafficRecord& r = e.record;
  if (r.kind == TrafficRecord::Kind::fill) {
    post(r.source.number, e.ready, kFill, number);
  } else if (!r.moves()) {
    e.begun = e.ready;
    e.completed = e.ready + (r.end - r.start);
    happened(number, Kind::completion, e.completed);
  } else if (r.core == TrafficRecord::kAnyCore) {
    share_out(number);
  } else {
    const std::size_t index = lane_index(r.core, pipe_of(r));
    if (lane(r.source.number, index).pieces.front().number == number) arm(r.source.number, index);
  }
}

// Cuts a transfer into pieces for the cores of its die, in turn. A piece beyond a UBuffer's size is one copy
// of equal bursts, and the rest another one.
void Replay::share_out(std::uint64_t number) {
  Entry& e = entry(number);
  const int die = e.record.source.number;
  const std::uint64_t bytes = e.record.bytes;
  const auto cores = static_cast<std::uint64_t>(options_.cores);
  std::uint64_t share = std::max(options_.piece_bytes, (bytes + cores - 1) / cores);
  const std::uint64_t grain = share > kChunk ? kChunk : sim::kRequestBytes;
  share = (share + grain - 1) / grain * grain;
  e.pieces = 0;
  for (std::uint64_t offset = 0; offset < bytes;) {
    const std::uint64_t end = std::min(bytes, offset + share);
    int& core = next_core_[static_cast<std::size_t>(die)];
    const std::size_t index = lane_index(core, pipe_of(e.record));
    core = (core + 1) % options_.cores;
    while (offset < end) {
      std::uint64_t piece = end - offset;
      if (piece > kChunk) piece -= piece % kChunk;
      lanes_of(die)[index].pieces.push_back({number, offset, piece});
      offset += piece;
      ++e.pieces;
    }
    arm(die, index);
  }
}

// An event of a die at `at`, or at the first moment that may still get there from the die that is active.
void Replay::post(int die, Time at, std::uint32_t what, std::uint64_t argument) {
  sim::EventQueue& queue = machine_.die(die).queue();
  if (active_ == die) {
    queue.push(std::max(at, queue.now()), Driver::kUnit, what, argument);
  } else if (active_ >= 0) {
    sim::EventQueue& from = machine_.die(active_).queue();
    queue.push_from(from, std::max(at, from.now() + machine_.lookahead()), Driver::kUnit, what, argument);
  } else {
    queue.push(std::max(at, began_), Driver::kUnit, what, argument);
  }
}

// Has the die look at a pipe's next copy.
void Replay::arm(int die, std::size_t index) {
  Lane& l = lane(die, index);
  if (l.armed || l.current != 0) return;
  l.armed = true;
  post(die, Time{}, kLane, index);
}

void Replay::handle(int die, const sim::Event& event) {
  active_ = die;
  if (event.what == kFill) {
    fill(event.argument, die, event.at);
    return;
  }
  const auto index = static_cast<std::size_t>(event.argument);
  lane(die, index).armed = false;
  start_next(die, index);
}

void Replay::fill(std::uint64_t number, int die, Time now) {
  Entry& e = entry(number);
  const TrafficRecord& r = e.record;
  e.begun = now;
  const Time end = machine_.die(die).private_access({r.offset, static_cast<std::uint32_t>(r.bytes),
                                                     static_cast<std::uint16_t>(r.core),
                                                     r.operation != sim::Operation::read, true, now});
  happened(number, Kind::issue, now);
  completed(number, die, end);
}

void Replay::start_next(int die, std::size_t index) {
  Lane& l = lane(die, index);
  if (l.current != 0 || l.pieces.empty()) return;
  const Piece piece = l.pieces.front();
  const Entry& e = entry(piece.number);
  if (e.unresolved != 0) return;
  const TrafficRecord& r = e.record;
  npu::MteCopy copy;
  copy.gm = address_of(r) + piece.offset;
  copy.operation = r.operation;
  copy.allocate = r.allocate;
  copy.lane = r.lane;
  copy.transaction = (static_cast<sim::TransactionId>(die + 1) << 48) | (piece.number + 1);
  copy.bursts = r.bursts;
  copy.burst_bytes = static_cast<std::uint32_t>(r.bytes);
  copy.gm_stride = r.stride;
  if (piece.bytes != 0) {
    copy.bursts = static_cast<std::uint32_t>((piece.bytes + kChunk - 1) / kChunk);
    copy.burst_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(piece.bytes, kChunk));
    copy.gm_stride = kChunk;
  }
  l.pieces.pop_front();
  l.current = piece.number + 1;
  const int pipe = index % 2 == 0 ? npu::kPipeMte2 : npu::kPipeMte3;
  machine_.die(die).core(static_cast<int>(index / 2)).aiv().copy(pipe, copy, e.ready);
}

// The last request of what a pipe has in hand has left.
void Replay::issued(int die, int core, int pipe, Time at) {
  active_ = die;
  const std::size_t index = lane_index(core, pipe);
  Lane& l = lane(die, index);
  const std::uint64_t number = l.current - 1;
  l.current = 0;
  Entry& e = entry(number);
  if (++e.pieces_issued == e.pieces) happened(number, Kind::issue, at);
  if (!l.pieces.empty() && entry(l.pieces.front().number).unresolved == 0) arm(die, index);
  settle();
  feed();
}

void Replay::completed(std::uint64_t number, int die, Time at) {
  active_ = die;
  Entry& e = entry(number);
  e.completed = std::max(e.completed, at);
  if (++e.pieces_completed < e.pieces) return;
  happened(number, Kind::completion, e.completed);
  settle();
  feed();
}

void Replay::arrived(std::uint64_t number, int die, std::uint32_t bytes, Time at) {
  active_ = die;
  Entry& e = entry(number);
  e.to_arrive -= std::min<std::uint64_t>(e.to_arrive, bytes);
  if (e.to_arrive != 0) return;
  happened(number, Kind::arrival, at);
  settle();
}

void Replay::happened(std::uint64_t number, Kind kind, Time at) {
  Entry& e = entry(number);
  Past& past = e.past;
  (kind == Kind::completion ? past.completed : kind == Kind::arrival ? past.arrived : past.issued) = at;
  // What leaves no arrival, and what takes no time, got everywhere when it was complete.
  if (kind == Kind::completion) {
    if (past.arrived == Time::never()) past.arrived = at;
    if (!e.record.moves()) past.issued = at;
  }
  if (!e.waiters.empty()) told_.push_back(number);
}

// What has happened lets others begin, and those that take no time let others begin in turn.
void Replay::settle() {
  while (!resolved_.empty() || !told_.empty()) {
    auto& list = told_.empty() ? resolved_ : told_;
    const std::uint64_t number = list.front();
    list.pop_front();
    if (&list == &told_) {
      tell_waiters(number);
    } else {
      resolved(number);
    }
  }
}

void Replay::tell_waiters(std::uint64_t number) {
  std::erase_if(entry(number).waiters, [&](const Waiter& w) {
    const Time when = known(number, w.kind);
    if (when == Time::never()) return false;
    Entry& waiting = entry(w.number);
    waiting.ready = std::max(waiting.ready, when + w.delay);
    if (--waiting.unresolved == 0) resolved_.push_back(w.number);
    return true;
  });
}

// Takes what is finished off the front.
void Replay::retire() {
  while (!entries_.empty()) {
    Entry& e = entries_.front();
    const bool finished = e.past.completed != Time::never() && e.past.issued != Time::never();
    if (!finished) return;
    const std::size_t slot = base_ % traces::kReach;
    if (slot >= past_.size()) past_.resize(slot + 1);
    past_[slot] = e.past;
    if (options_.finished) options_.finished(e.record, e.begun, e.past.completed);
    entries_.pop_front();
    ++base_;
  }
}

}  // namespace cm384::supernode
