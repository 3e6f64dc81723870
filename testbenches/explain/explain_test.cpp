// What is predicted of a machine that is faster in one respect, against a run of that machine.
#include <gmock/gmock.h>

#include "observe/observers.h"
#include "studies/dispatch.h"
#include "studies/p2p.h"
#include "studies/stream.h"
#include "testbenches/supernode/study_stand.h"

namespace cm384::observe {
namespace {

using Run = std::function<void(const studies::StudyContext&)>;

Explanation explained(const Run& run, const std::vector<std::string>& changes = {}) {
  supernode::StudyStand stand;
  for (const std::string& change : changes) hw::override_parameter(stand.machine, change);
  ObserverRequest request;
  request.explain = true;
  Observers observers(request);
  studies::StudyContext context = stand.context();
  context.observers = &observers;
  run(context);
  return observers.explanations().back();
}
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
  const double faster = explained(run, gain.changes).span_us;
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

}  // namespace
}  // namespace cm384::observe
