// What profile.json says of links, against what the links themselves have counted.
#include "system/observe/profile.h"

#include <gmock/gmock.h>

#include "system/observe/machine_profile.h"
#include "testbenches/system/machine/study_stand.h"
#include "workloads/moe/dispatch.h"

namespace cm384::supernode::profile_test {
namespace {

struct Profiled {
  Json run;
  double link_us = 0;  // that flits took on the ports of all ranks, warm-up included
};

Profiled profile_of(int warmup) {
  StudyStand stand;
  observe::Profile profile;
  studies::StudyContext context = stand.context();
  context.profile = &profile;
  studies::DispatchCase setting;
  setting.ranks = 4;
  setting.batch = 16;
  setting.cores = 8;
  setting.warmup = warmup;
  setting.iterations = 1;
  setting.placement = "strided";
  Profiled made;
  observe::StatisticsFile statistics(false);
  context.statistics = &statistics;
  studies::SimulatorCounts counts;
  studies::measure_dispatch(context, setting, counts);
  const Json totals = statistics.to_document("dispatch")["rows"][0]["totals"];
  // 20 B a flit at 28 GB/s.
  made.link_us = totals["die*.ub.port*.flits"].get<double>() * 20 / 28e3;
  made.run = profile.to_document("dispatch", stand.machine)["runs"][0];
  return made;
}

// Time that the links from dies to their L1 chips were busy while it counted, by their shares.
double busy_us(const Json& run) {
  double shares = 0;
  for (const Json& kind : run["links"]) {
    if (kind["from"] != "die") continue;
    for (const Json& plane : kind["planes"])
      for (const Json& column : plane)
        for (const Json& share : column) shares += share.get<double>();
  }
  return shares * (run["counted_to_us"].get<double>() - run["counted_from_us"].get<double>());
}

// The same by the samples of every interval, over the whole run.
double sampled_us(const Json& run) {
  for (const Json& busy : run["busy"]) {
    if (busy["counter"] != "die*.ub.port*.busy_ps") continue;
    double sum = 0;
    for (const Json& mean : busy["mean"]) sum += mean.get<double>();
    return sum * run["interval_us"].get<double>() * busy["parts"].get<double>();
  }
  return 0;
}

TEST(Profile, SamplesAddUpToWhatTheLinksDid) {
  const Profiled cold = profile_of(0);
  EXPECT_NEAR(sampled_us(cold.run), cold.link_us, 0.03 * cold.link_us);
}

// The second iteration sends what the first does, so that half of what the ports have counted is warm-up.
TEST(Profile, SharesOfLinksLeaveOutTheWarmUp) {
  const Profiled cold = profile_of(0), warm = profile_of(1);
  EXPECT_NEAR(busy_us(cold.run), cold.link_us, 0.01 * cold.link_us);
  EXPECT_NEAR(busy_us(warm.run), warm.link_us / 2, 0.01 * warm.link_us);
  EXPECT_EQ(warm.run["launches"].size(), 4u);
  for (const Json& launch : warm.run["launches"])
    EXPECT_GE(launch["start_us"].get<double>(), warm.run["counted_from_us"].get<double>());
}

}  // namespace
}  // namespace cm384::supernode::profile_test
