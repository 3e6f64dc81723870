// Records in any order, each waiting for any others; put out so that each stands behind what it waits for.
// For importers: their files name dependencies forwards and across files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/traffic.h"

namespace cm384::traces {

struct ImportResult;

// What a graph came to.
struct Written {
  std::uint64_t records = 0, transfers = 0;
  std::uint64_t through_fabric = 0;  // of the transfers: to memory outside the package
};

class RecordGraph {
 public:
  struct Edge {
    std::uint64_t on = 0;  // a record of the graph
    TrafficDependency::Kind kind = TrafficDependency::Kind::completion;
    Time delay;
  };

  // Room for so many records that wait for one other each, where that is known before.
  void reserve(std::uint64_t records) {
    nodes_.reserve(records);
    links_.reserve(records);
  }
  // `where` names the record in errors: file and line, or file and node. Returns its number in the graph.
  std::uint64_t add(const TrafficRecord& record, std::string_view where);
  void wait(std::uint64_t record, const Edge& edge);
  std::uint64_t size() const { return nodes_.size(); }
  TrafficRecord& record(std::uint64_t number) { return nodes_[number].record; }

  // A record that waits for all of `on`; a tree of them where there are more than a record may name.
  std::uint64_t join(std::vector<std::uint64_t> on, TrafficDependency::Kind kind, Unit unit,
                     const std::string& where);

  // Of formats whose rows say nothing by their order: transfers stand by when they begin at the earliest, how
  // far on from the source their target is, and what they are; their places in memory follow. What add()
  // returned is not valid any more.
  void forget_order();

  // Puts all records out, in the order in which they would begin if nothing queued, then as they were added.
  // `numbers`: which record of the trace each of the graph became. Throws InputError
  // where some wait for each other in a circle.
  Written write(TrafficSink& sink, std::vector<std::uint64_t>* numbers = nullptr) const;

 private:
  // Millions of records wait for one or two others each, and are named by a number behind the same words.
  static constexpr std::uint64_t kNothing = ~std::uint64_t{0};
  static constexpr std::uint32_t kNoEdge = ~std::uint32_t{0};
  struct Node {
    TrafficRecord record;
    std::uint32_t first = kNoEdge, last = kNoEdge;  // of its edges
    std::uint32_t words = 0;                        // of where it is from
    std::uint64_t number = kNothing;                // behind them
  };
  struct Link {
    Edge edge;
    std::uint32_t next = kNoEdge;
  };
  template <class Visit>
  void for_each_edge(const Node& node, Visit&& visit) const {
    for (std::uint32_t at = node.first; at != kNoEdge; at = links_[at].next) visit(links_[at].edge);
  }
  std::string where(const Node& node) const;

  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<std::string> words_;
  std::unordered_map<std::string, std::uint32_t> numbers_of_words_;
};

// Warns if nothing moves, or no transfer leaves its package: a placement that loses the locality of the
// source.
void note_locality(const Written& written, ImportResult& result);

// Where the transfers of an imported trace lie in a unit's memory: one behind the other, from the start again
// after 16 GiB.
class Placing {
 public:
  std::uint64_t allocate(std::uint16_t unit, std::uint64_t bytes);

 private:
  std::vector<std::uint64_t> next_;
};

}  // namespace cm384::traces
