// Replays a traffic trace on a machine: the dies' MTE engines move what the trace says, in place of programs.
//
// By time stamp, a transaction's requests leave from its recorded start on; by dependency, once all it waited
// for has happened and the recorded delay has passed. Either way a pipe takes its copies in the order of the
// trace, one at a time, as the real one does, and everything below it is the machine's own model. A transfer
// without a core is cut into pieces for all cores of its die and takes no turn in their order.
//
// What the trace records of host threads, streams and kernels (traces/host_words.h) is done by the machine's
// own models, by dependency: host threads make the recorded calls, task schedulers execute the entries, their
// copies go through the SDMA engine's queues. Only the programs are missing: a block ends when what it waited
// for last has happened.
//
// What is held is bounded: records under way, and three times of each of the last records that others may
// still wait for, at most traces::kReach. A
// dependency between dies takes at least the machine's lookahead.
//
// Dies may run side by side: what happens on one lets others on the same die go on at once, those elsewhere
// between two windows, which is before they may begin. A point that joins others belongs to the die on which
// all is that it still waits for. Records are read and finished between windows too. Only what host threads
// do needs one order.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/engine/worker.h"
#include "npu_core/pipes/pipe_observer.h"
#include "system/host/host_thread.h"
#include "system/machine/supernode.h"
#include "traces/traffic.h"

namespace cm384::host {

struct ReplayedMessage {
  std::uint64_t number = 0;  // of the record
  const traces::TrafficRecord& recorded;
  sim::TransactionId transaction = 0;
  // All it waited for has happened, or its recorded time; its first request leaves; the last is answered.
  Time ready, start, end;
};

struct ReplayOptions {
  enum class Mode { time, dependency } mode = Mode::dependency;
  // How what moves between dies gets there: as each record says, or all of it by one plane.
  enum class Path { recorded, ub, rdma } path = Path::recorded;
  int cores = 48;                        // that share a transfer without a core
  std::uint64_t piece_bytes = 16 << 10;  // of such a transfer, at least
  std::size_t window = 1u << 18;         // records under way at most
  std::uint64_t reach = traces::kReach;  // no record waits for one that is further back (TrafficUnits)
  bool host = true;                      // host threads, streams or kernels may come
  // Called for each finished record, with the times of the replay, in the order of the trace.
  std::function<void(const traces::TrafficRecord& recorded, Time start, Time end)> finished;
  // Called before that for each finished transfer to other memory.
  std::function<void(const ReplayedMessage&)> message;
};

// Units that a trace names, found by reading it once.
struct TrafficUnits {
  std::set<int> dies, sockets;
  int cores = 0;  // one more than the highest number of a core
  std::uint64_t records = 0;
  std::uint64_t reach = 0;  // how far back a record waits for another one, at most
  bool rdma = false;        // something takes the RDMA plane
  bool host = false;        // host threads, streams or kernels

  // Those that entries of streams and meetings of host threads name.
  void add_host(const traces::TrafficRecord& record);
};
TrafficUnits units_of(traces::TrafficSource& source);

class Replay final : private supernode::Driver, private npu::BlockRunner {
 public:
  // The machine must have all units of the trace. Both outlive the replay.
  Replay(supernode::Supernode& machine, traces::TrafficSource& source, ReplayOptions options);
  ~Replay();

  // False when interrupted. Throws InputError where the trace does not fit the machine, MachineError where it
  // stalls.
  bool run();
  std::uint64_t finished() const { return base_; }
  // How much later than recorded all of it begins: a trace may begin at 0, the machine a step later.
  Time origin() const { return origin_; }

 private:
  enum What : std::uint32_t { kLane, kFill, kCopy, kGiven, kBlockEnds, kShare, kTurn, kTurnEnds };

  static constexpr int kNobody = -3;

