// What another tenant does beside an operator: dies without a rank, on the nodes of the ranks, copy blocks to
// each other by SDMA.
#pragma once

#include <vector>

#include "base/text/units.h"
#include "hw/parameters/ub.h"
#include "system/host/runtime.h"

namespace cm384::studies {

struct CopiesBesideSetting {
  int dies = 0;            // 0: nobody copies
  Bytes volume{16 << 20};  // of each die and iteration
};

// The first free dies of the nodes that ranks stand on, a node's after each other. Throws InputError where
// there are fewer than wanted, or where all are on one node.
std::vector<int> dies_beside(const std::vector<int>& ranks, int wanted, const hw::Topology& topology);

class CopiesBeside {
 public:
  // How long after the hosts' first calls the operator starts: all dies are copying steadily by then.
  static constexpr Time kLead{60'000'000};

  // Die n of the list copies to die n + half of them, which is on another node. All take part in the run.
  CopiesBeside(host::Runtime& runtime, const std::vector<int>& dies, Bytes volume);

  // Gives all engines their blocks, for one iteration.
  void enqueue();
  // What was copied between `begin` and `end`, of a block as much as of its time is in between, and whether
  // all dies copied all that time. After wait().
  void count(Time begin, Time end);

  // Of a die, while the operator ran; over all that was counted.
  double bandwidth_GBps() const;
  bool covered() const { return covered_; }

 private:
  static constexpr std::uint64_t kBlock = 128 << 10;
  static constexpr std::size_t kStreams = 4;  // of a die, which take its blocks in turn
  struct Copier {
    int die = 0;
    std::uint64_t from = 0, to = 0;
    std::vector<host::Stream> streams;
    std::vector<host::TaskHandle> tasks;  // of the iteration, by block
  };

  host::Runtime& runtime_;
  std::uint64_t volume_;
  std::vector<Copier> copiers_;
  double bytes_ = 0;
  Time counted_{};
  bool covered_ = true;
};

}  // namespace cm384::studies
