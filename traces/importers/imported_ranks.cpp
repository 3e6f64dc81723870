#include "traces/importers/imported_ranks.h"

#include <fmt/format.h>

#include "base/text/error.h"

namespace cm384::traces {

ImportedRanks::ImportedRanks(std::size_t count, const std::string& first, const ImportOptions& options)
    : count_(count), options_(options) {
  const std::size_t room =
      options.onto.empty() ? static_cast<std::size_t>(options.dies) : options.onto.size();
  if (count > room)
    throw InputError(fmt::format("{}: {} ranks, but {} has {} dies to put them on", first, count,
                                 options.machine.empty() ? "the machine" : options.machine, room));
}

Unit ImportedRanks::unit(int rank) const {
  return {false, static_cast<std::uint16_t>(
                     options_.onto.empty() ? rank : options_.onto[static_cast<std::size_t>(rank)])};
}

TrafficRecord ImportedRanks::point(int rank) const {
  TrafficRecord r;
  r.kind = TrafficRecord::Kind::barrier;
  r.source = r.target = unit(rank);
  return r;
}

TrafficRecord ImportedRanks::transfer(int from, int to, std::int64_t bytes) {
  TrafficRecord r;
  r.operation = sim::Operation::write;
  r.source = unit(from);
  r.target = unit(to);
  r.core = TrafficRecord::kAnyCore;
  r.bytes = static_cast<std::uint64_t>(bytes);
  r.offset = placing_.take(r.target.number, r.bytes);
  return r;
}

void ImportedRanks::add(RecordGraph& graph, CollectiveKind kind, std::int64_t bytes,
                        std::vector<std::uint64_t> ready, const std::vector<std::uint64_t>& end,
                        const std::string& where) {
  std::vector<int> node;
  for (std::size_t rank = 0; rank < count_; ++rank)
    node.push_back(unit(static_cast<int>(rank)).number / options_.dies_per_node);
  add_collective(graph, collective_rounds(kind, options_.collectives[kind], bytes, node), std::move(ready),
                 end,
                 {[this](const CollectiveSend& s) { return transfer(s.from, s.to, s.bytes); },
                  [this](int rank) { return point(rank); }, where});
}

ImportResult ImportedRanks::write(const RecordGraph& graph, TrafficSink& sink) const {
  ImportResult result;
  result.placement = options_.onto.empty() ? "by rank" : "as --onto says, in the order of the files";
  for (std::size_t rank = 0; rank < count_; ++rank)
    result.mapping.emplace_back(static_cast<std::int64_t>(rank), unit(static_cast<int>(rank)).number);
  const Written written = graph.write(sink);
  result.records = written.records;
  note_locality(written, result);
  return result;
}

}  // namespace cm384::traces
