#include "traces/record_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "base/text/error.h"
#include "traces/import.h"

namespace cm384::traces {

std::uint64_t RecordGraph::add(const TrafficRecord& record, std::string where) {
  nodes_.push_back({record, {}, std::move(where)});
  return nodes_.size() - 1;
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
    if (r.moves()) r.offset = placing.take(r.target.number, r.bytes);
  }
  nodes_ = std::move(nodes);
  for (Node& node : nodes_) {
    for (Edge& edge : node.edges) edge.on = place[edge.on];
    std::ranges::sort(node.edges, {}, [](const Edge& e) { return std::tuple(e.on, e.kind, e.delay); });
  }
}

Written RecordGraph::write(TrafficSink& sink, std::vector<std::uint64_t>* numbers) const {
  Written written;
  std::vector<std::uint32_t> missing(nodes_.size());
  std::vector<std::vector<std::pair<std::uint64_t, Time>>> followers(nodes_.size());
  // By when they would begin if nothing queued, so that ranks go side by side; a double holds sums of any
  // durations.
  using Place = std::pair<double, std::uint64_t>;
  std::priority_queue<Place, std::vector<Place>, std::greater<>> free;
  std::vector<double> begin(nodes_.size());
  for (std::uint64_t n = 0; n < nodes_.size(); ++n) {
    missing[n] = static_cast<std::uint32_t>(nodes_[n].edges.size());
    for (const Edge& e : nodes_[n].edges) followers[e.on].emplace_back(n, e.delay);
    if (!nodes_[n].edges.empty()) continue;
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
    for (const Edge& e : nodes_[n].edges) record.dependencies.push_back({number[e.on], e.kind, e.delay});
    if (const std::string fault = fault_of(record, next); !fault.empty())
      throw InputError(fmt::format("{}: {}", nodes_[n].where, fault));
    sink.add(record);
    ++written.records;
    written.transfers += record.moves() ? 1 : 0;
    written.through_fabric += enters_fabric(record) ? 1 : 0;
    const double end = begin[n] + static_cast<double>((record.end - record.start).ps);
    for (const auto& [f, delay] : followers[n]) {
      begin[f] = std::max(begin[f], end + static_cast<double>(delay.ps));
      if (--missing[f] == 0) free.emplace(begin[f], f);
    }
  }
  for (std::uint64_t n = 0; n < nodes_.size(); ++n) {
    if (missing[n] != 0)
      throw InputError(fmt::format("{}: waits in a circle, for itself in the end", nodes_[n].where));
  }
  if (numbers != nullptr) *numbers = std::move(number);
  return written;
}

void note_locality(const Written& written, ImportResult& result) {
  if (written.through_fabric != 0) return;
  result.notes.emplace_back(
      written.transfers == 0
          ? "warning: nothing is moved: a replay of it takes time without traffic alone"
          : "warning: no transfer leaves its package, so nothing enters the fabric; --onto "
            "places nodes elsewhere");
}

std::uint64_t Placing::take(std::uint16_t unit, std::uint64_t bytes) {
  constexpr std::uint64_t kArea = std::uint64_t{16} << 30, kGrain = 512;
  if (next_.size() <= unit) next_.resize(unit + std::size_t{1});
  std::uint64_t& next = next_[unit];
  if (next + bytes > kArea) next = 0;
  const std::uint64_t at = next;
  next += (bytes + kGrain - 1) / kGrain * kGrain;
  return at;
}

}  // namespace cm384::traces
