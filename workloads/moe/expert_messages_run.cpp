#include "workloads/moe/expert_messages_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "system/host/placement.h"
#include "workloads/frame/session.h"
#include "workloads/moe/moe_case.h"

namespace cm384::studies {
namespace {

constexpr std::uint64_t kSlot = 512;  // what slots of messages are a multiple of

// One exchange after another over all ranks of a machine.
class MessagesRun final : public supernode::Driver {
 public:
  MessagesRun(Session& session, const ExpertExchange& exchange, const reference::DispatchCase& layer,
              ExchangeDirection direction, std::vector<int> dies)
      : machine_(session.machine()),
        exchange_(exchange),
        layer_(layer),
        direction_(direction),
        dies_(std::move(dies)) {
    const std::uint64_t slot = (exchange.bytes + kSlot - 1) / kSlot * kSlot;
    first_message_.push_back(0);
    std::vector<std::uint32_t> arrive(exchange.messages.size());
    for (std::size_t rank = 0; rank < exchange.messages.size(); ++rank) {
      first_message_.push_back(first_message_.back() + exchange.messages[rank].size());
      for (const ExpertMessage& message : exchange.messages[rank]) {
        owner_.push_back(static_cast<std::uint16_t>(rank));
        place_.push_back(arrive[message.target]++ * slot);
      }
    }
    for (std::size_t rank = 0; rank < exchange.messages.size(); ++rank) {
      const int die = dies_[rank];
      rank_of_die_.resize(std::max(rank_of_die_.size(), static_cast<std::size_t>(die) + 1));
      rank_of_die_[static_cast<std::size_t>(die)] = rank;
      units_.push_back(machine_.attach(die, *this));
      // A region to send from, one to receive in, and flags of both.
      const auto reserve = [&](std::uint64_t bytes) {
        const std::uint64_t address = session.runtime().allocate(die, std::max(kSlot, bytes));
        session.runtime().mark_payload(address, std::max(kSlot, bytes));
        return address;
      };
      from_.push_back(reserve(exchange.messages[rank].size() * slot));
      to_.push_back(reserve(arrive[rank] * slot));
      flags_.push_back(reserve(exchange.pairs.size() * kExchangeFlagBytes));
    }
    machine_.need_order("an exchange of messages");
    machine_.follow_transactions();
    machine_.probes().transaction_completed.attach(this, [](void* self, const npu::TransactionCompleted& t) {
      static_cast<MessagesRun*>(self)->acknowledged(t);
    });
    machine_.probes().transaction_arrived.attach(
        this, [](void* self, sim::TransactionId id, int, std::uint32_t bytes, Time at) {
          static_cast<MessagesRun*>(self)->arrived(id, bytes, at);
        });
  }
  ~MessagesRun() {
    machine_.probes().transaction_completed.detach(this);
    machine_.probes().transaction_arrived.detach(this);
  }
  MessagesRun(const MessagesRun&) = delete;
  MessagesRun& operator=(const MessagesRun&) = delete;

  // Times of all ranks; empty when interrupted.
  std::vector<double> run() {
    begin_ = machine_.earliest();
    const std::size_t ranks = exchange_.messages.size();
    left_.assign(owner_.size(), exchange_.bytes);
    states_.assign(exchange_.pairs.size(), {});
    ends_.assign(ranks, {});
    ranks_.clear();
    for (std::size_t rank = 0; rank < ranks; ++rank) begin_rank(rank);
    machine_.unfinished() += ranks;
    if (!machine_.run()) return {};
    std::vector<double> times;
    for (const Time end : ends_) times.push_back((end - begin_).us());
    return times;
  }

  void handle(int die, const sim::Event& event) override {
    const auto number = static_cast<std::size_t>(event.argument);
    switch (static_cast<What>(event.what)) {
      case kPost:
        return post(rank_of(die), number);
      case kFlag:
        return send_flag(number);
    }
  }
  std::string report(int die) const override {
    return fmt::format("die {} waits for {} flags of an exchange\n", die, ranks_[rank_of(die)].pairs);
  }

