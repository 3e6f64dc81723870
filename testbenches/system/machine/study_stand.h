// A study's surroundings, for the tests.
#pragma once

#include "system/observe/statistics_file.h"
#include "workloads/fabric/p2p.h"
#include "workloads/frame/study.h"

namespace cm384::supernode {

struct StudyStand {
  struct Silent final : studies::Progress {
    void update(double, Time, std::uint64_t) override {}
  };

  hw::Machine machine = hw::load_machine("cloudmatrix384");
  studies::FabricOptions fabric;
  Silent silent;
  std::sig_atomic_t not_interrupted = 0;
  observe::StatisticsFile* statistics = nullptr;

  studies::StudyContext context() {
    studies::StudyContext made{machine, 1, silent, not_interrupted};
    made.statistics = statistics;
    made.fabric = fabric;
    return made;
  }
};

}  // namespace cm384::supernode
