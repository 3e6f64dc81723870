#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/text/error.h"
#include "traces/importers/chakra_reader.h"
#include "traces/importers/collective_parts.h"
#include "traces/importers/imported_ranks.h"

namespace cm384::traces {
namespace {

using Edge = TrafficDependency::Kind;

constexpr std::int64_t kMostDurationUs = std::int64_t{1} << 40;
constexpr std::int64_t kMostOperations = std::int64_t{1} << 60;
constexpr std::int64_t kMostRankNumber = std::int64_t{1} << 40;
constexpr int kLastTurn = 15;  // of compute records: traffic.h
constexpr std::size_t kNamed = 3;

// Of comm_type, in the order of its numbers; reduce-scatter-block is one of equal parts, as all here.
constexpr CollectiveKind kCollectiveTypes[] = {CollectiveKind::all_reduce,     CollectiveKind::reduce,
                                               CollectiveKind::all_gather,     CollectiveKind::gather,
                                               CollectiveKind::scatter,        CollectiveKind::broadcast,
                                               CollectiveKind::all_to_all,     CollectiveKind::reduce_scatter,
                                               CollectiveKind::reduce_scatter, CollectiveKind::barrier};
constexpr auto kCollectiveTypeCount = static_cast<std::int64_t>(std::size(kCollectiveTypes));

// Attributes that are read, and those that tell where a node comes from and change nothing.
const std::set<std::string, std::less<>> kUnderstood{
    "comm_type",     "comm_size",    "comm_src",       "comm_dst",    "comm_tag",    "comm_root",
    "comm_priority", "pg_name",      "is_cpu_op",      "num_ops",     "tensor_size", "stream",
    "tid",           "involved_dim", "fw_parent",      "fw_tid",      "op_schema",   "seq_id",
    "rf_id",         "scope",        "kernel_backend", "kernel_file", "op_name"};

// What is counted by kind, with the first few places.
class Counted {
 public:
  void add(const std::string& kind, const std::string& where) {
    auto& [count, places] = kinds_[kind];
    if (++count <= kNamed) places.push_back(where);
  }
  void write(std::vector<std::string>& lines) const {
    for (const auto& [kind, found] : kinds_)
      lines.push_back(fmt::format("{}: {} ({}{})", kind, found.first, fmt::join(found.second, "; "),
                                  found.first > kNamed ? "; ..." : ""));
  }

 private:
  std::map<std::string, std::pair<std::uint64_t, std::vector<std::string>>> kinds_;
};

// A node's two ends in the graph: what its own dependencies lead to, and what stands for it being finished.
struct Ends {
  std::uint64_t begin = 0, end = 0;
  Edge kind = Edge::completion;
};

class ChakraImport {
 public:
  ChakraImport(const RankFiles& files, const ImportOptions& options)
      : options_(options), ranks_(files.numbers, files.paths.front(), options), parts_(files.paths.size()) {
    for (std::size_t rank = 0; rank < files.paths.size(); ++rank)
      read(files.paths[rank], static_cast<int>(rank));
  }

  ImportResult write(TrafficSink& sink) {
    match_messages();
    const CommunicatorGroups groups =
        options_.groups.empty() ? CommunicatorGroups{} : read_groups(options_.groups);
    CollectiveParts::write(parts_.match(ranks_, groups), graph_, ranks_);
    std::vector<std::string> not_taken;
    not_taken_.write(not_taken);
    if (options_.strict && !not_taken.empty())
      throw InputError(fmt::format("--strict: not imported exactly: {}", not_taken.front()));
    ImportResult result = ranks_.write(graph_, sink);
    result.not_taken = std::move(not_taken);
    notes_.write(result.notes);
    result.notes.insert(result.notes.end(), parts_.notes().begin(), parts_.notes().end());
    return result;
  }

 private:
  using Channel = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // source, destination, tag
  struct Message {
    std::uint64_t record = 0;
    std::string where;
    std::optional<std::int64_t> bytes;  // a receive need not tell them
  };