 private:
  enum What : std::uint32_t { kPost, kFlag };
  struct PairState {
    std::uint32_t posted = 0, acknowledged = 0, arrived = 0;
    bool counted = false, flagged = false, told = false;
  };
  struct RankState {
    std::uint32_t pairs = 0;  // whose messages are not all here
    UnitsOfPairs units{1, 1};
    std::vector<Time> free;  // by unit that receives
  };

  const hw::Processor& processor() const { return machine_.parameters().processor; }
  std::size_t messages() const { return owner_.size(); }

  void begin_rank(std::size_t rank) {
    const std::uint32_t pairs = exchange_.first_pair[rank + 1] - exchange_.first_pair[rank];
    RankState& state = ranks_.emplace_back();
    state.pairs = pairs;
    state.units = UnitsOfPairs(pairs, processor().units);
    state.free.assign(state.units.units_used, begin_ + exchange_.sent[rank]);
    sim::EventQueue& queue = queue_of(rank);
    for (std::size_t n = 0; n < exchange_.messages[rank].size(); ++n)
      queue.push(begin_ + exchange_.messages[rank][n].posted, units_[rank], kPost, n);
    for (std::uint32_t n = 0; n < exchange_.pairs.size(); ++n) {
      if (exchange_.pairs[n].source == rank)
        queue.push(begin_ + exchange_.pairs[n].counted, units_[rank], kFlag, n);
    }
  }

  void transfer(std::size_t source, std::size_t target, Carrier carrier, const npu::Transfer& transfer) {
    npu::Transfer sent = transfer;
    if (carrier == Carrier::rdma && source != target) sent.destination |= CM384_GM_VIA_RDMA_BIT;
    machine_.accelerator(dies_[source]).transfer(sent);
  }

  void post(std::size_t rank, std::size_t number) {
    const ExpertMessage& message = exchange_.messages[rank][number];
    const std::size_t index = first_message_[rank] + number;
    if (message.carrier == Carrier::memory) {
      left_[index] = 0;
      ++states_[message.pair].acknowledged;
      return count_arrival(message.pair, queue_of(rank).now());
    }
    const std::uint64_t slot = (exchange_.bytes + kSlot - 1) / kSlot * kSlot;
    transfer(rank, message.target, message.carrier,
             {from_[rank] + number * slot, to_[message.target] + place_[index], exchange_.bytes, index + 1});
  }

  sim::EventQueue& queue_of(std::size_t rank) { return machine_.accelerator(dies_[rank]).queue(); }
  std::size_t rank_of(int die) const { return rank_of_die_[static_cast<std::size_t>(die)]; }

  // All messages of a pair are posted, and counted: its flag goes behind them on a queue pair of a network
  // interface, which keeps their order. Stores to a peer have no such order: it waits for their
  // acknowledgements.
  void send_flag(std::size_t number) {
    const ExpertPair& pair = exchange_.pairs[number];
    PairState& state = states_[number];
    state.counted = true;
    if (pair.carrier == Carrier::bus && state.acknowledged < pair.messages) return;
    if (state.flagged) return;
    state.flagged = true;
    if (pair.carrier == Carrier::memory) return flag_arrived(number, queue_of(pair.source).now());
    transfer(pair.source, pair.target, pair.carrier,
             {flags_[pair.source], flags_[pair.target] + number * kExchangeFlagBytes, kExchangeFlagBytes,
              messages() + number + 1});
  }

  void acknowledged(const npu::TransactionCompleted& t) {
    if (t.id == 0 || t.id > messages()) return;
    const std::size_t index = t.id - 1, rank = owner_[index];
    const ExpertMessage& message = exchange_.messages[rank][index - first_message_[rank]];
    PairState& state = states_[message.pair];
    ++state.acknowledged;
    if (message.carrier != Carrier::bus || !state.counted || state.flagged) return;
    if (state.acknowledged == exchange_.pairs[message.pair].messages)
      queue_of(rank).push(std::max(t.at, queue_of(rank).now()), units_[rank], kFlag, message.pair);
  }

