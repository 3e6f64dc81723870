// Ranks of an imported trace on dies of a machine: rank r on die r, or where the options put it.
#pragma once

#include <cstdint>
#include <string>

#include "traces/collectives.h"
#include "traces/import.h"
#include "traces/record_graph.h"

namespace cm384::traces {

// The largest transfer or collective that an import takes, in bytes.
constexpr std::int64_t kMostImportedBytes = std::int64_t{16} << 30;

class ImportedRanks {
 public:
  // `first`: file of rank 0. The options outlive it. Throws InputError for more ranks than dies.
  ImportedRanks(std::size_t count, const std::string& first, const ImportOptions& options);

  std::size_t count() const { return count_; }
  Unit unit(int rank) const;
  // A moment of a rank.
  TrafficRecord point(int rank) const;
  // A write to memory of the receiver that no other transfer has, shared by all cores of the sender.
  TrafficRecord transfer(int from, int to, std::int64_t bytes);
  // Writes a collective out as the options say. `ready`, `end`: as of add_collective(); `bytes`: of the whole
  // vector of a rank; `where`: for errors.
  void add(RecordGraph& graph, CollectiveKind kind, std::int64_t bytes, std::vector<std::uint64_t> ready,
           const std::vector<std::uint64_t>& end, const std::string& where);
  // Puts the graph out, and tells which rank got which die.
  ImportResult write(const RecordGraph& graph, TrafficSink& sink) const;

 private:
  std::size_t count_;
  const ImportOptions& options_;
  Placing placing_;
};

}  // namespace cm384::traces