  void read(const std::string& path, int rank) {
    ChakraReader reader(path);
    if (!reader.version().empty() && !reader.version().starts_with("0.0.4") &&
        !reader.version().starts_with("1."))
      notes_.add(fmt::format("schema {}, read as 0.0.4", reader.version()), path);
    std::vector<ChakraNode> nodes;
    for (ChakraNode node; reader.next(node);) nodes.push_back(std::move(node));
    // By their ids, which is what decides between nodes that may begin at once.
    std::ranges::stable_sort(nodes, {}, &ChakraNode::id);
    std::unordered_map<std::uint64_t, std::size_t> place;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (!place.emplace(nodes[n].id, n).second) nodes[n].fail("id: the file has it twice");
    }
    std::vector<Ends> ends;
    for (const ChakraNode& node : nodes) ends.push_back(add(node, rank));
    std::vector<std::vector<std::size_t>> followers(nodes.size());
    std::vector<std::size_t> missing(nodes.size());
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      for (const std::uint64_t id : nodes[n].after) {
        const auto on = place.find(id);
        if (on == place.end()) {
          not_taken_.add("waits for nodes that the file does not have",
                         fmt::format("{}: node {} for {}", nodes[n].where, nodes[n].id, id));
          continue;
        }
        graph_.wait(ends[n].begin, {ends[on->second].end, ends[on->second].kind, {}});
        followers[on->second].push_back(n);
        ++missing[n];
      }
    }
    add_collectives(nodes, ends, rank, followers, std::move(missing));
  }

