#include "workloads/collectives/transfer_collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "system/machine/driver.h"

namespace cm384::studies {
namespace {

using reference::CollectiveKind;

// One collective after another over all ranks of a machine.
class Rounds final : public supernode::Driver {
 public:
  Rounds(Session& session, const TransferCollectiveCase& made)
      : machine_(session.machine()),
        made_(made),
        ranks_(static_cast<std::size_t>(made.collective.ranks)),
        part_(part_bytes(made.collective)),
        plan_(operators::rounds_of(made.collective.kind, made.algorithm, made.collective.ranks,
                                   machine_.parameters().topology)) {
    constexpr std::uint64_t kSlot = 512;
    slot_ = (part_ + kSlot - 1) / kSlot * kSlot;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const int die = static_cast<int>(rank);
      events_.push_back(machine_.attach(die, *this));
      for (std::vector<std::uint64_t>* places : {&from_, &to_}) {
        places->push_back(session.runtime().allocate(die, ranks_ * slot_));
        session.runtime().mark_payload(places->back(), ranks_ * slot_);
      }
    }
    plan_moves();
    machine_.need_order("a collective of transfers");
    machine_.follow_transactions();
    machine_.probes().transaction_arrived.attach(
        this, [](void* self, sim::TransactionId id, int, std::uint32_t bytes, Time at) {
          static_cast<Rounds*>(self)->arrived(id, bytes, at);
        });
  }
  ~Rounds() { machine_.probes().transaction_arrived.detach(this); }
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  // The ends of all ranks since the begin; empty when interrupted.
  std::vector<double> run() {
    begin_ = machine_.earliest();
    left_.assign(moves_.size(), part_);
    states_ = planned_;
    machine_.unfinished() += ranks_;
    const Time start = begin_ + machine_.parameters().processor.launch_latency;
    for (std::size_t rank = 0; rank < ranks_; ++rank) queue_of(rank).push(start, events_[rank], kBegin, 0);
    if (!machine_.run()) return {};
    std::vector<double> times;
    for (const State& state : states_) times.push_back((state.end - begin_).us());
    return times;
  }

  void handle(int die, const sim::Event& event) override {
    const auto rank = static_cast<std::size_t>(die);
    if (event.what == kBegin) return begin(rank);
    ++states_[rank].round;
    begin(rank);
  }
  std::string report(int die) const override {
    return fmt::format("die {} is in round {} of a collective\n", die,
                       states_[static_cast<std::size_t>(die)].round + 1);
  }

 private:
  enum What : std::uint32_t { kBegin, kNext };
  struct Move {
    std::size_t round;
    operators::PartMove part;
    std::uint64_t place;  // of what the target gets in this round
  };
  struct Awaited {
    std::uint32_t moves = 0, received = 0, sums = 0;  // sums: different parts among those received
  };
  struct State {
    std::size_t round = 0;
    std::vector<Awaited> rounds;
    Time end;
    bool begun = false;  // the round; what others send for it may come before
  };

  void plan_moves() {
    planned_.assign(ranks_, State{0, std::vector<Awaited>(plan_.rounds.size()), {}, false});
    for (std::size_t round = 0; round < plan_.rounds.size(); ++round) {
      std::vector<std::vector<bool>> known(ranks_, std::vector<bool>(ranks_));
      for (const operators::PartMove& move : plan_.rounds[round]) {
        const auto to = static_cast<std::size_t>(move.to), part = static_cast<std::size_t>(move.part);
        Awaited& target = planned_[to].rounds[round];
        moves_.push_back({round, move, target.received++});
        ++target.moves;
        ++planned_[static_cast<std::size_t>(move.from)].rounds[round].moves;
        if (!known[to][part]) ++target.sums;
        known[to][part] = true;
      }
    }
  }

  sim::EventQueue& queue_of(std::size_t rank) { return machine_.accelerator(static_cast<int>(rank)).queue(); }

  void begin(std::size_t rank) {
    State& state = states_[rank];
    const Time now = queue_of(rank).now();
    if (state.round == plan_.rounds.size()) {
      state.end = now + machine_.parameters().processor.end_latency;
      --machine_.unfinished();
      return;
    }
    state.begun = true;
    for (std::size_t number = 0; number < moves_.size(); ++number) {
      const Move& move = moves_[number];
      if (move.round != state.round || static_cast<std::size_t>(move.part.from) != rank) continue;
      machine_.accelerator(move.part.from)
          .transfer({from_[rank] + static_cast<std::uint64_t>(move.part.part) * slot_,
                     to_[static_cast<std::size_t>(move.part.to)] + move.place * slot_, part_, number + 1});
    }
    if (state.rounds[state.round].moves == 0) go_on(rank, now);  // what others sent is all here already
  }

