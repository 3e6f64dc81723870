// All-gather, reduce-scatter and all-reduce among ranks, by the vector cores of their dies.
#pragma once

#include <vector>

#include "firmware/abi/collective.h"
#include "operators/collective.h"
#include "operators/reference/collectives.h"

namespace cm384::operators {

class RankCollective final : public Collective {
 public:
  // `cores`: AIVs of each die. Its flags are for one launch.
  RankCollective(const reference::CollectiveCase& collective, int cores, bool full)
      : case_(collective), cores_(cores), full_(full) {}

  void place(RankMemory& memory) override;
  std::string check() const override;
  const char* kernel() const override { return "collective"; }

 private:
  reference::CollectiveCase case_;
  int cores_;
  bool full_;
  host::Runtime* runtime_ = nullptr;
  std::vector<std::uint64_t> outputs_;  // of each rank
};

}  // namespace cm384::operators
