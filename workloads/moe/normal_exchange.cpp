#include "workloads/moe/normal_exchange.h"

#include <algorithm>
#include <utility>

namespace cm384::studies {
namespace {

using Places = std::vector<std::size_t>;

class NormalMaker {
 public:
  NormalMaker(const reference::DispatchCase& layer, const hw::Machine& machine, ExchangeDirection direction,
              int units)
      : layer_(layer),
        machine_(machine),
        ranks_(layer.expert_ids.size()),
        each_(std::min(ranks_,
                       static_cast<std::size_t>(machine.topology.dies() / machine.topology.supernodes))),
        channels_(static_cast<std::size_t>(units) / 2) {
    made_.bytes = normal_row_bytes(direction, layer.hidden);
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      targets_.emplace_back();
      for (std::size_t token = 0; token < tokens(rank); ++token)
        targets_.back().push_back(find_targets(rank, token));
    }
  }

  NormalExchange dispatch() {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      for (std::size_t token = 0; token < tokens(rank); ++token) send_token(rank, token);
    }
    return std::move(made_);
  }

  NormalExchange combine() {
    std::vector<std::vector<std::uint32_t>> last(ranks_);  // by rank, token and server: who adds up first
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      for (std::size_t token = 0; token < tokens(rank); ++token) add_up(rank, token, last[rank]);
    }
    // Each GPU begins with the tokens of another.
    std::size_t most = 0;
    for (std::size_t rank = 0; rank < ranks_; ++rank) most = std::max(most, tokens(rank));
    for (std::size_t expert = 0; expert < ranks_; ++expert) {
      for (std::size_t token = 0; token < most; ++token) {
        for (std::size_t step = 0; step < ranks_; ++step) {
          const std::size_t rank = (expert + step) % ranks_;
          if (token >= tokens(rank) || !std::ranges::binary_search(targets_[rank][token], expert)) continue;
          const std::size_t work = add(expert, sender(rank, token), 0, 2);
          send(work, {last[rank][token * servers() + server(expert)]});
        }
      }
    }
    return std::move(made_);
  }

 private:
  std::size_t tokens(std::size_t rank) const {
    return static_cast<std::size_t>(layer_.tokens_of(static_cast<int>(rank)));
  }
  std::size_t servers() const { return ranks_ / each_; }
  std::size_t server(std::size_t rank) const { return rank / each_; }
  // The GPU of a rank's number in a server.
  std::size_t relay(std::size_t rank, std::size_t in) const { return in * each_ + rank % each_; }
  // Ranks that hold experts of a token, in order.
  Places find_targets(std::size_t rank, std::size_t token) const {
    Places found;
    const auto top_k = static_cast<std::size_t>(layer_.top_k);
    for (std::size_t k = 0; k < top_k; ++k)
      found.push_back(
          layer_.placement.slot_of(layer_.expert_ids[rank][token * top_k + k], static_cast<int>(rank)).rank);
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }
  // By server, those that have some.
  std::vector<Places> by_server(const Places& targets) const {
    std::vector<Places> found(servers());
    for (const std::size_t target : targets) found[server(target)].push_back(target);
    return found;
  }

  std::uint16_t sender(std::size_t rank, std::size_t token) const {
    return static_cast<std::uint16_t>(2 * (token * channels_ / tokens(rank)));
  }
  std::uint16_t receiver(std::size_t rank, std::size_t token) const {
    return static_cast<std::uint16_t>(sender(rank, token) + 1);
  }
  // `rows`: that are read and written.
  std::size_t add(std::size_t rank, std::uint16_t unit, std::size_t needs, std::size_t rows) {
    made_.works.push_back({static_cast<std::uint16_t>(rank), unit, static_cast<std::uint32_t>(needs), 0, 0,
                           unit_time(machine_.processor, rows * made_.bytes),
                           static_cast<std::uint32_t>(rows)});
    return made_.works.size() - 1;
  }
  void send(std::size_t work, const Places& to) {
    made_.works[work].first = static_cast<std::uint32_t>(made_.rows.size());
    made_.works[work].rows = static_cast<std::uint32_t>(to.size());
    for (const std::size_t target : to) made_.rows.push_back(static_cast<std::uint32_t>(target));
  }

  void send_token(std::size_t rank, std::size_t token) {
    const Places& all = targets_[rank][token];
    const auto receive = [&](const Places& ranks) {
      Places works;
      for (const std::size_t target : ranks) works.push_back(add(target, receiver(rank, token), 1, 2));
      return works;
    };
    if (servers() == 1) {
      const std::size_t work = add(rank, sender(rank, token), 0, 1 + all.size());
      send(work, receive(all));
      made_.counted += all.size();
      return;
    }
    const std::vector<Places> wanted = by_server(all);
    const auto some =
        static_cast<std::size_t>(std::ranges::count_if(wanted, [](const Places& p) { return !p.empty(); }));
    const std::size_t work = add(rank, sender(rank, token), 0, 1 + some);
    Places relays;
    for (std::size_t in = 0; in < wanted.size(); ++in) {
      if (wanted[in].empty()) continue;
      relays.push_back(add(relay(rank, in), receiver(rank, token), 1, 1 + wanted[in].size()));
      send(relays.back(), receive(wanted[in]));
    }
    send(work, relays);
    made_.counted += some;
  }

  void add_up(std::size_t rank, std::size_t token, std::vector<std::uint32_t>& last) {
    const std::vector<Places> wanted = by_server(targets_[rank][token]);
    std::size_t some = 0, all = 0;
    for (const Places& in : wanted) {
      some += in.empty() ? 0 : 1;
      all += in.size();
    }
    const bool alone = servers() == 1;
    const std::size_t rows = alone ? all : some;
    const std::size_t end = add(rank, receiver(rank, token), rows, rows + 1);
    made_.counted += rows;
    for (std::size_t in = 0; in < wanted.size(); ++in) {
      std::size_t work = end;
      if (!alone && !wanted[in].empty()) {
        work = add(relay(rank, in), receiver(rank, token), wanted[in].size(), wanted[in].size() + 1);
        send(work, {end});
      }
      last.push_back(static_cast<std::uint32_t>(work));
    }
  }

  const reference::DispatchCase& layer_;
  const hw::Machine& machine_;
  std::size_t ranks_, each_, channels_;
  std::vector<std::vector<Places>> targets_;  // by rank and token
  NormalExchange made_;
};

}  // namespace

std::uint32_t normal_row_bytes(ExchangeDirection direction, int hidden) {
  constexpr int kBlock = 128, kScale = 4;
  if (direction == ExchangeDirection::combine) return static_cast<std::uint32_t>(2 * hidden);
  return static_cast<std::uint32_t>(hidden + (hidden + kBlock - 1) / kBlock * kScale);
}

std::uint64_t NormalExchange::count(const hw::Topology& topology, Carrier carrier) const {
  std::uint64_t sum = 0;
  for (const UnitWork& work : works) {
    for (std::uint32_t row = work.first; row < work.first + work.rows; ++row)
      sum += carrier_of(topology, work.rank, works[rows[row]].rank) == carrier ? 1 : 0;
  }
  return sum;
}

NormalExchange make_normal_exchange(const reference::DispatchCase& layer, const hw::Machine& machine,
                                    ExchangeDirection direction, int units) {
  NormalMaker maker(layer, machine, direction, units);
  return direction == ExchangeDirection::dispatch ? maker.dispatch() : maker.combine();
}

}  // namespace cm384::studies