  void arrived(sim::TransactionId id, std::uint32_t bytes, Time at) {
    if (id == 0) return;
    const auto number = static_cast<std::size_t>(id - 1);
    left_[number] -= bytes;
    if (left_[number] != 0) return;
    const Move& move = moves_[number];
    for (const int rank : {move.part.from, move.part.to}) {
      const auto own = static_cast<std::size_t>(rank);
      State& state = states_[own];
      if (--state.rounds[move.round].moves == 0 && state.round == move.round && state.begun)
        go_on(own, std::max(at, queue_of(own).now()));
    }
  }

  // Adds up what came in the rank's round, and takes up the next one.
  void go_on(std::size_t rank, Time at) {
    State& state = states_[rank];
    const hw::Processor& processor = machine_.parameters().processor;
    Time next = at + processor.poll_latency;
    state.begun = false;
    const auto [moves, received, sums] = state.rounds[state.round];
    if (adds() && state.round < plan_.gathers_from && received > 0) {
      // What has come and what it has already are read, the sums are written.
      const std::uint64_t bytes = (received + 2 * std::uint64_t{sums}) * part_;
      next += adding(bytes);
      npu::UnitWork work;
      work.bytes = work.memory_bytes = bytes;
      machine_.accelerator(static_cast<int>(rank)).count_work(work);
    }
    queue_of(rank).push(next, events_[rank], kNext, 0);
  }
  bool adds() const {
    return made_.collective.kind == CollectiveKind::reduce_scatter ||
           made_.collective.kind == CollectiveKind::all_reduce;
  }
  // By all units, as far as the memory lets them.
  Time adding(std::uint64_t bytes) const {
    const hw::Machine& machine = machine_.parameters();
    const double units = machine.processor.units *
                         static_cast<double>(machine.processor.unit_bandwidth.bytes_per_second),
                 memory = static_cast<double>(machine.transfer_engine.memory_bandwidth.bytes_per_second) *
                          machine.processor.memory_efficiency;
    const double seconds = static_cast<double>(bytes) / std::min(units, memory);
    return machine.transfer_engine.memory_read_latency + Time{static_cast<std::int64_t>(seconds * 1e12)};
  }

  supernode::Supernode& machine_;
  TransferCollectiveCase made_;
  std::size_t ranks_;
  std::uint64_t part_, slot_ = 0;
  operators::CopyRounds plan_;
  std::vector<Move> moves_;
  std::vector<std::uint32_t> events_;     // units of events, by rank
  std::vector<std::uint64_t> from_, to_;  // by rank
  Time begin_;
  std::vector<std::uint64_t> left_;      // by move: bytes on their way
  std::vector<State> planned_, states_;  // by rank
};

}  // namespace

std::uint64_t part_bytes(const reference::CollectiveCase& collective) {
  const auto ranks = static_cast<std::uint64_t>(collective.ranks);
  return collective.kind == CollectiveKind::all_reduce ? (collective.bytes + ranks - 1) / ranks
                                                       : collective.bytes;
}

std::optional<TransferCollectiveReading> run_transfer_collective(const StudyContext& context,
                                                                 const std::string& what,
                                                                 const TransferCollectiveCase& made,
                                                                 SimulatorCounts& counts) {
  SessionOptions options;
  for (int rank = 0; rank < made.collective.ranks; ++rank) options.dies.push_back(rank);
  options.what = what;
  Session session(context, options);
  Rounds rounds(session, made);
  const hw::Processor& processor = context.machine.processor;
  const int all = made.warmup + made.iterations;
  TransferCollectiveReading reading;
  for (int run = 0; run < all; ++run) {
    if (run == made.warmup) session.begin_counted();
    const std::vector<double> ends = rounds.run();
    if (ends.empty()) return {};
    session.done(static_cast<double>(run + 1) / all);
    if (run < made.warmup) continue;
    for (const double end : ends) reading.task_us += end / static_cast<double>(ends.size()) / made.iterations;
    reading.pace_us += *std::ranges::max_element(ends) / made.iterations;
  }
  session.count(counts);
  reading.kernel_us = reading.task_us - (processor.launch_latency + processor.end_latency).us();
  double moves = 0;
  for (const operators::CopyRound& round :
       operators::rounds_of(made.collective.kind, made.algorithm, made.collective.ranks,
                            context.machine.topology)
           .rounds)
    moves += static_cast<double>(round.size());
  reading.sent_bytes = moves * static_cast<double>(part_bytes(made.collective)) / made.collective.ranks;
  return reading;
}

}  // namespace cm384::studies
