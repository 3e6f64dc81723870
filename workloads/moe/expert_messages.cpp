#include "workloads/moe/expert_messages.h"

#include <algorithm>
#include <utility>

#include "traces/random.h"

namespace cm384::studies {
namespace {

// A rank's units: what each has done so far, since the kernel's turn.
class UnitClocks {
 public:
  UnitClocks(const hw::Machine& machine, std::uint32_t units)
      : machine_(machine), free_(units, machine.processor.launch_latency) {}
  Time& of(std::uint32_t unit) { return free_[unit]; }
  // The first access to what the unit goes through next, then all of it.
  void load(std::uint32_t unit, std::uint64_t bytes) {
    free_[unit] += machine_.transfer_engine.memory_read_latency + unit_time(machine_.processor, bytes);
  }
  Time last() const { return *std::ranges::max_element(free_); }

 private:
  const hw::Machine& machine_;
  std::vector<Time> free_;
};

class Maker {
 public:
  Maker(const reference::DispatchCase& layer, const hw::Machine& machine, ExchangeDirection direction,
        const std::vector<int>& dies)
      : layer_(layer), machine_(machine), dies_(dies), ranks_(layer.expert_ids.size()) {
    made_.bytes = message_bytes(direction, layer.hidden);
    made_.messages.resize(ranks_);
    for (const int own : layer.placement.own_experts) {
      first_slot_.push_back(slots_);
      slots_ += static_cast<std::uint32_t>(own);
    }
  }

  ExpertExchange dispatch() {
    make_pairs([&](std::size_t target) { return own(target) * ranks_; });
    for (std::size_t target = 0; target < ranks_; ++target) {
      for (std::size_t p = 0; p < own(target) * ranks_; ++p)
        name(made_.first_pair[target] + p, p % ranks_, target);
    }
    const hw::Processor& processor = machine_.processor;
    const UnitsOfPairs units(slots_, processor.units);
    for (std::size_t source = 0; source < ranks_; ++source) {
      UnitClocks clocks(machine_, units.units_used);
      for (std::size_t token = 0;
           token < static_cast<std::size_t>(layer_.tokens_of(static_cast<int>(source))); ++token)
        cast(source, token, static_cast<std::uint32_t>(token % units.units_used), clocks);
      finish(source, clocks.last());
    }
    // The last warp of a unit counts the tokens of an expert meanwhile.
    for (ExpertPair& pair : made_.pairs)
      pair.counted = std::max(pair.counted, processor.launch_latency + processor.barrier_latency);
    return std::move(made_);
  }

  ExpertExchange combine() {
    make_pairs([&](std::size_t) { return std::size_t{slots_}; });
    const RoutedRowsOf rows = routed();
    for (std::size_t source = 0; source < ranks_; ++source) {
      const UnitsOfPairs units(static_cast<std::uint32_t>(own(source) * ranks_), machine_.processor.units);
      UnitClocks clocks(machine_, units.units_used);
      // The pairs of a unit take turns, row by row: groups of its threads have one each.
      for (std::uint32_t unit = 0; unit < units.units_used; ++unit) {
        const std::uint32_t end =
            std::min(static_cast<std::uint32_t>(own(source) * ranks_), (unit + 1) * units.each);
        bool more = true;
        for (std::uint32_t row = 0; more; ++row) {
          more = false;
          for (std::uint32_t p = unit * units.each; p < end; ++p) {
            const std::size_t local = p / ranks_, target = p % ranks_;
            const std::uint32_t pair =
                made_.first_pair[target] + first_slot_[source] + static_cast<std::uint32_t>(local);
            if (row == 0) {
              name(pair, source, target);
              made_.pairs[pair].counted = clocks.of(unit);
            }
            if (row >= rows[first_slot_[source] + local][target]) continue;
            more = true;
            clocks.load(unit, 2 * std::uint64_t{made_.bytes});  // read, and written to where it is sent from
            post(source, pair, clocks.of(unit));
          }
        }
      }
      finish(source, clocks.last());
    }
    return std::move(made_);
  }

 private:
  using RoutedRowsOf = std::vector<std::vector<std::uint32_t>>;  // [slot of all ranks][token's rank]

