// Collectives that each rank tells for itself: which parts of which ranks are one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "traces/importers/imported_ranks.h"

namespace cm384::traces {

// Ranks of each communicator group, by its name.
using CommunicatorGroups = std::map<std::string, std::vector<std::int64_t>>;
// JSON: {"GROUP": [RANK, ...], ...}. Throws InputError naming file and group.
CommunicatorGroups read_groups(const std::string& path);

// Bytes of an element, by the names of PyTorch and of HCCL in any letters, with c10::, torch. or
// HCCL_DATA_TYPE_ before them or not; 0: unknown.
std::int64_t bytes_of_element(std::string name);

// What one rank tells of a collective.
struct CollectivePart {
  CollectiveKind kind{};
  // Bytes, as direct_rounds() counts, once as often as the group has members to this power: 1 where a trace
  // tells them for each other rank, -1 where it tells them for all together. 0: the rank only meets the
  // others.
  std::int64_t input = 0;
  int power = 0;
  std::vector<std::int64_t> parts;  // of an all-to-all: of `input`, to each member; empty: alike
  bool sent = false;                // `input` is what the rank sent to others, whatever the algorithm
  std::int64_t root = -1;           // number of a rank; -1: not told
  int lane = 0;
  std::string group;  // empty: of all ranks
  std::string name;
  std::uint64_t begin = 0, end = 0;  // points of the graph
  std::string where;
  std::size_t tag = 0;  // the importer's own
};

// Parts of a group are matched by their place in each rank's order where kinds and sizes agree so; otherwise
// the n-th of a kind, size and root, else of a kind and name, are one; else by their place where kinds agree,
// and ranks put in unlike sizes.
class CollectiveParts {
 public:
  explicit CollectiveParts(std::size_t ranks) : parts_(ranks) {}
  // In the order in which the rank begins them.
  void add(int rank, CollectivePart part) {
    parts_[static_cast<std::size_t>(rank)].push_back(std::move(part));
  }
  bool empty() const;

  // One that was matched.
  struct Met {
    std::vector<int> members;
    std::vector<const CollectivePart*> parts;  // of each member
  };
  // A group without an entry in `groups` are the ranks that tell of it. Throws InputError, naming a part,
  // where the members' parts do not go together. The parts outlive what is returned.
  std::vector<Met> match(const ImportedRanks& ranks, const CommunicatorGroups& groups);
  // Writes all of them out.
  static void write(const std::vector<Met>& all, RecordGraph& graph, ImportedRanks& ranks);
  // Sentences about what was assumed.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  using List = std::vector<const CollectivePart*>;  // of a member, in its order
  void match_group(const std::string& group, const ImportedRanks& ranks, const std::vector<int>& members,
                   const std::vector<List>& lists, std::vector<Met>& all);

  std::vector<std::vector<CollectivePart>> parts_;  // by rank
  std::vector<std::string> notes_;
};

}  // namespace cm384::traces
