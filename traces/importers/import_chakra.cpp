#include <fmt/format.h>

#include <deque>
#include <map>
#include <optional>
#include <tuple>

#include "base/text/error.h"
#include "traces/importers/chakra_reader.h"
#include "traces/importers/imported_ranks.h"

namespace cm384::traces {
namespace {

constexpr std::uint64_t kMostDuration = std::uint64_t{1} << 40;  // us

enum NodeType : int {
  kMetadata = 1,
  kLoad = 2,
  kStore = 3,
  kCompute = 4,
  kSend = 5,
  kReceive = 6,
  kCollective = 7
};
enum Collective : std::int64_t {
  kAllReduce,
  kReduce,
  kAllGather,
  kGather,
  kScatter,
  kBroadcast,
  kAllToAll,
  kReduceScatter,
  kReduceScatterBlock,
  kBarrier
};

// A node's two ends in the graph: what its own dependencies lead to, and what stands for it being finished.
struct Ends {
  std::uint64_t begin = 0, end = 0;
  TrafficDependency::Kind kind = TrafficDependency::Kind::completion;
};

struct PendingEdges {
  std::uint64_t record = 0;
  std::vector<std::uint64_t> on;  // ids of the rank's nodes
  std::string where;
};

class ChakraImport {
 public:
  ChakraImport(const std::vector<std::string>& paths, const ImportOptions& options)
      : options_(options), ranks_(paths.size(), paths.front(), options) {
    nodes_.resize(paths.size());
    collectives_.resize(paths.size());
    for (std::size_t rank = 0; rank < paths.size(); ++rank) read(paths[rank], static_cast<int>(rank));
  }

  ImportResult write(TrafficSink& sink) {
    match_messages();
    expand_collectives();
    for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
      for (const PendingEdges& p : edges_[static_cast<int>(rank)]) {
        for (const std::uint64_t id : p.on) {
          const auto on = nodes_[rank].find(id);
          if (on == nodes_[rank].end())
            throw InputError(fmt::format("{}: dependencies: the file has no node {}", p.where, id));
          graph_.wait(p.record, {on->second.end, on->second.kind, {}});
        }
      }
    }
    ImportResult result = ranks_.write(graph_, sink);
    if (without_time_ != 0)
      result.notes.push_back(
          fmt::format("{} compute and memory nodes carry no duration and take no time", without_time_));
    return result;
  }

 private:
  using Channel = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // source, destination, tag
  struct Message {
    std::uint64_t record = 0;
    std::string where;
  };
  struct Part {  // of a collective, one rank's
    std::int64_t type = 0, bytes = 0, root = 0;
    std::uint64_t begin = 0, end = 0;
    std::string where;
  };

  void read(const std::string& path, int rank) {
    ChakraReader reader(path);
    chakra::GlobalMetadata metadata;
    if (!reader.next(metadata, "metadata")) reader.fail("metadata: the file is empty");
    for (chakra::Node node; reader.next(node, "node");) take(reader, node, rank);
  }

  std::int64_t attribute(const ChakraReader& reader, const chakra::Node& node, const char* name,
                         std::int64_t low, std::int64_t high,
                         std::optional<std::int64_t> missing = {}) const {
    for (const chakra::Attribute& a : node.attributes()) {
      if (a.name() != name) continue;
      const auto value = integer_of(a);
      if (!value || *value < low || *value > high)
        reader.fail(
            fmt::format("node {}: {}: allowed: a whole number from {} to {}", node.id(), name, low, high));
      return *value;
    }
    if (missing) return *missing;
    reader.fail(fmt::format("node {}: {}: is missing", node.id(), name));
  }