  struct Past {  // when a record got how far; never: not yet
    Time issued = Time::never(), arrived = Time::never(), completed = Time::never();
    // Where it was issued and complete, where it arrived; -1: no die.
    int die = -1, target = -1;
    static constexpr int kEverywhere = -2;  // the whole machine was idle, or it hangs on the trace alone
    // Of a point that joins others, whatever the delays: when the last of them happened, on `die`, and the
    // last of those that happened elsewhere.
    Time told{}, told_elsewhere{};
  };
  struct Waiter {
    std::uint64_t number = 0;
    traces::TrafficDependency::Kind kind{};
    Time delay;
  };
  struct Entry {
    traces::TrafficRecord record;
    Past past;
    Time ready{}, begun = Time::never(), completed{};
    std::uint32_t unresolved = 0;
    // The die whose thread may change it while dies run: its own, or of a point that joins others the only
    // one that these are on.
    int owner = kNobody;
    std::vector<std::pair<int, std::uint32_t>> left;  // of such a point: unresolved, by die
    std::uint32_t pieces = 1, pieces_issued = 0, pieces_completed = 0;
    std::uint64_t to_arrive = 0;  // bytes
    // For its issue or completion, which happen on its die, and for its arrival at another one.
    std::vector<Waiter> waiters, arrival_waiters;
  };
  // What the thread of a worker has in hand.
  struct Acting {
    int die = -1;  // whose event is being handled; -1: between windows
    std::deque<std::uint64_t> resolved, told, told_arrivals;  // records to be looked at by settle()
    std::vector<std::uint64_t> later;                         // that others wait for who run elsewhere
  };
  struct Piece {
    std::uint64_t number = 0;
    std::uint64_t offset = 0, bytes = 0;  // within the transfer; 0 bytes: all of it, as recorded
  };
  // A pipe of a core: what it has still to do, in order.
  struct Lane {
    std::deque<Piece> pieces;
    std::uint64_t recorded = 0;  // of them: whole transfers, which keep their order
    std::uint64_t current = 0;
    bool armed = false;
  };
  // Records of time without traffic that run one at a time: those that are ready, by when they were.
  struct Turns {
    std::set<std::pair<Time, std::uint64_t>> ready;
    bool busy = false;
  };
  struct OfDie {
    int next_core = 0;           // that takes the next piece
    std::map<int, Turns> turns;  // by queue
  };
  struct CoreObserver;
  // What the machine's own models do: of a block that begins its launch and number, of a copy its stream and
  // how many that had before.
  struct OwnKey {
    int die = 0;
    bool copy = false;
    std::uint64_t of = 0, number = 0;
    constexpr auto operator<=>(const OwnKey&) const = default;
  };
  // How far it got before its record was read.
  struct Early {
    Past past;
    Time begun = Time::never();
    std::uint64_t arrived = 0;  // bytes
    Time last_arrival;
  };
  // What a transaction's id stands for: its entry, or what is known of one to come.
  struct Subject {
    std::uint64_t number = 0;
    Entry* entry = nullptr;
    Early* early = nullptr;
  };

