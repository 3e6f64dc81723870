#include "workloads/moe/normal_exchange_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "firmware/abi/memory_map.h"
#include "workloads/frame/session.h"
#include "workloads/moe/expert_messages_run.h"
#include "workloads/moe/moe_case.h"
#include "workloads/moe/normal_exchange.h"

namespace cm384::studies {
namespace {

class NormalRun final : public supernode::Driver {
 public:
  NormalRun(Session& session, const NormalExchange& exchange, std::size_t ranks)
      : machine_(session.machine()), exchange_(exchange), slot_((exchange.bytes + 511) / 512 * 512) {
    std::vector<std::uint64_t> sent(ranks), arrive(ranks);
    source_.resize(exchange.rows.size());
    places_.resize(exchange.rows.size());
    for (std::size_t number = 0; number < exchange.works.size(); ++number) {
      const UnitWork& work = exchange.works[number];
      for (std::uint32_t row = work.first; row < work.first + work.rows; ++row) {
        source_[row] = static_cast<std::uint32_t>(number);
        places_[row] = {sent[work.rank]++, arrive[exchange.works[exchange.rows[row]].rank]++};
      }
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const int die = static_cast<int>(rank);
      events_.push_back(machine_.attach(die, *this));
      const auto reserve = [&](std::uint64_t slots) {
        const std::uint64_t bytes = std::max<std::uint64_t>(slots, 1) * slot_;
        const std::uint64_t address = session.runtime().allocate(die, bytes);
        session.runtime().mark_payload(address, bytes);
        return address;
      };
      from_.push_back(reserve(sent[rank]));
      to_.push_back(reserve(arrive[rank]));
    }
    machine_.need_order("an exchange of rows");
    machine_.follow_transactions();
    machine_.probes().transaction_arrived.attach(
        this, [](void* self, sim::TransactionId id, int, std::uint32_t bytes, Time at) {
          static_cast<NormalRun*>(self)->arrived(id, bytes, at);
        });
  }
  ~NormalRun() { machine_.probes().transaction_arrived.detach(this); }
  NormalRun(const NormalRun&) = delete;
  NormalRun& operator=(const NormalRun&) = delete;

  // Times of all ranks; empty when interrupted.
  std::vector<double> run() {
    const hw::Processor& processor = machine_.parameters().processor;
    begin_ = machine_.earliest();
    const Time start = begin_ + processor.launch_latency;
    left_.assign(exchange_.rows.size(), exchange_.bytes);
    needs_.clear();
    for (const UnitWork& work : exchange_.works) needs_.push_back(work.needs);
    free_.assign(from_.size(), std::vector<Time>(static_cast<std::size_t>(processor.units), start));
    ends_.assign(from_.size(), start);
    machine_.unfinished() += exchange_.works.size();
    for (std::size_t number = 0; number < exchange_.works.size(); ++number) {
      if (exchange_.works[number].needs == 0) begin(number, start);
    }
    if (!machine_.run()) return {};
    std::vector<double> times;
    for (const Time end : ends_) times.push_back((end + processor.end_latency - begin_).us());
    return times;
  }

  void handle(int /*die*/, const sim::Event& event) override {
    const auto number = static_cast<std::size_t>(event.argument);
    event.what == kDone ? done(number) : post(number);
  }
  std::string report(int die) const override {
    return fmt::format("die {} waits for rows of an exchange\n", die);
  }

 private:
  enum What : std::uint32_t { kDone, kPost };
  struct Places {
    std::uint64_t from = 0, to = 0;  // slots
  };

  sim::EventQueue& queue_of(std::size_t rank) { return machine_.accelerator(static_cast<int>(rank)).queue(); }
  Carrier carrier(std::size_t row) const {
    return carrier_of(machine_.parameters().topology, exchange_.works[source_[row]].rank,
                      exchange_.works[exchange_.rows[row]].rank);
  }

  // A unit takes up its works in the order in which they can begin.
  void begin(std::size_t number, Time at) {
    const UnitWork& work = exchange_.works[number];
    Time& free = free_[work.rank][work.unit];
    free = std::max(free, at) + work.time;
    queue_of(work.rank).push(free, events_[work.rank], kDone, number);
  }