  void take(const ChakraReader& reader, const chakra::Node& node, int rank) {
    const auto last = static_cast<std::int64_t>(nodes_.size()) - 1;
    Ends ends;
    switch (node.type()) {
      case kMetadata:
      case kLoad:
      case kStore:
      case kCompute: {
        TrafficRecord r = ranks_.point(rank);
        r.kind = TrafficRecord::Kind::compute;
        if (node.duration_us() > kMostDuration)
          reader.fail(fmt::format("node {}: duration: {} us; allowed: {}", node.id(), node.duration_us(),
                                  kMostDuration));
        r.end = r.start + Time{static_cast<std::int64_t>(node.duration_us()) * 1'000'000};
        if (node.duration_us() == 0 && node.type() != kMetadata) ++without_time_;
        ends.begin = ends.end = graph_.add(r, reader.where());
        break;
      }
      case kSend: {
        const std::int64_t from = attribute(reader, node, "comm_src", 0, last, rank),
                           to = attribute(reader, node, "comm_dst", 0, last),
                           tag = attribute(reader, node, "comm_tag", INT32_MIN, INT32_MAX),
                           bytes = attribute(reader, node, "comm_size", 1, kMostImportedBytes);
        if (from != rank)
          reader.fail(fmt::format("node {}: comm_src: {} in the file of rank {}", node.id(), from, rank));
        ends.begin = ends.end =
            graph_.add(ranks_.transfer(rank, static_cast<int>(to), bytes), reader.where());
        sends_[{from, to, tag}].push_back({ends.end, reader.where()});
        break;
      }
      case kReceive: {
        const std::int64_t from = attribute(reader, node, "comm_src", 0, last),
                           to = attribute(reader, node, "comm_dst", 0, last, rank),
                           tag = attribute(reader, node, "comm_tag", INT32_MIN, INT32_MAX);
        if (to != rank)
          reader.fail(fmt::format("node {}: comm_dst: {} in the file of rank {}", node.id(), to, rank));
        ends.begin = ends.end = graph_.add(ranks_.point(rank), reader.where());
        receives_[{from, to, tag}].push_back({ends.end, reader.where()});
        break;
      }
      case kCollective: {
        Part part;
        part.type = attribute(reader, node, "comm_type", kAllReduce, kBarrier);
        part.bytes = part.type == kBarrier ? 0 : attribute(reader, node, "comm_size", 1, kMostImportedBytes);
        part.where = reader.where();
        part.begin = ends.begin = graph_.add(ranks_.point(rank), reader.where());
        part.end = ends.end = graph_.add(ranks_.point(rank), reader.where());
        collectives_[static_cast<std::size_t>(rank)].push_back(part);
        break;
      }
      default:
        reader.fail(fmt::format("node {}: type: {}; allowed: 1 to 7", node.id(), node.type()));
    }
    if (!nodes_[static_cast<std::size_t>(rank)].emplace(node.id(), ends).second)
      reader.fail(fmt::format("node {}: id: the file has it twice", node.id()));
    PendingEdges edges{ends.begin, {}, reader.where()};
    for (const std::uint64_t id : node.control_dependencies()) edges.on.push_back(id);
    for (const std::uint64_t id : node.data_dependencies()) edges.on.push_back(id);
    edges_[rank].push_back(std::move(edges));
  }

  void match_messages() {
    for (auto& [channel, receives] : receives_) {
      auto& sends = sends_[channel];
      for (const Message& receive : receives) {
        if (sends.empty())
          throw InputError(fmt::format("{}: receive: rank {} sends rank {} no such message with tag {}",
                                       receive.where, std::get<0>(channel), std::get<1>(channel),
                                       std::get<2>(channel)));
        graph_.wait(receive.record, {sends.front().record, TrafficDependency::Kind::arrival, {}});
        sends.pop_front();
      }
    }
  }

  void expand_collectives() {
    const std::size_t count = collectives_.front().size();
    for (std::size_t rank = 0; rank < collectives_.size(); ++rank) {
      if (collectives_[rank].size() != count)
        throw InputError(
            fmt::format("rank {} has {} collectives, rank 0 has {}; allowed: the same on all ranks", rank,
                        collectives_[rank].size(), count));
    }
    for (std::size_t k = 0; k < count; ++k) expand(k);
  }

  // What rank `from` sends rank `to` in one round; 0: nothing.
  static std::int64_t share(const Part& part, std::size_t from, std::size_t to, std::int64_t ranks) {
    const std::int64_t even = std::max<std::int64_t>(1, part.bytes / ranks);
    const auto root = static_cast<std::size_t>(part.root);
    switch (part.type) {
      case kBarrier:
        return 0;
      case kReduce:
        return to == root ? part.bytes : 0;
      case kGather:
        return to == root ? even : 0;
      case kScatter:
        return from == root ? even : 0;
      case kBroadcast:
        return from == root ? part.bytes : 0;
      default:
        return even;
    }
  }