  void arrived(sim::TransactionId id, std::uint32_t bytes, Time at) {
    if (id == 0) return;
    if (id > messages()) return flag_arrived(id - 1 - messages(), at);
    const std::size_t index = id - 1, rank = owner_[index];
    left_[index] -= bytes;
    if (left_[index] == 0) count_arrival(exchange_.messages[rank][index - first_message_[rank]].pair, at);
  }

  void count_arrival(std::size_t number, Time at) {
    ++states_[number].arrived;
    look_at(number, at);
  }
  void flag_arrived(std::size_t number, Time at) {
    states_[number].told = true;
    look_at(number, at);
  }

  // A pair whose messages and flag are there.
  void look_at(std::size_t number, Time at) {
    const PairState& state = states_[number];
    const ExpertPair& pair = exchange_.pairs[number];
    if (!state.told || state.arrived != pair.messages) return;
    RankState& rank = ranks_[pair.target];
    const auto unit =
        static_cast<std::uint32_t>(number - exchange_.first_pair[pair.target]) / rank.units.each;
    Time& free = rank.free[unit];
    free = std::max(free, at + processor().poll_latency);
    if (direction_ == ExchangeDirection::dispatch && pair.messages != 0) {
      // Rows go from their slots to where the experts read them, side by side.
      free += machine_.parameters().transfer_engine.memory_read_latency +
              unit_time(processor(), 2 * std::uint64_t{exchange_.bytes} * pair.messages);
    }
    if (--rank.pairs == 0) finish(pair.target);
  }

  void finish(std::size_t rank) {
    Time end = *std::ranges::max_element(ranks_[rank].free);
    if (direction_ == ExchangeDirection::combine) {
      // Once all units know of all flags, each adds up the rows of its tokens.
      const std::int64_t turns =
          (layer_.tokens_of(static_cast<int>(rank)) + processor().units - 1) / processor().units;
      const std::uint64_t rows = static_cast<std::uint64_t>(layer_.top_k) + 1;
      end += processor().barrier_latency + (machine_.parameters().transfer_engine.memory_read_latency +
                                            unit_time(processor(), rows * exchange_.bytes)) *
                                               turns;
    }
    ends_[rank] = end + processor().end_latency;
    count_units(rank);
    --machine_.unfinished();
  }

  // What a rank's units moved: tokens or rows to where they are sent from, stores to peers, what came.
  void count_units(std::size_t rank) {
    const auto tokens = static_cast<std::uint64_t>(layer_.tokens_of(static_cast<int>(rank)));
    const bool dispatch = direction_ == ExchangeDirection::dispatch;
    std::uint64_t messages = dispatch ? 0 : 2 * exchange_.messages[rank].size();
    for (const ExpertMessage& message : exchange_.messages[rank])
      messages += dispatch && message.carrier != Carrier::rdma ? 1 : 0;
    for (std::size_t n = exchange_.first_pair[rank]; dispatch && n < exchange_.first_pair[rank + 1]; ++n)
      messages += 2 * std::uint64_t{exchange_.pairs[n].messages};
    npu::UnitWork work;
    work.bytes = messages * exchange_.bytes +
                 tokens * (dispatch ? 2 * static_cast<std::uint64_t>(layer_.hidden) + exchange_.bytes
                                    : (static_cast<std::uint64_t>(layer_.top_k) + 1) * exchange_.bytes);
    machine_.accelerator(dies_[rank]).count_work(work);
  }

