// Ranks of an imported trace on dies of a machine: the ranks in the order of their numbers on dies 0 and on,
// or where the options put them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traces/collectives.h"
#include "traces/import.h"
#include "traces/record_graph.h"

namespace cm384::traces {

// The largest transfer or collective that an import takes, in bytes.
constexpr std::int64_t kMostImportedBytes = std::int64_t{16} << 30;

class ImportedRanks {
 public:
  // `numbers`: of the ranks, as their trace calls them, rising. `first`: a file to name. The options outlive
  // it. Throws InputError for more ranks than dies.
  ImportedRanks(std::vector<std::int64_t> numbers, const std::string& first, const ImportOptions& options);

  std::size_t count() const { return numbers_.size(); }
  std::int64_t number(int rank) const { return numbers_[static_cast<std::size_t>(rank)]; }
  // The place of a number among the ranks; nothing where no rank has it.
  std::optional<int> rank_of(std::int64_t number) const;
  Unit unit(int rank) const;
  // A moment of a rank.
  TrafficRecord point(int rank) const;
  // Time without traffic.
  TrafficRecord compute(int rank, Time duration, int turn = 0) const;
  // A write to memory of the receiver that no other transfer has, shared by all cores of the sender.
  TrafficRecord transfer(int from, int to, std::int64_t bytes, int lane = 0);

  struct Collective {
    CollectiveKind kind{};
    std::vector<int> members;          // ranks, at least one
    std::vector<std::int64_t> inputs;  // of each member, as direct_rounds() counts; all 0: they only meet
    // Of an all-to-all whose parts differ: what each member sends each, in bytes. Empty: equal parts.
    std::vector<std::vector<std::int64_t>> parts;
    std::size_t root = 0;  // place of the root among the members
    int lane = 0;
    std::vector<std::uint64_t> ready, end;  // of each member: it begins after, ends before
    std::string where;                      // for errors
  };
  // Writes it out as the options say; where members differ, directly between all pairs. Throws InputError
  // where the chosen algorithm does not take them.
  void add(RecordGraph& graph, const Collective& collective);
  // Puts the graph out, and tells which rank got which die.
  ImportResult write(const RecordGraph& graph, TrafficSink& sink,
                     std::vector<std::uint64_t>* numbers = nullptr) const;

 private:
  void note_missing(ImportResult& result) const;

  std::vector<std::int64_t> numbers_;
  const ImportOptions& options_;
  Placing placing_;
};

// Files of ranks in the order of the numbers in their names, where the names differ in one number alone
// ("rank.2.et" before "rank.10.et"), with these numbers; otherwise as given, from 0 on.
struct RankFiles {
  std::vector<std::string> paths;
  std::vector<std::int64_t> numbers;
};
RankFiles in_order_of_ranks(const std::vector<std::string>& paths);

}  // namespace cm384::traces
