// A model's weights in the memory service ([P] 4.4, table 2): how long instances take to start with them. A
// formula; nothing of it is simulated.
#pragma once

#include "workloads/frame/study.h"

namespace cm384::studies {

struct ModelCache {
  Bytes weights{};  // 0: not asked for
  int instances = 8, dies = 32;
  Bandwidth store{2'500'000'000};  // of the object store, for all who read from it
  Bandwidth load{4'200'000'000};   // of a die, from the pool's DRAM
  double local_hits = 0.125;       // of an instance's own cache
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
    visit("local-hits", self.local_hits, Range{0.0, 1.0},
          "share of an instance's changes of model that find the weights in DRAM of its own, which has room "
          "for one of them ([P] table 2: 12.5 %, of eight models)",
          Needs{"model", {}});
  }
};

// Until the last of the instances has started, s: each reads the store for itself; one reads it into DRAM for
// all; it is in DRAM.
double start_without_cache_s(const ModelCache& model);
double cold_start_s(const ModelCache& model);
double warm_start_s(const ModelCache& model);
// Mean of an instance that changes its model alone, with a cache of its own: a warm start where that has the
// weights, otherwise from the store.
double change_with_local_cache_s(const ModelCache& model);

// The four as rows.
void add_model_rows(const StudyContext& context, const ModelCache& model, StudyResult& result);

}  // namespace cm384::studies
