// All-gather, reduce-scatter and all-reduce among ranks, by the vector cores of their dies.
#pragma once

#include <vector>

#include "firmware/abi/collective.h"
#include "hw/machine.h"
#include "workloads/operators/collective.h"
#include "workloads/operators/reference/collectives.h"

namespace cm384::operators {

// direct: kernel `collective`, an all-reduce in one step; rounds: kernel `collective_rounds`, an all-reduce
// as reduce-scatter and all-gather; paired: kernel `collective_paired`, what both dies of a package want of
// another one crosses the bus once and their link once.
enum class CollectiveAlgorithm : std::uint8_t { direct, rounds, paired };

// Whether ranks on consecutive dies from the first of a package on are pairs of more than one package.
bool can_be_paired(const reference::CollectiveCase& collective, const hw::Machine& machine);
// The fastest, by how long a die's bytes take to leave it and what a further exchange takes, of those that
// do so many ranks with `cores` AIVs of each.
CollectiveAlgorithm choose_algorithm(const reference::CollectiveCase& collective, int cores,
                                     const hw::Machine& machine);
// AIVs of each die that it takes of `cores`: a block moves 4 KiB or more, where there is so much. With more
// peers than cores each serves several.
int cores_of(const reference::CollectiveCase& collective, CollectiveAlgorithm algorithm, int cores);
// "one-shot", "reduce-scatter + all-gather"; of the others "direct", "by package".
const char* name_of(CollectiveAlgorithm algorithm, reference::CollectiveKind kind);

class RankCollective final : public Collective {
 public:
  // `cores`: AIVs of each die. Its flags are for one launch.
  RankCollective(const reference::CollectiveCase& collective, int cores, bool full,
                 CollectiveAlgorithm algorithm = CollectiveAlgorithm::direct)
      : case_(collective), cores_(cores), full_(full), algorithm_(algorithm) {}

  void place(RankMemory& memory) override;
  std::string check() const override;
  // Other kernels run on its cores before it.
  void follows_others() { follows_ = true; }
  const char* kernel() const override {
    if (algorithm_ == CollectiveAlgorithm::paired) return "collective_paired";
    if (algorithm_ == CollectiveAlgorithm::direct) return follows_ ? "collective_clear" : "collective";
    return follows_ ? "collective_rounds_clear" : "collective_rounds";
  }

 private:
  std::uint64_t window_stride() const;
  std::uint64_t flag_bytes() const;
  void write_direct_arguments(RankMemory& memory, const std::vector<cm384_rounds_peer>& peers);
  void write_rounds_arguments(RankMemory& memory, const std::vector<cm384_rounds_peer>& peers);

  reference::CollectiveCase case_;
  int cores_;
  bool full_, follows_ = false;
  CollectiveAlgorithm algorithm_;
  host::Runtime* runtime_ = nullptr;
  std::vector<std::uint64_t> outputs_;  // of each rank
};

}  // namespace cm384::operators
