// Starts with a model, by hand.
#include "workloads/contexts/ems_model.h"

#include <gtest/gtest.h>

namespace cm384::studies::ems_model_test {
namespace {

TEST(ModelCache, StartsAsFastAsStoreAndDramGiveWeights) {
  ModelCache model;
  model.weights = Bytes{100'000'000'000};
  model.instances = 4;
  model.dies = 10;
  model.store = 2_GBps;
  model.load = 5_GBps;
  EXPECT_DOUBLE_EQ(warm_start_s(model), 2);
  EXPECT_DOUBLE_EQ(cold_start_s(model), 50 + 2);
  EXPECT_DOUBLE_EQ(start_without_cache_s(model), 4 * 50 + 2);
  model.local_hits = 0.25;
  EXPECT_DOUBLE_EQ(change_with_local_cache_s(model), 0.75 * 50 + 2) << "whoever loads, from DRAM in the end";
  model.instances = 1;
  EXPECT_DOUBLE_EQ(start_without_cache_s(model), cold_start_s(model));
}

}  // namespace
}  // namespace cm384::studies::ems_model_test