  void handle(int die, const sim::Event& event) override;
  void task_finished(int die, const npu::TaskRecord& record) override;
  void feed();
  void enter(traces::TrafficRecord& record);
  void check(const traces::TrafficRecord& record) const;
  const Past& past_of(std::uint64_t number) const {
    return number >= base_ ? entries_[number - base_].past : past_[number % options_.reach];
  }
  Time known(std::uint64_t number, traces::TrafficDependency::Kind kind) const;
  int place_of(const traces::TrafficDependency& on) const;
  void join(const traces::TrafficDependency& on, Past& joint) const;
  void release(const traces::TrafficDependency& on, Entry& waiting) const;
  void resolved(std::uint64_t number);
  void happened(std::uint64_t number, traces::TrafficDependency::Kind kind, Time at);
  void settle();
  void notify_waiters(std::uint64_t number, std::vector<Waiter>& waiters);
  int die_told(const traces::TrafficDependency& on) const;
  static std::uint32_t& waits_on(Entry& joint, int die);
  void own_if_on_one_die(std::uint64_t number);
  void release_waiter(std::uint64_t number, const traces::TrafficDependency& on);
  void between_windows(Time reached);
  void split_over_cores(std::uint64_t number);
  std::vector<Lane>& lanes_of(int die);
  void post(int die, Time at, std::uint32_t what, std::uint64_t argument);
  void arm(int die, std::size_t lane);
  std::uint64_t by_path(int die, std::uint64_t address) const;
  std::uint64_t address_of(const traces::TrafficRecord& record) const;
  void fill(std::uint64_t number, int die, Time now);
  void take_turn(int die, int queue, Time now);
  void start_next(int die, std::size_t lane);
  void start_copy(std::uint64_t number, int die);
  void copy_issued(sim::TransactionId id);
  void issued(int die, std::size_t lane, Time at);
  void completed(std::uint64_t number, int die, Time at);
  void arrived(std::uint64_t number, int die, std::uint32_t bytes, Time at);
  void retire();
  // replay_host.cpp: what the machine's own models do
  static OwnKey key_of(const traces::TrafficRecord& record);
  sim::TransactionId transaction_of(const traces::TrafficRecord& record, std::uint64_t number) const;
  Subject subject_of(sim::TransactionId id);
  bool enter_timeless(std::uint64_t number);
  bool enter_own(std::uint64_t number);
  void expect(std::uint64_t number);
  void begun(sim::TransactionId id, Time at);
  void make_stream(const traces::TrafficRecord& record);
  void register_kernel(const traces::TrafficRecord& record);
  cm384_task task_of(std::uint64_t number, const traces::TrafficRecord& record, std::uint64_t stream) const;
  void submit_given(std::uint64_t number);
  HostCall submission(std::uint64_t number);
  void make_call(std::uint64_t number);
  void check_unfolded() const;  // nothing waits for a call that hands it over
  void call_done(int die, const HostCall& call, Time begin, Time end);
  void end_block(std::uint64_t number);
  void run_block(int die, const npu::BlockStart& block) override;
  sim::TransactionId copy_begins(int die, std::uint32_t stream) override;
  bool by_own_models() const { return cores_ && options_.mode == ReplayOptions::Mode::dependency; }
  Entry& entry(std::uint64_t number) { return entries_[number - base_]; }
  Lane& lane(int die, std::size_t index) { return lanes_[static_cast<std::size_t>(die)][index]; }

  supernode::Supernode& machine_;
  traces::TrafficSource& source_;
  ReplayOptions options_;
  bool cores_;                            // the machine's accelerators have them
  std::vector<std::vector<Lane>> lanes_;  // by die, core and engine
  std::vector<std::unique_ptr<CoreObserver>> observers_;
  std::vector<std::uint32_t> units_;  // by die: of its events
  std::vector<OfDie> dies_;
  std::deque<Entry> entries_;  // from base_
  std::uint64_t base_ = 0, next_ = 0;
  std::vector<Past> past_;  // ring over options_.reach, grown as the trace goes on
  sim::PerWorker<Acting> acting_;
  std::vector<std::unique_ptr<HostThread>> hosts_;  // by die
  std::map<OwnKey, std::uint64_t> expected_;        // records that the machine's own models bring forth
  std::map<OwnKey, Early> early_;
  std::map<std::pair<int, std::uint32_t>, std::uint64_t> copies_;   // begun, by die and stream
  std::map<OwnKey, std::uint16_t> blocks_;                          // under way: their cores
  std::map<OwnKey, std::uint64_t> ended_;                           // that end before they begin
  std::map<std::pair<int, std::uint64_t>, std::uint32_t> kernels_;  // by die and number in the trace
  std::map<int, std::vector<HostCall>> unfolded_;  // by die: entries that the next unfold hands over
  std::map<std::array<std::uint64_t, 2>, std::shared_ptr<HostBarrier>> barriers_;  // by who counts, number
  std::map<int, std::uint64_t> rings_;  // by die: bytes of streams at the end of memory
  bool resting_ = false;                // all is given until the machine is idle
  bool read_all_ = false, done_ = false;
  Time began_{};
  Time reached_{};  // nothing is posted before it between windows
  Time origin_{};
};

}  // namespace cm384::host
