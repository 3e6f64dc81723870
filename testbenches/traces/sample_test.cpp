// Samples of traces: which windows, what is replayed of them, and what of their waits is left.
#include "traces/sample.h"

#include <gmock/gmock.h>

#include <numeric>

#include "testbenches/hw/refusal.h"
#include "traces/random.h"

namespace cm384::traces::sample_test {
namespace {

using namespace cm384::literals;
using Wait = TrafficDependency::Kind;

TEST(SamplePlan, DrawsEveryWindowOfAPartEquallyOften) {
  // 10 windows of 7 records, the last one of 2, in 3 parts of 3, 3 and 4.
  std::vector<int> drawn(10);
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const SamplePlan plan = plan_sample(65, {3, 7, 2, seed});
    ASSERT_EQ(plan.measured.size(), 3u);
    for (const SamplePlan::Run& window : plan.measured) {
      EXPECT_EQ(window.begin % 7, 0u);
      EXPECT_EQ(window.end, std::min<std::uint64_t>(65, window.begin + 7));
      ++drawn[window.begin / 7];
    }
  }
  for (std::size_t block = 0; block < drawn.size(); ++block)
    EXPECT_NEAR(drawn[block], block < 6 ? 1000 : 750, 90);
}

TEST(SamplePlan, ReplaysWarmUpsAndJoinsRunsThatTouch) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const SamplePlan plan = plan_sample(1000, {5, 50, 40, seed});
    std::uint64_t last = 0, replayed = 0;
    for (const SamplePlan::Run& run : plan.replayed) {
      EXPECT_TRUE(last == 0 || run.begin > last);
      last = run.end;
      replayed += run.end - run.begin;
    }
    EXPECT_EQ(plan.replayed_records(), replayed);
    EXPECT_LE(last, 1000u);
    for (const SamplePlan::Run& w : plan.measured) {
      EXPECT_TRUE(std::ranges::any_of(plan.replayed, [&](const SamplePlan::Run& run) {
        return run.begin <= w.begin - std::min<std::uint64_t>(w.begin, 40) &&
               run.end >= std::min<std::uint64_t>(1000, w.end + 40);
      }));
    }
  }
  EXPECT_EQ(refusal([] { plan_sample(650, {5, 50, 40, 1}); }), "(accepted)");
  EXPECT_THAT(
      refusal([] {
        plan_sample(649, {5, 50, 40, 1});
      }),
      ::testing::HasSubstr("--sample: 5 windows of 50 records with 40 before and behind each are more "
                           "than the trace's 649"));
}

// A transfer each 100 ns; each waits for the one before it and for the tenth before it.
std::string chain(const std::string& name, std::uint64_t records) {
  const std::string path = ::testing::TempDir() + "cm384-sample-" + name;
  const auto sink = create_traffic(path, {"small", "chain", {}});
  for (std::uint64_t n = 0; n < records; ++n) {
    TrafficRecord r;
    r.source.number = static_cast<std::uint16_t>(4 + 4 * (n % 2));
    r.target.number = 6;
    r.bytes = 1 + n;
    r.start = Time{static_cast<std::int64_t>(n) * 100'000};
    r.end = r.start + 50_ns;
    if (n >= 1) r.dependencies.push_back({n - 1, Wait::completion, 50_ns});
    if (n >= 10) r.dependencies.push_back({n - 10, Wait::arrival, 1_ns});
    sink->add(r);
  }
  sink->finish();
  return path;
}

TEST(SampledTrace, GivesTheRecordsOfItsRunsWithWhatIsLeftOfTheirWaits) {
  constexpr std::uint64_t kRecords = 60'000;  // several blocks of a binary file
  SamplePlan plan;
  plan.records = kRecords;
  plan.measured = {{20, 30}, {50'000, 50'010}};
  plan.replayed = {{15, 35}, {49'995, 50'015}};
  for (const char* name : {"chain.trace", "chain.csv"}) {
    const std::string path = chain(name, kRecords);
    EXPECT_EQ(count_records(path), kRecords);
    SampledTrace trace(path, plan);
    EXPECT_EQ(trace.header().study, std::string_view(name).ends_with("csv") ? "" : "chain");
    std::vector<TrafficRecord> all;
    std::vector<SampledTrace::Origin> origins;
    for (TrafficRecord r; trace.next(r); trace.drop()) {
      EXPECT_EQ(fault_of(r, all.size()), "");
      all.push_back(r);
      origins.push_back(trace.front());
    }
    ASSERT_EQ(all.size(), 20 + 1 + 20u);
    for (std::size_t n = 0; n < all.size(); ++n) {
      const SampledTrace::Origin& origin = origins[n];
      if (n == 20) {  // all of the first run has ended: what nothing of it waits for by its completion
        EXPECT_EQ(all[n].kind, TrafficRecord::Kind::barrier);
        EXPECT_EQ(all[n].source.number, 4);
        EXPECT_EQ(origin.record, SampledTrace::Origin::kNone);
        EXPECT_EQ(all[n].dependencies, (std::vector{TrafficDependency{19, Wait::completion, {}}}));
        continue;
      }
      const bool second = n > 20;
      const std::size_t at = second ? n - 21 : n;
      EXPECT_EQ(origin.record, (second ? 49'995 : 15) + at);
      EXPECT_EQ(all[n].bytes, origin.record + 1);
      EXPECT_EQ(origin.run, second ? 1 : 0);
      EXPECT_EQ(origin.window, at < 5 || at >= 15 ? -1 : origin.run);
      EXPECT_EQ(origin.cut, at == 0);
      std::vector<TrafficDependency> waits;
      if (at >= 1) waits.push_back({n - 1, Wait::completion, 50_ns});
      if (at >= 10) waits.push_back({n - 10, Wait::arrival, 1_ns});
      if (second && at == 0) waits.push_back({20, Wait::completion, {}});
      EXPECT_EQ(all[n].dependencies, waits) << n;
      EXPECT_EQ(all[n].start, (second ? 1950_ns : Time{}) + Time{static_cast<std::int64_t>(at) * 100'000});
    }
  }
}

}  // namespace
}  // namespace cm384::traces::sample_test
