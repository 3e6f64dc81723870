// What is predicted of a machine that is faster in one respect, against a run of that machine.
#include <gmock/gmock.h>

#include "testbenches/system/observe/explain/predictions.h"
#include "workloads/fabric/copies.h"
#include "workloads/fabric/p2p.h"
#include "workloads/kernels/stream.h"

namespace cm384::observe::explain_test {
namespace {

const Explanation::Gain& gain_of(const Explanation& why, Resource resource) {
  return *std::ranges::find(why.gains, resource, &Explanation::Gain::resource);
}
double share_of(const std::vector<Explanation::Share>& list, std::string_view name) {
  const auto at = std::ranges::find(list, name, &Explanation::Share::name);
  return at == list.end() ? 0 : at->share;
}

// Predicted and measured gain of a resource, in shares of the run.
struct Both {
  double predicted = 0, measured = 0;
};
Both both(const Run& run, Resource resource) {
  const Explanation as_it_is = explained(run);
  const Explanation::Gain& gain = gain_of(as_it_is, resource);
  const double faster = span_us(run, {}, gain.changes);
  return {gain.share, (as_it_is.span_us - faster) / as_it_is.span_us};
}

void p2p_write(const studies::StudyContext& context) {
  studies::SimulatorCounts counts;
  studies::P2pPoint point;
  point.operation = "write";
  point.volume = Bytes{1 << 18};
  studies::measure_p2p(context, point, counts);
}

void stream(const studies::StudyContext& context) {
  studies::SimulatorCounts counts;
  studies::StreamShape shape = studies::stream_shapes()[2];
  shape.rows = 3072;  // 64 for each core
  studies::measure_stream(context, shape, 48, 1, false, counts);
}

void dispatch(const studies::StudyContext& context) {
  studies::SimulatorCounts counts;
  studies::DispatchCase setting;
  setting.ranks = 4;
  setting.batch = 32;
  setting.experts = 32;
  measure_dispatch(context, setting, counts);
}

TEST(Explain, WritesOfAllCoresAreBoundByTheWriteInterval) {
  const Explanation why = explained(p2p_write);
  EXPECT_EQ(why.path.front().name, "controller write interval");
  EXPECT_EQ(why.busiest.front().name, "controller write interval");
  const Both interval = both(p2p_write, Resource::write_interval), link = both(p2p_write, Resource::link);
  EXPECT_GT(interval.measured, 0.05);
  EXPECT_NEAR(interval.predicted, interval.measured, 0.1 * interval.measured);
  EXPECT_LT(link.predicted, 0.01);
  EXPECT_LT(link.measured, 0.01);
}

TEST(Explain, AStreamIsBoundByHbm) {
  const Both hbm = both(stream, Resource::hbm);
  EXPECT_GT(hbm.measured, 0.05);
  EXPECT_NEAR(hbm.predicted, hbm.measured, 0.1 * hbm.measured);
}

TEST(Explain, ABarrierGivesHalfOfIt) {
  const Both barrier = both(dispatch, Resource::barrier);
  EXPECT_NEAR(barrier.predicted, barrier.measured, 0.1 * barrier.measured);
}

TEST(Explain, ChangesNothingAndLeavesNothingOut) {
  double plain = 0;
  const Explanation why = explained([&](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    studies::DispatchCase setting;
    setting.ranks = 4;
    setting.batch = 32;
    setting.experts = 32;
    const auto reading = measure_dispatch(context, setting, counts);
    studies::StudyContext unwatched = context.with(context.progress);
    unwatched.observers = nullptr;
    const auto again = measure_dispatch(unwatched, setting, counts);
    EXPECT_EQ(reading.task_us.mean, again.task_us.mean);
    plain = again.task_us.max;
  });
  EXPECT_NEAR(why.span_us, plain, 0.02 * plain);
  double sum = 0;
  for (const Explanation::Share& part : why.path) sum += part.us;
  EXPECT_NEAR(sum, why.span_us, 0.02 * why.span_us);
  EXPECT_LT(share_of(why.path, "other"), 0.1);
}

// With nothing faster the graph ends where the run did, whatever binds: what it left out would be missing in
// every prediction too.
TEST(Explain, WithNothingFasterItEndsWhereTheRunDid) {
  for (const char* const setting :
       {"ub.link.bandwidth=28GB/s", "ub.link.bandwidth=3.5GB/s", "ub.link.buffer_cells=8"}) {
    for (const char* const study : {"dispatch", "combine"}) {
      const Explanation why = explained(operator_run(study, 8, 16), {setting});
      EXPECT_NEAR(why.followed_us, why.span_us, 0.02 * why.span_us) << study << ", " << setting;
    }
  }
}

// Small ones of what regimes_test.cpp shows at length: where the links of dies, trunks, buffers and the write
// interval bind.
std::vector<std::string> names_of_checked(const Explanation& why) {
  std::vector<std::string> names;
  for (const Explanation::Gain& gain : why.gains) {
    if (gain.checked) names.emplace_back(text_of(gain.resource).name);
  }
  return names;
}

TEST(Predictions, OfThePublishedMachine) {
  check_predictions(operator_run("dispatch", 8, 16), {}, "published");
}

TEST(Predictions, WhereTheLinksOfDiesBind) {
  const Explanation why =
      check_predictions(operator_run("dispatch", 8, 16), {"ub.link.bandwidth=3.5GB/s"}, "3.5 GB/s");
  EXPECT_GT(gain_of(why, Resource::die_link).share, 0.2);
  EXPECT_THAT(names_of_checked(why), ::testing::Contains("die link bandwidth"));
  EXPECT_THAT(names_of_checked(why), ::testing::Not(::testing::Contains("link bandwidth")));
}

TEST(Predictions, WhereTrunksBindTheirRateIsTheKnob) {
  // With fewer tokens a change of a picosecond, which sprays packets another way, moves the end by 3 %.
  const Explanation why = check_predictions(operator_run("dispatch", 8, 32, "0,1,2,3,16,17,18,19"),
                                            {"ub.link.trunk_rate=0.02"}, "trunks at 1:50");
  const Explanation::Gain& gain = gain_of(why, Resource::trunk);
  EXPECT_GT(gain.share, 0.1);
  EXPECT_TRUE(gain.checked);
  EXPECT_EQ(gain.changes, std::vector<std::string>{"ub.link.trunk_rate=0.04"});
  EXPECT_THAT(names_of_checked(why), ::testing::Not(::testing::Contains("link bandwidth")));
}

TEST(Predictions, WhereBuffersBindTheirCellsAreTheKnob) {
  const Explanation why =
      check_predictions(operator_run("combine", 8, 8), {"ub.link.buffer_cells=8"}, "8 buffer cells");
  const Explanation::Gain& gain = gain_of(why, Resource::buffers);
  EXPECT_GT(gain.share, 0.1);
  EXPECT_TRUE(gain.checked);
  EXPECT_EQ(gain.changes, std::vector<std::string>{"ub.link.buffer_cells=16"});
  EXPECT_GT(share_of(why.busiest, "link buffers"), 0.3);
}

TEST(Predictions, WhereTranslationBindsItsLatencyIsTheKnob) {
  const Explanation why = check_predictions(operator_run("dispatch", 8, 16),
                                            {"ub.translation.miss_latency=10us"}, "walks of 10 us");
  const Explanation::Gain& gain = gain_of(why, Resource::translation);
  EXPECT_GT(gain.share, 0.1);
  EXPECT_TRUE(gain.checked);
  EXPECT_EQ(gain.changes, std::vector<std::string>{"ub.translation.miss_latency=5us"});
  EXPECT_NEAR(why.followed_us, why.span_us, 0.02 * why.span_us);
}

// The path's first three are tried whatever they would give.
TEST(Predictions, TriesTheFirstOfThePath) {
  Explanation why;
  why.span_us = 100;
  why.path = {{"waiting in the fabric", 40, 0.4, Resource::none},
              {"trunk bandwidth", 30, 0.3, Resource::trunk},
              {"scalar unit", 10, 0.1, Resource::scalar},  // has no parameter
              {"barrier", 9, 0.09, Resource::barrier},
              {"wire and switch latency", 8, 0.08, Resource::wire},
              {"HBM", 3, 0.03, Resource::hbm}};
  for (const Resource resource : {Resource::trunk, Resource::scalar, Resource::barrier, Resource::wire,
                                  Resource::hbm, Resource::launch}) {
    Explanation::Gain gain;
    gain.resource = resource;
    if (resource != Resource::scalar) gain.changes = {"a=b"};
    why.gains.push_back(gain);
  }
  EXPECT_EQ(why.to_check(), (std::vector<std::size_t>{0, 2, 3}));
  why.gains[5].share = 0.01;
  EXPECT_EQ(why.to_check(), (std::vector<std::size_t>{5, 0, 2, 3}));
  why.busiest = {{"launch and teardown", 50, 0.5, Resource::launch},
                 {"HBM bandwidth", 40, 0.4, Resource::hbm}};
  EXPECT_EQ(why.to_check(), (std::vector<std::size_t>{5, 0, 2, 3, 4}));
}

// Runs with parameters changed are watched for their span alone: it is the one that the whole explanation
// has, of kernels in turn after a warm-up, of one launch, and of a stream's copies.
TEST(Explain, ASpanAloneIsThatOfAnExplanation) {
  const observe::Run copies = [](const studies::StudyContext& context) {
    studies::SimulatorCounts counts;
    studies::CopiesPoint point;
    point.volume = Bytes{1 << 18};
    point.streams = 2;
    studies::measure_copies(context, point, counts);
  };
  for (const observe::Run& run : {observe::Run(dispatch), observe::Run(p2p_write), copies}) {
    const double whole = explained(run).span_us;
    EXPECT_GT(whole, 1);
    EXPECT_DOUBLE_EQ(span_us(run, {}, {}), whole);
  }
}

// What ran for the warm-up was busy too, but not in the time that is explained.
TEST(Explain, BusiestIsWhatRanAfterTheWarmUp) {
  const auto busiest = [](int warmup) {
    return explained([warmup](const studies::StudyContext& context) {
             studies::SimulatorCounts counts;
             studies::DispatchCase setting;
             setting.ranks = 4;
             setting.batch = 32;
             setting.experts = 32;
             setting.warmup = warmup;
             measure_dispatch(context, setting, counts);
           })
        .busiest;
  };
  const auto none = busiest(0), three = busiest(3);
  for (const Explanation::Share& one : none) {
    if (one.share > 0.02) {
      EXPECT_NEAR(share_of(three, one.name), one.share, 0.25 * one.share) << one.name;
    }
  }
}

}  // namespace
}  // namespace cm384::observe::explain_test
