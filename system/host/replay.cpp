#include "system/host/replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "npu_core/vector/ubuffer.h"
#include "system/host/replay_engines.h"

namespace cm384::host {

using traces::TrafficDependency;
using traces::TrafficRecord;
using Kind = TrafficDependency::Kind;

namespace {

bool takes_turns(const TrafficRecord& r) {
  return r.kind == TrafficRecord::Kind::compute && r.lane != 0;
}
// What neither moves anything nor is the host's nor waits for its turn has no place of its own: that of what
// it waits for.
bool joins(const TrafficRecord& r) {
  return !r.moves() && !r.of_host() && !takes_turns(r);
}

}  // namespace

TrafficUnits units_of(traces::TrafficSource& source) {
  TrafficUnits units;
  TrafficRecord record;
  for (; source.next(record); ++units.records) {
    units.cores = std::max(units.cores, record.core + 1);
    units.rdma = units.rdma || record.by_rdma;
    units.host = units.host || record.of_host();
    for (const TrafficDependency& d : record.dependencies)
      units.reach = std::max(units.reach, units.records - d.on);
    for (const traces::Unit unit : {record.source, record.target})
      (unit.cpu ? units.sockets : units.dies).insert(unit.number);
    if (!record.of_host()) continue;
    units.add_host(record);
  }
  return units;
}

// Where the trace says that the machine was idle, what comes next is given once this one is.
bool Replay::run() {
  for (;;) {
    began_ = reached_ = machine_.earliest();
    acting_.each([](Acting& acting) { acting.die = -1; });
    if (resting_) {
      resting_ = false;
      ++machine_.unfinished();
      entries_.back().begun = began_;
      happened(next_ - 1, Kind::completion, began_);
    }
    feed();
    if (done_) return true;
    if (!machine_.run()) return false;
    if (done_) return true;
  }
}

void Replay::check(const TrafficRecord& r) const {
  const std::uint64_t capacity = r.target.cpu ? machine_.socket_store(r.target.number).capacity()
                                              : machine_.accelerator(r.target.number).store().capacity();
  const std::int64_t span = r.stride * static_cast<std::int64_t>(r.bursts - 1);
  const std::int64_t low = static_cast<std::int64_t>(r.offset) + std::min<std::int64_t>(span, 0);
  const std::uint64_t high = r.offset + static_cast<std::uint64_t>(std::max<std::int64_t>(span, 0)) + r.bytes;
  if (low < 0 || high > capacity)
    throw InputError(fmt::format("record {}: offset: {} with {} B leaves the memory of {}, {} B", next_,
                                 r.offset, r.total_bytes(), text_of(r.target), capacity));
  if (!cores_) {
    if (r.operation != sim::Operation::read && r.operation != sim::Operation::write)
      throw InputError(fmt::format("record {}: operation: {}; a transfer engine has read and write", next_,
                                   traces::name_of(r.operation)));
    return;
  }
  const npu::Die& die = machine_.die(r.source.number);
  if (r.core >= die.cluster().size())
    throw InputError(
        fmt::format("record {}: core: {}; this machine's dies have {}", next_, r.core, die.cluster().size()));
  const bool cube = r.core >= 0 && die.cluster().is_cube(static_cast<std::uint16_t>(r.core));
  if (r.engine == TrafficRecord::Engine::fix && !cube)
    throw InputError(fmt::format("record {}: core: {} is no cube core and has no fixpipe", next_, r.core));
  if (r.engine == TrafficRecord::Engine::mte && !cube && r.core >= 0 && r.bytes > npu::kUBufferBytes)
    throw InputError(
        fmt::format("record {}: bytes: {}; a UBuffer holds {}", next_, r.bytes, npu::kUBufferBytes));
}

// Takes records until as many are under way as may be.
void Replay::feed() {
  retire();
  TrafficRecord record;
  while (!read_all_ && !resting_ && entries_.size() < options_.window) {
    if (source_.next(record)) {
      enter(record);
      settle();
    } else {
      read_all_ = true;
      check_unfolded();
    }
    retire();
  }
  if (read_all_ && entries_.empty() && !done_) {
    done_ = true;
    --machine_.unfinished();
  }
}

Time Replay::known(std::uint64_t number, Kind kind) const {
  const Past& past = past_of(number);
  return kind == Kind::completion ? past.completed : kind == Kind::arrival ? past.arrived : past.issued;
}

int Replay::place_of(const TrafficDependency& on) const {
  const Past& past = past_of(on.on);
  return on.kind == Kind::arrival ? past.target : past.die;
}

void Replay::join(const TrafficDependency& on, Past& joint) const {
  const Past& past = past_of(on.on);
  const Time at = std::max(known(on.on, on.kind), past.told);
  const int where = place_of(on);
  if (where == Past::kEverywhere) return;
  if (joint.die != where && joint.die != Past::kEverywhere)
    joint.told_elsewhere = std::max(joint.told_elsewhere, std::min(joint.told, at));
  if (joint.die == Past::kEverywhere || at > joint.told) joint.die = where;
  joint.told = std::max(joint.told, at);
  joint.told_elsewhere = std::max(joint.told_elsewhere, past.told_elsewhere);
}

// What waits for a record that got so far may go on. Another die knows no earlier than a packet would tell
// it: else it would hang on which die ran first in a window.
void Replay::release(const TrafficDependency& on, Entry& waiting) const {
  const Time at = known(on.on, on.kind);
  waiting.ready = std::max(waiting.ready, at + on.delay);
  if (joins(waiting.record)) return join(on, waiting.past);
  const int where = place_of(on);
  if (where == Past::kEverywhere) return;
  const Past& past = past_of(on.on);
  if (where != waiting.past.die)
    waiting.ready = std::max(waiting.ready, std::max(at, past.told) + machine_.lookahead());
  else if (past.told_elsewhere != Time{})
    waiting.ready = std::max(waiting.ready, past.told_elsewhere + machine_.lookahead());
}

void Replay::enter(TrafficRecord& record) {
  if (record.moves()) check(record);
  const std::uint64_t number = next_++;
  if (number == 0 && !record.of_host()) origin_ = std::max(Time{}, began_ - record.start);
  Entry& e = entries_.emplace_back();
  std::swap(e.record, record);
  // Nothing begins before the replay does, whatever the delays.
  e.ready = began_;
  e.past.die = e.record.kind == TrafficRecord::Kind::idle || joins(e.record) ? Past::kEverywhere
                                                                             : e.record.source.number;
  e.past.target = e.past.die;
  e.owner = joins(e.record) ? kNobody : e.record.source.number;
  if (e.record.moves()) e.past.target = e.record.target.cpu ? -1 : e.record.target.number;
  if (e.record.of_host() && (enter_timeless(number) || (by_own_models() && enter_own(number)))) return;
  if (options_.mode == ReplayOptions::Mode::time || e.record.dependencies.empty()) {
    e.ready = std::max(began_, e.record.start + origin_);
  } else {
    for (const TrafficDependency& d : e.record.dependencies) {
      if (known(d.on, d.kind) != Time::never()) {
        release(d, e);
        continue;
      }
      ++e.unresolved;
      Entry& on = entry(d.on);
      (d.kind == Kind::arrival ? on.arrival_waiters : on.waiters).push_back({number, d.kind, d.delay});
      if (joins(e.record)) ++waits_on(e, die_told(d));
    }
    if (joins(e.record)) own_if_on_one_die(number);
  }
  if (cores_ && e.record.kind == TrafficRecord::Kind::transfer) lanes_of(e.record.source.number);
  if (cores_ && in_a_lane(e.record)) {
    Lane& own = lanes_of(e.record.source.number)[lane_index(e.record.core, engine_of(e.record))];
    own.pieces.push_back({number, 0, 0});
    ++own.recorded;
  }
  e.to_arrive = e.record.total_bytes();
  if (e.unresolved == 0) acting_.mine().resolved.push_back(number);
}

// All that the record waits for has happened.
void Replay::resolved(std::uint64_t number) {
  Entry& e = entry(number);
  const TrafficRecord& r = e.record;
  if (by_own_models() && r.kind == TrafficRecord::Kind::given) {
    post(r.source.number, e.ready, kGiven, number);
  } else if (by_own_models() && r.kind == TrafficRecord::Kind::end && !r.words.empty()) {
    post(r.source.number, e.ready, kBlockEnds, number);
  } else if (r.kind == TrafficRecord::Kind::fill && cores_) {
    post(r.source.number, e.ready, kFill, number);
  } else if (takes_turns(r) && options_.mode == ReplayOptions::Mode::dependency) {
    post(r.source.number, e.ready, kTurn, number);
  } else if (!r.moves()) {
    e.begun = e.ready;
    e.completed = e.ready + (r.end - r.start);
    happened(number, Kind::completion, e.completed);
  } else if (!cores_ || r.engine == TrafficRecord::Engine::sdma) {
    post(r.source.number, e.ready, kCopy, number);
  } else if (r.core == TrafficRecord::kAnyCore) {
    // Not before it is ready: what is ready earlier and known later has its turn first.
    dies_[r.source.number].turns[kSharedOut].ready.emplace(e.ready, number);
    post(r.source.number, e.ready, kShare, number);
  } else {
    const std::size_t index = lane_index(r.core, engine_of(r));
    if (lane(r.source.number, index).pieces.front().number == number) arm(r.source.number, index);
  }
}

// The record that was ready first begins, if no other one of its queue is under way.
void Replay::take_turn(int die, int queue, Time now) {
  Turns& turns = dies_[static_cast<std::size_t>(die)].turns[queue];
  if (turns.busy || turns.ready.empty()) return;
  const std::uint64_t number = turns.ready.begin()->second;
  turns.ready.erase(turns.ready.begin());
  turns.busy = true;
  Entry& e = entry(number);
  e.begun = now;
  e.completed = now + (e.record.end - e.record.start);
  post(die, e.completed, kTurnEnds, static_cast<std::uint64_t>(queue));
  happened(number, Kind::completion, e.completed);
  settle();
}

void Replay::completed(std::uint64_t number, int die, Time at) {
  acting_.mine().die = die;
  Entry& e = entry(number);
  e.completed = std::max(e.completed, at);
  if (++e.pieces_completed < e.pieces) return;
  happened(number, Kind::completion, e.completed);
  settle();
}

void Replay::arrived(std::uint64_t number, int die, std::uint32_t bytes, Time at) {
  acting_.mine().die = die;
  Entry& e = entry(number);
  e.to_arrive -= std::min<std::uint64_t>(e.to_arrive, bytes);
  if (e.to_arrive != 0) return;
  happened(number, Kind::arrival, at);
  settle();
}

// An arrival is handled by the thread of the die that it is at, the rest by that of the record's own die.
void Replay::happened(std::uint64_t number, Kind kind, Time at) {
  Entry& e = entry(number);
  Past& past = e.past;
  Acting& acting = acting_.mine();
  (kind == Kind::completion ? past.completed : kind == Kind::arrival ? past.arrived : past.issued) = at;
  bool arrived = kind == Kind::arrival;
  // What leaves no arrival, and what takes no time, got everywhere when it was complete.
  if (kind == Kind::completion) {
    if (past.arrived == Time::never()) past.arrived = at, past.target = past.die, arrived = true;
    if (!e.record.moves()) past.issued = at;
  }
  if (kind != Kind::arrival && !e.waiters.empty()) acting.told.push_back(number);
  if (arrived && !e.arrival_waiters.empty()) acting.told_arrivals.push_back(number);
}

// What has happened lets others begin, and those that take no time let others begin in turn.
void Replay::settle() {
  Acting& acting = acting_.mine();
  const auto first_of = [](std::deque<std::uint64_t>& list) {
    const std::uint64_t number = list.front();
    list.pop_front();
    return number;
  };
  for (;;) {
    if (!acting.told.empty()) {
      const std::uint64_t number = first_of(acting.told);
      notify_waiters(number, entry(number).waiters);
    } else if (!acting.told_arrivals.empty()) {
      const std::uint64_t number = first_of(acting.told_arrivals);
      notify_waiters(number, entry(number).arrival_waiters);
    } else if (!acting.resolved.empty()) {
      resolved(first_of(acting.resolved));
    } else {
      return;
    }
  }
}

// Records of another die are notified between windows.
void Replay::notify_waiters(std::uint64_t number, std::vector<Waiter>& waiters) {
  Acting& acting = acting_.mine();
  bool later = false;
  std::erase_if(waiters, [&](const Waiter& w) {
    if (known(number, w.kind) == Time::never()) return false;
    if (acting.die >= 0 && entry(w.number).owner != acting.die) {
      later = true;
      return false;
    }
    release_waiter(w.number, {number, w.kind, w.delay});
    return true;
  });
  if (later) acting.later.push_back(number);
}

void Replay::release_waiter(std::uint64_t number, const TrafficDependency& on) {
  Entry& e = entry(number);
  release(on, e);
  if (joins(e.record)) --waits_on(e, die_told(on));
  if (--e.unresolved == 0) {
    acting_.mine().resolved.push_back(number);
  } else if (joins(e.record)) {
    own_if_on_one_die(number);
  }
}

// The die whose thread handles it first; kNobody: it is handled between windows.
int Replay::die_told(const TrafficDependency& on) const {
  const Entry& e = entries_[on.on - base_];
  if (joins(e.record)) return e.owner;
  const TrafficRecord& r = e.record;
  const bool arrives = on.kind == Kind::arrival && r.kind == TrafficRecord::Kind::transfer &&
                       r.operation != sim::Operation::read && !r.target.cpu;
  return arrives ? r.target.number : r.source.number;
}

std::uint32_t& Replay::waits_on(Entry& joint, int die) {
  for (auto& [place, count] : joint.left) {
    if (place == die) return count;
  }
  return joint.left.emplace_back(die, 0).second;
}

// A point whose causes still to come are all on one die goes on with that die's thread, and so do points that
// wait for it in turn. What has come from elsewhere is at least a window old then, or this is between
// windows.
void Replay::own_if_on_one_die(std::uint64_t number) {
  for (std::vector<std::uint64_t> points{number}; !points.empty();) {
    Entry& e = entry(points.back());
    points.pop_back();
    if (e.owner != kNobody || e.unresolved == 0) continue;
    std::erase_if(e.left, [](const auto& left) { return left.second == 0; });
    if (e.left.size() != 1 || e.left.front().first == kNobody) continue;
    e.owner = e.left.front().first;
    for (const std::vector<Waiter>* waiters : {&e.waiters, &e.arrival_waiters}) {
      for (const Waiter& w : *waiters) {
        Entry& waiting = entry(w.number);
        if (!joins(waiting.record)) continue;
        --waits_on(waiting, kNobody);
        ++waits_on(waiting, e.owner);
        points.push_back(w.number);
      }
    }
  }
}

void Replay::between_windows(Time reached) {
  reached_ = reached;
  std::vector<std::uint64_t> later;
  acting_.each([&](Acting& acting) {
    acting.die = -1;
    later.insert(later.end(), acting.later.begin(), acting.later.end());
    acting.later.clear();
  });
  // In one order, whoever heard of them first.
  std::ranges::sort(later);
  later.erase(std::unique(later.begin(), later.end()), later.end());
  for (const std::uint64_t number : later) {
    notify_waiters(number, entry(number).waiters);
    notify_waiters(number, entry(number).arrival_waiters);
  }
  settle();
  feed();
}

// Takes what is finished off the front.
void Replay::retire() {
  while (!entries_.empty()) {
    Entry& e = entries_.front();
    const bool finished = e.past.completed != Time::never() && e.past.issued != Time::never();
    if (!finished) return;
    if (options_.reach != 0) {
      const std::size_t slot = base_ % options_.reach;
      if (slot >= past_.size()) past_.resize(slot + 1);
      past_[slot] = e.past;
    }
    const bool own =
        e.record.kind == TrafficRecord::Kind::launch || e.record.kind == TrafficRecord::Kind::transfer;
    if (own && !e.record.words.empty()) expected_.erase(key_of(e.record));
    if (options_.message && e.record.kind == TrafficRecord::Kind::transfer) {
      // A stream's copy has its turn when its stream says so.
      const Time ready = by_own_models() && e.record.of_host() ? e.begun : std::min(e.ready, e.begun);
      options_.message({base_, e.record, transaction_of(e.record, base_), ready, e.begun, e.past.completed});
    }
    if (options_.finished) options_.finished(e.record, e.begun, e.past.completed);
    entries_.pop_front();
    ++base_;
  }
}

}  // namespace cm384::host
