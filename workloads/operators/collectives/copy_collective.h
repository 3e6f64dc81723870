// Collectives among ranks as a communication library runs them without vector cores: copies by the SDMA
// engines of dies and notifies between them, which the host or an AICPU writes into streams. What is added
// up, a launch of vector cores adds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "npu_core/scalar/program.h"
#include "workloads/operators/collective.h"
#include "workloads/operators/collectives/copy_schedule.h"

namespace cm384::operators {

struct CopySetting {
  CopyAlgorithm algorithm = CopyAlgorithm::direct;
  bool reads = false;     // who gets a part copies it, from a window into which its owner has put its input;
                          // else who has it, to its place
  int cores = 48;         // AIVs of each die, that add
  bool graph = false;     // all entries are in their streams before it begins
  bool by_aicpu = false;  // an AICPU of each die writes the entries; not of a graph
  bool full = false;      // payload mode
};

// One run of it, on dies 0, 1, ...
class CopyCollective {
 public:
  // Throws InputError where the algorithm does not take it, or streams do not take its entries.
  CopyCollective(host::Runtime& runtime, const reference::CollectiveCase& collective,
                 const CopySetting& setting, std::shared_ptr<npu::Program> sums);

  // Allocates memory of all ranks, writes inputs in payload mode full, submits all. Once. It begins when all
  // hosts have got so far: of a graph, when all entries are there.
  void enqueue(RankMemory& memory);

  // Once it has run. Of a rank: of a graph from when it may begin, otherwise from its host's first call,
  // until all that it sends and gets is there, and added up.
  double rank_us(int rank) const;
  Time begin() const;
  Time end() const;
  // Launches that add.
  std::size_t launches() const { return launches_; }
  // As Collective::check().
  std::string check() const;

 private:
  struct Rank {
    std::uint64_t in = 0, window = 0, sums = 0, out = 0, arrivals = 0;
    std::vector<host::Notify> ready, done;  // of each peer: it may copy, or be copied from; it has done so
    host::Stream main, local;
    std::vector<host::Stream> streams;
    std::vector<std::uint64_t> partial;  // of each part: where what this rank has of it stands; 0: nowhere
    host::TaskHandle first, last;
  };
  struct Piece {
    std::uint64_t from = 0, to = 0, bytes = 0;
  };
  using Pieces = std::vector<std::vector<std::vector<Piece>>>;  // [who copies][with whom]
  // A part's sum on a rank, in a round.
  struct PartSum {
    std::uint64_t out = 0, bytes = 0;
    std::vector<std::uint64_t> terms;
  };
  // What a rank does in a round.
  struct Round {
    Pieces pieces;
    std::vector<std::vector<PartSum>> sums;  // of each rank
  };

  std::uint64_t bytes_of(int part) const;
  std::uint64_t offset_of(int part) const;
  void place(RankMemory& memory);
  void plan();
  void plan_round(std::size_t number, Round& round);
  void check_entries() const;
  void submit(int rank, RankMemory& memory);
  void submit_round(int rank, std::size_t number, RankMemory& memory);
  // Whom `rank` copies to or from in a round, or who copies to or from it.
  std::vector<int> peers_of(int rank, const Round& round) const;
  void launch_sums(int rank, const std::vector<PartSum>& sums, RankMemory& memory);
  host::Event after(host::Stream stream);

  host::Runtime& runtime_;
  reference::CollectiveCase case_;
  CopySetting setting_;
  std::shared_ptr<npu::Program> program_;
  CopyRounds moves_;
  std::vector<Rank> ranks_;
  std::vector<Round> rounds_;
  std::size_t launches_ = 0;
};

}  // namespace cm384::operators
