// A model's weights in the memory service ([P] 4.4, table 2): how long instances take to start with them and
// to change them, block by block (workloads/service/model_loads.h).
#pragma once

#include "workloads/frame/study.h"

namespace cm384::studies {

struct ModelCache {
  Bytes weights{};  // 0: not asked for
  int instances = 8, dies = 32;
  Bandwidth store{2'500'000'000};  // of the object store, for all who read from it
  Bandwidth load{4'200'000'000};   // of a die, from the pool's DRAM
  int models = 8, changes = 1000;
  Bytes block = 1_GiB, dram{}, local{};
  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("model", self.weights, Range{0_B, 100'000_GiB},
          "weights with which instances start, from the object store and from DRAM; four rows; 0B: none");
    visit("model-instances", self.instances, Range{1, 10'000}, "that start at the same time",
          Needs{"model", {}});
    visit("model-dies", self.dies, Range{1, kMostRanks}, "of an instance", Needs{"model", {}});
    visit("store-rate", self.store, Range{Bandwidth{1'000'000}, 1000_GBps},
          "of the object store, for all together ([P] table 2)", Needs{"model", {}});
    visit("load-rate", self.load, Range{Bandwidth{1'000'000}, 1000_GBps},
          "of a die that loads from DRAM (derived: 671 GB in 5 s on 32 dies)", Needs{"model", {}});
    visit("models", self.models, Range{1, 10'000},
          "of equal size that an instance changes between, at random", Needs{"model", {}});
    visit("model-changes", self.changes, Range{1, 1'000'000}, "of one instance, of which rows have the mean",
          Needs{"model", {}});
    visit("model-block", self.block, Range{1_MiB, 1024_GiB},
          "of weights, that is read and kept as a whole (assumed)", Needs{"model", {}});
    visit("model-dram", self.dram, Range{0_B, 100'000_GiB},
          "for weights, of all instances together; 0B: room for all models", Needs{"model", {}});
    visit("local-dram", self.local, Range{0_B, 100'000_GiB},
          "for weights, of an instance that has a cache of its own; 0B: room for one model ([P] table 2)",
          Needs{"model", {}});
  }
};

// Throws InputError for more blocks than are simulated.
void add_model_rows(const StudyContext& context, const ModelCache& model, StudyResult& result);

}  // namespace cm384::studies