  // In the order in which the rank may begin them: of nodes that wait for nothing more, the lowest id.
  void add_collectives(const std::vector<ChakraNode>& nodes, const std::vector<Ends>& ends, int rank,
                       const std::vector<std::vector<std::size_t>>& followers,
                       std::vector<std::size_t> missing) {
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (missing[n] == 0) free.push(n);
    }
    while (!free.empty()) {
      const std::size_t n = free.top();
      free.pop();
      if (meets(nodes[n])) parts_.add(rank, part_of(nodes[n], ends[n]));
      for (const std::size_t follower : followers[n]) {
        if (--missing[follower] == 0) free.push(follower);
      }
    }
  }

  static bool is_host(const ChakraNode& node) { return node.integer("is_cpu_op", 0, 1).value_or(0) == 1; }
  // A collective of the device that says which one.
  static bool meets(const ChakraNode& node) {
    return node.type == ChakraNode::kCollective && !is_host(node) && node.attributes.contains("comm_type");
  }

  static std::int64_t required(const ChakraNode& node, const char* name, std::int64_t low,
                               std::int64_t high) {
    const auto value = node.integer(name, low, high);
    if (!value) node.fail(fmt::format("{}: is missing", name));
    return *value;
  }

  Ends add(const ChakraNode& node, int rank) {
    for (const auto& [name, value] : node.attributes) {
      if (!kUnderstood.contains(name))
        not_taken_.add(fmt::format("attribute {}", name), fmt::format("{}: node {}", node.where, node.id));
    }
    if (const auto dims = node.attributes.find("involved_dim");
        dims != node.attributes.end() && dims->second.partial)
      not_taken_.add("collectives over some dimensions of the network, taken over all",
                     fmt::format("{}: node {}", node.where, node.id));
    const std::string place = fmt::format("{}: node {}", node.where, node.id);
    switch (node.type) {
      case ChakraNode::kMetadata: {
        const std::uint64_t record = graph_.add(ranks_.point(rank), place);
        return {record, record};
      }
      case ChakraNode::kLoad:
      case ChakraNode::kStore:
      case ChakraNode::kCompute:
        return add_time(node, rank, place);
      case ChakraNode::kSend:
      case ChakraNode::kReceive:
      case ChakraNode::kCollective:
        break;
      default:
        node.fail(fmt::format("type: {}; allowed: 1 to 7", node.type));
    }
    if (is_host(node)) {
      notes_.add("host operators of messages and collectives, which move nothing themselves", place);
      return add_time(node, rank, place);
    }
    if (node.type == ChakraNode::kSend) return add_send(node, rank, place);
    if (node.type == ChakraNode::kReceive) return add_receive(node, rank, place);
    if (!meets(node)) {
      not_taken_.add("collectives without comm_type, which take their duration and move nothing", place);
      return add_time(node, rank, place);
    }
    return {graph_.add(ranks_.point(rank), place), graph_.add(ranks_.point(rank), place)};
  }

  Ends add_time(const ChakraNode& node, int rank, const std::string& place) {
    const int turn =
        node.type == ChakraNode::kCompute || node.type >= ChakraNode::kSend ? turn_of(node, rank) : 0;
    const std::uint64_t record = graph_.add(ranks_.compute(rank, duration_of(node, place), turn), place);
    return {record, record};
  }

  Time duration_of(const ChakraNode& node, const std::string& place) {
    if (node.duration_us > static_cast<std::uint64_t>(kMostDurationUs))
      node.fail(fmt::format("duration: {} us; allowed: {}", node.duration_us, kMostDurationUs));
    const auto operations = node.integer("num_ops", 0, kMostOperations).value_or(0),
               bytes = node.integer("tensor_size", 0, kMostOperations).value_or(0);
    const bool sized = (operations != 0 || bytes != 0) && !is_host(node);
    if (sized && (node.duration_us == 0 || options_.roofline_always)) {
      const Roofline& peaks = options_.roofline;
      if ((operations != 0 && peaks.operations_per_second <= 0) ||
          (bytes != 0 && peaks.bytes_per_second <= 0))
        node.fail("num_ops: the machine has no peak to divide it by");
      const double seconds =
          std::max(operations == 0 ? 0 : static_cast<double>(operations) / peaks.operations_per_second,
                   bytes == 0 ? 0 : static_cast<double>(bytes) / peaks.bytes_per_second);
      if (seconds > static_cast<double>(kMostDurationUs) * 1e-6)
        node.fail(fmt::format("num_ops: takes {:g} s; allowed: {} us", seconds, kMostDurationUs));
      notes_.add(fmt::format("nodes whose time is that of the roofline, {:.4g} TFLOPS and {:.4g} TB/s",
                             peaks.operations_per_second * 1e-12, peaks.bytes_per_second * 1e-12),
                 place);
      return Time{std::llround(seconds * 1e12)};
    }
    if (node.duration_us == 0 && node.type != ChakraNode::kMetadata)
      notes_.add("nodes that carry neither duration nor size and take no time", place);
    return Time{static_cast<std::int64_t>(node.duration_us) * 1'000'000};
  }

  // Which of a die's queues of compute records a node waits in; 0: it waits for nobody.
  int turn_of(const ChakraNode& node, int rank) {
    const bool host = is_host(node);
    if (options_.concurrent_kernels && !host) return 0;
    const std::string stream =
        node.attributes.contains("stream") && !host ? node.text("stream") : node.text("tid");
    auto& turns = turns_[static_cast<std::size_t>(rank)];
    const int next = static_cast<int>(turns.size()) + 1;
    const auto [found, fresh] = turns.try_emplace({host, stream}, std::min(next, kLastTurn));
    if (fresh && next > kLastTurn)
      notes_.add(
          fmt::format("streams and threads beyond {} of a rank, which share the last one's turns", kLastTurn),
          fmt::format("{}: node {}", node.where, node.id));
    return found->second;
  }

  int lane_of(const ChakraNode& node) {
    const std::int64_t priority = node.integer("comm_priority", INT32_MIN, INT32_MAX).value_or(0);
    if (priority >= 0 && priority <= 15) return static_cast<int>(priority);
    not_taken_.add("comm_priority outside 0 to 15", fmt::format("{}: node {}", node.where, node.id));
    return 0;
  }

  Ends add_send(const ChakraNode& node, int rank, const std::string& place) {
    const std::int64_t self = ranks_.number(rank),
                       from = node.integer("comm_src", 0, kMostRankNumber).value_or(self),
                       to = required(node, "comm_dst", 0, kMostRankNumber),
                       tag = node.integer("comm_tag", INT32_MIN, UINT32_MAX).value_or(0),
                       bytes = required(node, "comm_size", 0, kMostImportedBytes);
    if (from != self) node.fail(fmt::format("comm_src: {} in the file of rank {}", from, self));
    const auto target = ranks_.rank_of(to);
    if (!target) node.fail(fmt::format("comm_dst: {}; allowed: ranks that have a file", to));
    const bool moves = bytes != 0 && *target != rank;
    if (!moves) notes_.add("sends of 0 B or to the sender itself, which move nothing", place);
    const std::uint64_t record =
        graph_.add(moves ? ranks_.transfer(rank, *target, bytes, lane_of(node)) : ranks_.point(rank), place);
    sends_[{from, to, tag}].push_back({record, place, bytes});
    return {record, record};
  }

  Ends add_receive(const ChakraNode& node, int rank, const std::string& place) {
    const std::int64_t self = ranks_.number(rank), from = required(node, "comm_src", 0, kMostRankNumber),
                       to = node.integer("comm_dst", 0, kMostRankNumber).value_or(self),
                       tag = node.integer("comm_tag", INT32_MIN, UINT32_MAX).value_or(0);
    if (to != self) node.fail(fmt::format("comm_dst: {} in the file of rank {}", to, self));
    if (!ranks_.rank_of(from)) node.fail(fmt::format("comm_src: {}; allowed: ranks that have a file", from));
    const std::uint64_t record = graph_.add(ranks_.point(rank), place);
    receives_[{from, to, tag}].push_back({record, place, node.integer("comm_size", 0, kMostImportedBytes)});
    return {record, record};
  }

  CollectivePart part_of(const ChakraNode& node, const Ends& ends) {
    CollectivePart part;
    // A number, or in files of some producers its name: "ALL_REDUCE".
    const auto named = collective_named(node.text("comm_type"));
    part.kind = named ? *named : kCollectiveTypes[required(node, "comm_type", 0, kCollectiveTypeCount - 1)];
    part.where = fmt::format("{}: node {}", node.where, node.id);
    if (part.kind != CollectiveKind::barrier) {
      part.input = required(node, "comm_size", 0, kMostImportedBytes);
      if (part.input == 0) notes_.add("collectives of 0 B, where ranks only meet", part.where);
    }
    part.lane = lane_of(node);
    part.group = node.text("pg_name");
    part.name = node.name;
    part.begin = ends.begin;
    part.end = ends.end;
    if (is_rooted(part.kind)) {
      part.root = node.integer("comm_root", 0, kMostRankNumber).value_or(-1);
      if (part.root < 0) notes_.add("collectives that name no root, whose first rank is it", part.where);
    }
    return part;
  }

  void match_messages() {
    for (auto& [channel, receives] : receives_) {
      auto& sends = sends_[channel];
      for (const Message& receive : receives) {
        if (sends.empty())
          throw InputError(fmt::format("{}: receive: rank {} sends rank {} no such message with tag {}",
                                       receive.where, std::get<0>(channel), std::get<1>(channel),
                                       std::get<2>(channel)));
        if (receive.bytes && receive.bytes != sends.front().bytes)
          not_taken_.add("sizes of receives other than what is sent",
                         fmt::format("{}: {} B, but {} B are sent", receive.where, *receive.bytes,
                                     *sends.front().bytes));
        graph_.wait(receive.record, {sends.front().record, Edge::arrival, {}});
        sends.pop_front();
      }
    }
    for (const auto& [channel, sends] : sends_) {
      for (const Message& send : sends)
        not_taken_.add("sends that no rank receives, which nobody waits for",
                       fmt::format("{} to rank {}", send.where, std::get<1>(channel)));
    }
  }

  const ImportOptions& options_;
  ImportedRanks ranks_;
  RecordGraph graph_;
  CollectiveParts parts_;
  std::map<Channel, std::deque<Message>> sends_, receives_;
  std::vector<std::map<std::pair<bool, std::string>, int>> turns_{ranks_.count()};  // by rank
  Counted notes_, not_taken_;
};

}  // namespace

ImportResult import_chakra(const std::vector<std::string>& paths, const ImportOptions& options,
                           TrafficSink& sink) {
  if (paths.empty()) throw InputError("chakra: no file named; allowed: one per rank");
  ChakraImport import(in_order_of_ranks(paths), options);
  return import.write(sink);
}

}  // namespace cm384::traces