  std::size_t own(std::size_t rank) const {
    return static_cast<std::size_t>(layer_.placement.own_experts[rank]);
  }
  template <class Count>
  void make_pairs(Count&& count_of_target) {
    made_.first_pair.assign(1, 0);
    for (std::size_t target = 0; target < ranks_; ++target)
      made_.first_pair.push_back(made_.first_pair.back() +
                                 static_cast<std::uint32_t>(count_of_target(target)));
    made_.pairs.resize(made_.first_pair.back());
  }
  void name(std::size_t pair, std::size_t source, std::size_t target) {
    ExpertPair& named = made_.pairs[pair];
    named.source = static_cast<std::uint16_t>(source);
    named.target = static_cast<std::uint16_t>(target);
    named.carrier = carrier_of(machine_.topology, dies_[source], dies_[target]);
  }
  RoutedRowsOf routed() const {
    RoutedRowsOf rows(slots_, std::vector<std::uint32_t>(ranks_));
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      for (const std::int32_t expert : layer_.expert_ids[rank]) {
        const cm384_expert_slot& slot = layer_.placement.slot_of(expert, static_cast<int>(rank));
        ++rows[first_slot_[slot.rank] + slot.local][rank];
      }
    }
    return rows;
  }

  // A token of dispatch: read, cast and written once; then one warp posts each message to a network
  // interface, and all warps together store those to peers, one after another.
  void cast(std::size_t source, std::size_t token, std::uint32_t unit, UnitClocks& clocks) {
    clocks.load(unit, 2 * static_cast<std::uint64_t>(layer_.hidden) + made_.bytes);
    const Time ready = clocks.of(unit);
    Time stores = ready, turn = ready;
    const auto top_k = static_cast<std::size_t>(layer_.top_k);
    for (std::size_t k = 0; k < top_k; ++k) {
      const std::int32_t expert = layer_.expert_ids[source][token * top_k + k];
      const cm384_expert_slot& slot = layer_.placement.slot_of(expert, static_cast<int>(source));
      const std::uint32_t pair =
          made_.first_pair[slot.rank] + static_cast<std::uint32_t>(std::size_t{slot.local} * ranks_ + source);
      if (made_.pairs[pair].carrier != Carrier::rdma) stores += unit_time(machine_.processor, made_.bytes);
      turn = std::max(turn, post(source, pair, made_.pairs[pair].carrier == Carrier::rdma ? ready : stores));
    }
    clocks.of(unit) = turn;
  }

  // Returns when it is posted.
  Time post(std::size_t source, std::uint32_t number, Time ready) {
    ExpertPair& pair = made_.pairs[number];
    const Time posted = ready + (pair.carrier == Carrier::rdma ? machine_.processor.post_latency : Time{});
    made_.messages[source].push_back({pair.target, pair.carrier, number, posted});
    ++pair.messages;
    pair.counted = std::max(pair.counted, posted);
    return posted;
  }

  void finish(std::size_t source, Time last) {
    // Doorbells that units ring at one time come in any order.
    std::vector<ExpertMessage>& messages = made_.messages[source];
    traces::Random order(layer_.seed, source);
    for (std::size_t n = messages.size(); n > 1; --n) std::swap(messages[n - 1], messages[order.below(n)]);
    std::ranges::stable_sort(messages, {}, &ExpertMessage::posted);
    made_.sent.push_back(last);
  }

  const reference::DispatchCase& layer_;
  const hw::Machine& machine_;
  const std::vector<int>& dies_;  // by rank
  std::size_t ranks_;
  std::uint32_t slots_ = 0;                // of all ranks
  std::vector<std::uint32_t> first_slot_;  // by rank
  ExpertExchange made_;
};

}  // namespace

std::uint32_t message_bytes(ExchangeDirection direction, int hidden) {
  constexpr int kHeader = 16, kBlock = 128, kScale = 4;
  if (direction == ExchangeDirection::combine) return static_cast<std::uint32_t>(2 * hidden);
  return static_cast<std::uint32_t>(hidden + (hidden + kBlock - 1) / kBlock * kScale + kHeader);
}

Carrier carrier_of(const hw::Topology& topology, int from, int to) {
  if (from == to) return Carrier::memory;
  return topology.supernode_of(from) == topology.supernode_of(to) ? Carrier::bus : Carrier::rdma;
}

std::uint64_t ExpertExchange::count(Carrier carrier) const {
  std::uint64_t sum = 0;
  for (const ExpertPair& pair : pairs) sum += pair.carrier == carrier ? pair.messages : 0;
  return sum;
}

ExpertExchange make_exchange(const reference::DispatchCase& layer, const hw::Machine& machine,
                             ExchangeDirection direction, const std::vector<int>& dies) {
  Maker maker(layer, machine, direction, dies);
  return direction == ExchangeDirection::dispatch ? maker.dispatch() : maker.combine();
}

Time unit_time(const hw::Processor& processor, std::uint64_t bytes) {
  return Clock(Bytes{1}, processor.unit_bandwidth).start(static_cast<std::int64_t>(bytes));
}

}  // namespace cm384::studies
