#include "traces/record_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "base/text/error.h"
#include "base/text/number.h"
#include "traces/import.h"

namespace cm384::traces {

std::uint64_t RecordGraph::add(const TrafficRecord& record, std::string_view where) {
  constexpr std::size_t kMostDigits = 18;
  std::size_t digits = 0;
  while (digits < std::min(where.size(), kMostDigits) && where[where.size() - 1 - digits] >= '0' &&
         where[where.size() - 1 - digits] <= '9')
    ++digits;
  // A number does not begin with 0.
  while (digits > 1 && where[where.size() - digits] == '0') --digits;
  Node& node = nodes_.emplace_back();
  node.record = record;
  const std::string_view words = where.substr(0, where.size() - digits);
  if (digits != 0) node.number = *hw::number_of<std::uint64_t>(where.substr(words.size()));
  // Most often as of the record before.
  node.words = nodes_.size() > 1 ? nodes_[nodes_.size() - 2].words : 0;
  if (words_.empty() || words_[node.words] != words) {
    const auto [known, fresh] = numbers_of_words_.emplace(words, static_cast<std::uint32_t>(words_.size()));
    if (fresh) words_.emplace_back(words);
    node.words = known->second;
  }
  return nodes_.size() - 1;
}

std::string RecordGraph::where(const Node& node) const {
  return node.number == kNothing ? words_[node.words] : fmt::format("{}{}", words_[node.words], node.number);
}

void RecordGraph::wait(std::uint64_t record, const Edge& edge) {
  Node& node = nodes_[record];
  const auto added = static_cast<std::uint32_t>(links_.size());
  if (added == kNoEdge)
    throw InputError(fmt::format("{}: waits for too many records; allowed: {} in all", where(node), kNoEdge));
  links_.push_back({edge, kNoEdge});
  (node.first == kNoEdge ? node.first : links_[node.last].next) = added;
  node.last = added;
}

std::uint64_t RecordGraph::join(std::vector<std::uint64_t> on, TrafficDependency::Kind kind, Unit unit,
                                const std::string& where) {
  TrafficRecord record;
  record.kind = TrafficRecord::Kind::barrier;
  record.source = record.target = unit;
  while (on.size() > kMostDependencies) {
    std::vector<std::uint64_t> fewer;
    for (std::size_t first = 0; first < on.size(); first += kMostDependencies) {
      const std::uint64_t part = add(record, where);
      for (std::size_t k = first; k < std::min<std::size_t>(on.size(), first + kMostDependencies); ++k)
        wait(part, {on[k], kind, {}});
      fewer.push_back(part);
    }
    on = std::move(fewer);
    kind = TrafficDependency::Kind::completion;
  }
  const std::uint64_t all = add(record, where);
  for (const std::uint64_t one : on) wait(all, {one, kind, {}});
  return all;
}

void RecordGraph::forget_order() {
  std::vector<std::uint64_t> order(nodes_.size()), place(nodes_.size());
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::ranges::stable_sort(order, {}, [&](std::uint64_t n) {
    const TrafficRecord& r = nodes_[n].record;
    // Points stay behind, as they were added.
    if (!r.moves()) return std::tuple(true, std::int64_t{0}, 0u, 0u, std::uint64_t{0}, 0, 0);
    const unsigned source = r.source.number, on = (r.target.number + kMostUnits - source) % kMostUnits;
    return std::tuple(false, r.start.ps, on, source, r.bytes, static_cast<int>(r.operation),
                      static_cast<int>(r.lane));
  });
  std::vector<Node> nodes;
  nodes.reserve(nodes_.size());
  Placing placing;
  for (const std::uint64_t n : order) {
    place[n] = nodes.size();
    TrafficRecord& r = nodes.emplace_back(std::move(nodes_[n])).record;
    if (r.moves()) r.offset = placing.allocate(r.target.number, r.bytes);
  }
  nodes_ = std::move(nodes);
  std::vector<Edge> edges;
  for (const Node& node : nodes_) {
    edges.clear();
    for_each_edge(node, [&](const Edge& e) { edges.push_back({place[e.on], e.kind, e.delay}); });
    std::ranges::sort(edges, {}, [](const Edge& e) { return std::tuple(e.on, e.kind, e.delay); });
    auto next = edges.begin();
    for (std::uint32_t at = node.first; at != kNoEdge; at = links_[at].next) links_[at].edge = *next++;
  }
}

Written RecordGraph::write(TrafficSink& sink, std::vector<std::uint64_t>* numbers) const {
  Written written;
  std::vector<std::uint32_t> missing(nodes_.size());
  // Those of each record, one behind the other.
  struct Follower {
    std::uint64_t node = 0;
    Time delay;
  };
  std::vector<Follower> followers(links_.size());
  std::vector<std::uint64_t> behind(nodes_.size() + 1);
  for (const Link& link : links_) ++behind[link.edge.on];
  std::partial_sum(behind.begin(), behind.end(), behind.begin());
  // By when they would begin if nothing queued, so that ranks go side by side; a double holds sums of any
  // durations.
  using Place = std::pair<double, std::uint64_t>;
  std::priority_queue<Place, std::vector<Place>, std::greater<>> free;
  std::vector<double> begin(nodes_.size());
  for (std::uint64_t n = 0; n < nodes_.size(); ++n) {
    // From the end of what others have on.
    for_each_edge(nodes_[n], [&](const Edge& e) {
      ++missing[n];
      followers[--behind[e.on]] = {n, e.delay};
    });
    if (missing[n] != 0) continue;
    begin[n] = static_cast<double>(nodes_[n].record.start.ps);
    free.emplace(begin[n], n);
  }
  std::vector<std::uint64_t> number(nodes_.size());
  std::uint64_t next = 0;
  for (; !free.empty(); ++next) {
    const std::uint64_t n = free.top().second;
    free.pop();
    number[n] = next;
    TrafficRecord record = nodes_[n].record;
    for_each_edge(nodes_[n], [&](const Edge& e) {
      record.dependencies.push_back({number[e.on], e.kind, e.delay});
    });
    if (const std::string fault = fault_of(record, next); !fault.empty())
      throw InputError(fmt::format("{}: {}", where(nodes_[n]), fault));
    sink.add(record);
    ++written.records;
    written.transfers += record.moves() ? 1 : 0;
    written.through_fabric += enters_fabric(record) ? 1 : 0;
    const double end = begin[n] + static_cast<double>((record.end - record.start).ps);
    for (std::uint64_t k = behind[n]; k < behind[n + 1]; ++k) {
      const auto& [f, delay] = followers[k];
      begin[f] = std::max(begin[f], end + static_cast<double>(delay.ps));
      if (--missing[f] == 0) free.emplace(begin[f], f);
    }
  }
  for (std::uint64_t n = 0; n < nodes_.size(); ++n) {
    if (missing[n] != 0)
      throw InputError(fmt::format("{}: waits in a cycle, in the end for itself", where(nodes_[n])));
  }
  if (numbers != nullptr) *numbers = std::move(number);
  return written;
}

void note_locality(const Written& written, ImportResult& result) {
  if (written.through_fabric != 0) return;
  result.notes.emplace_back(
      written.transfers == 0
          ? "warning: nothing is moved: a replay of it has no traffic"
          : "warning: no transfer leaves its package, so nothing enters the fabric; --onto "
            "places nodes elsewhere");
}

std::uint64_t Placing::allocate(std::uint16_t unit, std::uint64_t bytes) {
  constexpr std::uint64_t kArea = std::uint64_t{16} << 30, kGrain = 512;
  if (next_.size() <= unit) next_.resize(unit + std::size_t{1});
  std::uint64_t& next = next_[unit];
  if (next + bytes > kArea) next = 0;
  const std::uint64_t at = next;
  next += (bytes + kGrain - 1) / kGrain * kGrain;
  return at;
}

}  // namespace cm384::traces
