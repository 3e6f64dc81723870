// Loads of models, block by block: against closed forms, and hits against a list that is looked through.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "traces/random.h"
#include "workloads/service/model_loads.h"

namespace cm384::service::ems_model_test {
namespace {

// 100.5 GB over 2 GB/s of the store and 50 GB/s of the dies.
ModelLoadSpec spec(ModelLoadSpec::Cache cache, Bytes dram) {
  return {Bytes{100'500'000'000}, Bytes{1'000'000'000}, 2_GBps, 50e9, cache, dram};
}
constexpr double kStore = 50.25, kDies = 2.01, kLastBlock = 0.01;

double last_of(const std::vector<ModelLoads::Loaded>& loaded) {
  return std::ranges::max(loaded, {}, &ModelLoads::Loaded::seconds).seconds;
}

// What is loaded hides behind what is fetched, but for the last block.
TEST(ModelLoads, StartAsFastAsStoreAndDiesAllow) {
  ModelLoads none(spec(ModelLoadSpec::Cache::none, {}), 4);
  EXPECT_NEAR(last_of(none.load({0, 0, 0, 0})), 4 * kStore + kLastBlock, 1e-9);
  EXPECT_NEAR(last_of(none.load({0})), kStore + kLastBlock, 1e-9);
  ModelLoads shared(spec(ModelLoadSpec::Cache::shared, Bytes{300'000'000'000}), 4);
  for (const ModelLoads::Loaded& one : shared.load({0, 0, 0, 0})) {
    EXPECT_NEAR(one.seconds, kStore + kLastBlock, 1e-9) << "one fetches for all";
    EXPECT_EQ(one.blocks, 101);
    EXPECT_EQ(one.found, 0);
  }
  for (const ModelLoads::Loaded& one : shared.load({0, 0, 0, 0})) {
    EXPECT_NEAR(one.seconds, kDies, 1e-9);
    EXPECT_EQ(one.found, 101);
  }
  EXPECT_NEAR(last_of(shared.load({1, 2, 1, 2})), 2 * kStore + kLastBlock, 1e-9)
      << "two models, half the rate each";
  // Dies that are slower than the store: all but the first block's way is theirs.
  ModelLoadSpec slow = spec(ModelLoadSpec::Cache::shared, Bytes{300'000'000'000});
  slow.load = 1e9;
  EXPECT_NEAR(last_of(ModelLoads(slow, 1).load({0})), 0.5 + 100.5, 1e-9);
}

// With room for one of eight an instance finds it where it does not change.
TEST(ModelLoads, OfACacheForOneModelFindTheLastOne) {
  ModelLoads loads(spec(ModelLoadSpec::Cache::own, Bytes{100'500'000'000}), 1);
  traces::Random random(3);
  int before = -1, same = 0;
  for (int k = 0; k < 400; ++k) {
    const auto model = static_cast<int>(random.below(8));
    const ModelLoads::Loaded one = loads.load({model})[0];
    EXPECT_EQ(one.found, model == before ? 101 : 0);
    EXPECT_NEAR(one.seconds, model == before ? kDies : kStore + kLastBlock, 1e-9);
    same += model == before ? 1 : 0;
    before = model;
  }
  EXPECT_GT(same, 20);
}

// Room for a part of a model more than one, two and so on: a list of blocks, the last used first.
TEST(ModelLoads, FindWhatALeastRecentlyUsedListHas) {
  for (const std::int64_t dram : {50'000'000'000, 101'000'000'000, 250'000'000'000, 700'000'000'000}) {
    ModelLoads loads(spec(ModelLoadSpec::Cache::shared, Bytes{dram}), 1);
    traces::Random random(5);
    std::vector<std::pair<int, int>> list;
    const auto bytes = [](const std::pair<int, int>& block) {
      return block.second == 100 ? 500'000'000 : std::int64_t{1'000'000'000};
    };
    std::int64_t found_in_all = 0;
    for (int k = 0; k < 60; ++k) {
      // Often one of a few.
      const auto model = static_cast<int>(random.below(1 + random.below(8)));
      std::int64_t found = 0, used = 0;
      for (int block = 0; block < 101; ++block) {
        const std::pair one{model, block};
        found += std::erase(list, one) > 0 ? 1 : 0;
        list.insert(list.begin(), one);
        used = 0;
        for (std::size_t n = 0; n < list.size(); ++n) {
          used += bytes(list[n]);
          if (used > dram) list.resize(n);
        }
      }
      EXPECT_EQ(loads.load({model})[0].found, found) << dram << " " << k;
      found_in_all += found;
    }
    EXPECT_GT(found_in_all + (dram < 100'000'000'000 ? 1 : 0), 0);
  }
}

}  // namespace
}  // namespace cm384::service::ems_model_test