  void done(std::size_t number) {
    const UnitWork& work = exchange_.works[number];
    const Time now = queue_of(work.rank).now();
    ends_[work.rank] = std::max(ends_[work.rank], now);
    npu::UnitWork counted;
    counted.bytes = std::uint64_t{work.moved} * exchange_.bytes;
    machine_.accelerator(work.rank).count_work(counted);
    for (std::uint32_t row = work.first; row < work.first + work.rows; ++row) {
      if (carrier(row) == Carrier::rdma) {
        queue_of(work.rank).push(now + machine_.parameters().processor.post_latency, events_[work.rank],
                                 kPost, row);
      } else {
        post(row);
      }
    }
    --machine_.unfinished();
  }

  void post(std::size_t row) {
    const UnitWork& work = exchange_.works[source_[row]];
    const Carrier by = carrier(row);
    if (by == Carrier::memory) return row_arrived(row, queue_of(work.rank).now());
    std::uint64_t to = to_[exchange_.works[exchange_.rows[row]].rank] + places_[row].to * slot_;
    if (by == Carrier::rdma) to |= CM384_GM_VIA_RDMA_BIT;
    machine_.accelerator(work.rank).transfer(
        {from_[work.rank] + places_[row].from * slot_, to, exchange_.bytes, row + 1});
  }

  void arrived(sim::TransactionId id, std::uint32_t bytes, Time at) {
    if (id == 0) return;
    const auto row = static_cast<std::size_t>(id - 1);
    left_[row] -= bytes;
    if (left_[row] == 0) row_arrived(row, at);
  }

  void row_arrived(std::size_t row, Time at) {
    const std::size_t number = exchange_.rows[row];
    if (--needs_[number] != 0) return;
    const Time now = queue_of(exchange_.works[number].rank).now();
    begin(number, std::max(at, now) + machine_.parameters().processor.poll_latency);
  }

  supernode::Supernode& machine_;
  const NormalExchange& exchange_;
  std::uint64_t slot_;
  std::vector<std::uint32_t> events_;     // units of events, by rank
  std::vector<std::uint64_t> from_, to_;  // by rank
  std::vector<std::uint32_t> source_;     // by row: the work that sends it
  std::vector<Places> places_;            // by row
  Time begin_;
  std::vector<std::uint32_t> left_;      // by row: bytes on their way
  std::vector<std::uint32_t> needs_;     // by work: rows to come
  std::vector<std::vector<Time>> free_;  // by rank and unit
  std::vector<Time> ends_;               // by rank
};

void check_normal(const hw::Machine& machine, const DispatchCase& setting) {
  const int each = machine.topology.dies() / machine.topology.supernodes;
  if (setting.ranks > each && setting.ranks % each != 0)
    throw InputError(
        fmt::format("--ranks: {} do not fill servers of {}; allowed with --mode normal: 1 to {}, or a "
                    "multiple of {}",
                    setting.ranks, each, each, each));
  if (setting.placement != "linear")
    throw InputError("--placement: with --mode normal ranks fill servers in order; allowed: linear");
  if (setting.sms % 2 != 0 || setting.sms > machine.processor.units)
    throw InputError(fmt::format("--sms: {} units, half of which send; allowed: an even number, 2 to {}",
                                 setting.sms, machine.processor.units));
}

}  // namespace

DispatchReading measure_normal(const StudyContext& context, const DispatchCase& asked,
                               ExchangeDirection direction, SimulatorCounts& counts, double progress_from,
                               double progress_to) {
  refuse_options_of_cores(context);
  check_normal(context.machine, asked);
  DispatchCase setting = asked;
  setting.batch = setting.tokens;
  SessionOptions options;
  options.dies = first_dies(setting.ranks, context.machine.topology);
  options.rdma = context.machine.topology.supernode_of(options.dies.back()) != 0;
  options.progress_from = progress_from;
  options.progress_to = progress_to;
  options.what =
      fmt::format("normal {}, {} ranks", direction == ExchangeDirection::dispatch ? "dispatch" : "combine",
                  setting.ranks);
  const reference::DispatchCase layer = make_moe_case(context.seed, setting);
  const NormalExchange exchange = make_normal_exchange(layer, context.machine, direction, setting.sms);
  Session session(context, options);
  NormalRun run(session, exchange, static_cast<std::size_t>(setting.ranks));
  DispatchReading reading = measure_rounds(
      session, setting, layer, context.machine.processor, [&run] { return run.run(); }, counts);
  const double ranks = setting.ranks, rows = static_cast<double>(exchange.counted) / ranks;
  if (options.rdma)
    reading.rdma_MB = static_cast<double>(exchange.count(context.machine.topology, Carrier::rdma)) / ranks *
                      exchange.bytes / 1e6;
  reading.counted_MB = rows * exchange.bytes / 1e6;
  return reading;
}

}  // namespace cm384::studies
