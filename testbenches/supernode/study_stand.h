// A study's surroundings, for the tests.
#pragma once

#include "observe/statistics_file.h"
#include "studies/p2p.h"
#include "studies/study.h"

namespace cm384::supernode {

struct StudyStand {
  struct Silent final : studies::Progress {
    void update(double, Time, std::uint64_t) override {}
  };

  hw::Machine machine = hw::load_machine("cloudmatrix384");
  boost::program_options::variables_map options;
  Silent silent;
  std::sig_atomic_t not_interrupted = 0;
  observe::StatisticsFile* statistics = nullptr;

  studies::StudyContext context() {
    return {machine, 1, options, silent, not_interrupted, 0, "", statistics};
  }
};

}  // namespace cm384::supernode