  supernode::Supernode& machine_;
  const ExpertExchange& exchange_;
  const reference::DispatchCase& layer_;
  ExchangeDirection direction_;
  std::vector<int> dies_;  // by rank
  std::vector<std::size_t> rank_of_die_;
  std::vector<std::uint32_t> units_;              // of events, by rank
  std::vector<std::uint64_t> from_, to_, flags_;  // by rank
  std::vector<std::size_t> first_message_;        // by rank, and their number
  std::vector<std::uint16_t> owner_;              // by message: its rank
  std::vector<std::uint64_t> place_;              // by message: in the target's region
  Time begin_;
  std::vector<std::uint32_t> left_;  // by message: bytes on their way
  std::vector<PairState> states_;
  std::vector<RankState> ranks_;
  std::vector<Time> ends_;
};

}  // namespace

void refuse_options_of_cores(const StudyContext& context) {
  for (const char* name : {"cores", "payload", "variant", "real-polling", "check-hazards", "start-skew",
                           "free-fetch", "completion", "no-shared-output", "shared-copies", "across"}) {
    if (!context.given.contains(name)) continue;
    throw InputError(
        fmt::format("--{}: needs cores that run kernels, and accelerator.kind is {}; allowed: ascend", name,
                    context.machine.accelerator.kind));
  }
}

std::vector<int> first_dies(int ranks, const hw::Topology& topology) {
  if (ranks > topology.dies())
    throw InputError(fmt::format("--ranks: {} do not fit; allowed: 1 to {}, the dies of the machine", ranks,
                                 topology.dies()));
  std::vector<int> dies(static_cast<std::size_t>(ranks));
  std::iota(dies.begin(), dies.end(), 0);
  return dies;
}

DispatchReading measure_rounds(Session& session, const DispatchCase& setting,
                               const reference::DispatchCase& layer, const hw::Processor& processor,
                               const std::function<std::vector<double>()>& round, SimulatorCounts& counts) {
  const int rounds = setting.warmup + setting.iterations;
  std::vector<double> times;
  for (int k = 0; k < rounds; ++k) {
    if (k == setting.warmup) session.begin_counted();
    const std::vector<double> of_round = round();
    if (of_round.empty()) break;
    session.done(static_cast<double>(k + 1) / rounds);
    if (k >= setting.warmup) times.insert(times.end(), of_round.begin(), of_round.end());
  }
  session.count(counts);
  DispatchReading reading;
  static_cast<RoutedSetting&>(reading) = routed_setting(layer);
  std::vector<double> kernels = times;
  for (double& time : kernels) time -= (processor.launch_latency + processor.end_latency).us();
  reading.task_us = summarise(std::move(times));
  reading.kernel_us = summarise(std::move(kernels));
  return reading;
}

DispatchReading measure_messages(const StudyContext& context, const DispatchCase& setting,
                                 ExchangeDirection direction, SimulatorCounts& counts, double progress_from,
                                 double progress_to) {
  refuse_options_of_cores(context);
  SessionOptions options;
  const hw::Topology& topology = context.machine.topology;
  options.dies = first_dies(setting.ranks, topology);
  if (setting.placement != "linear")
    options.dies = host::place_ranks(setting.placement, setting.ranks, topology, context.seed);
  options.rdma = std::ranges::any_of(options.dies, [&](int die) {
    return topology.supernode_of(die) != topology.supernode_of(options.dies.front());
  });
  options.progress_from = progress_from;
  options.progress_to = progress_to;
  options.what = fmt::format(
      "{}, {} ranks", direction == ExchangeDirection::dispatch ? "dispatch" : "combine", setting.ranks);
  const reference::DispatchCase layer = make_moe_case(context.seed, setting);
  const ExpertExchange exchange = make_exchange(layer, context.machine, direction, options.dies);
  Session session(context, options);
  MessagesRun run(session, exchange, layer, direction, options.dies);
  return measure_rounds(
      session, setting, layer, context.machine.processor, [&run] { return run.run(); }, counts);
}

}  // namespace cm384::studies