  void expand(std::size_t k) {
    const auto ranks = collectives_.size();
    const Part first = collectives_.front()[k];
    std::vector<std::uint64_t> begin, end;
    for (const auto& of_rank : collectives_) {
      if (of_rank[k].type != first.type)
        throw InputError(fmt::format("{}: comm_type: {}, but {} on rank 0; allowed: the same on all ranks",
                                     of_rank[k].where, of_rank[k].type, first.type));
      begin.push_back(of_rank[k].begin);
      end.push_back(of_rank[k].end);
    }
    if (const auto kind = chosen(first.type)) return expand(k, *kind, begin, end);
    const int rounds = first.type == kAllReduce ? 2 : 1;
    for (int round = 0; round < rounds; ++round) {
      std::vector<std::uint64_t> done;
      for (std::size_t rank = 0; rank < ranks; ++rank)
        done.push_back(round + 1 == rounds ? end[rank]
                                           : graph_.add(ranks_.point(static_cast<int>(rank)), first.where));
      for (std::size_t from = 0; from < ranks; ++from) {
        graph_.wait(done[from], {begin[from], TrafficDependency::Kind::completion, {}});
        for (std::size_t step = 1; step < ranks; ++step) {
          // Not all to the same one at the same time.
          const std::size_t to = (from + step) % ranks;
          const std::int64_t bytes = share(collectives_[from][k], from, to, static_cast<std::int64_t>(ranks));
          if (first.type == kBarrier)
            graph_.wait(done[to], {begin[from], TrafficDependency::Kind::completion, {}});
          if (bytes == 0) continue;
          const std::uint64_t record =
              graph_.add(ranks_.transfer(static_cast<int>(from), static_cast<int>(to), bytes), first.where);
          graph_.wait(record, {begin[from], TrafficDependency::Kind::completion, {}});
          graph_.wait(done[from], {record, TrafficDependency::Kind::completion, {}});
          graph_.wait(done[to], {record, TrafficDependency::Kind::arrival, {}});
        }
      }
      begin = done;
    }
  }

  // The kind of a collective that is to be written out by another algorithm than all pairs at once.
  std::optional<CollectiveKind> chosen(std::int64_t type) const {
    std::optional<CollectiveKind> kind;
    if (type == kAllReduce) kind = CollectiveKind::all_reduce;
    if (type == kAllToAll) kind = CollectiveKind::all_to_all;
    if (type == kAllGather) kind = CollectiveKind::all_gather;
    if (type == kReduceScatter || type == kReduceScatterBlock) kind = CollectiveKind::reduce_scatter;
    if (kind && options_.collectives[*kind] == CollectiveAlgorithm::direct) kind.reset();
    return kind;
  }

  void expand(std::size_t k, CollectiveKind kind, std::vector<std::uint64_t> ready,
              const std::vector<std::uint64_t>& end) {
    const Part first = collectives_.front()[k];
    for (const auto& of_rank : collectives_) {
      if (of_rank[k].bytes != first.bytes)
        throw InputError(fmt::format(
            "{}: comm_size: {}, but {} on rank 0; allowed by {}: the same on all ranks", of_rank[k].where,
            of_rank[k].bytes, first.bytes, name_of(options_.collectives[kind])));
    }
    ranks_.add(graph_, kind, first.bytes, std::move(ready), end, first.where);
  }

  const ImportOptions& options_;
  ImportedRanks ranks_;
  RecordGraph graph_;
  std::vector<std::map<std::uint64_t, Ends>> nodes_;  // by rank and id
  std::map<int, std::vector<PendingEdges>> edges_;    // by rank
  std::vector<std::vector<Part>> collectives_;        // by rank, in order
  std::map<Channel, std::deque<Message>> sends_, receives_;
  std::uint64_t without_time_ = 0;
};

}  // namespace

ImportResult import_chakra(const std::vector<std::string>& paths, const ImportOptions& options,
                           TrafficSink& sink) {
  if (paths.empty()) throw InputError("chakra: no file named; allowed: one per rank");
  ChakraImport import(paths, options);
  return import.write(sink);
}

}  // namespace cm384::traces
