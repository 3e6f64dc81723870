// The timeline of a service: a request's phases are its life, without a gap; an instance does one thing at a
// time.
#include "workloads/service/study/serve_timeline.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/text/json.h"
#include "testbenches/system/machine/perfetto_rule.h"
#include "testbenches/workloads/service/small_service.h"
#include "workloads/service/drawn_requests.h"

namespace cm384::studies::serve_timeline_test {
namespace {

using Lane = std::pair<int, int>;  // process, lane
struct Slice {
  double begin, end;
  std::string name;
};

class ServeTimelineTest : public ::testing::Test {
 protected:
  ServeTimelineTest() {
    service::DrawnRequests wanted;
    wanted.rate = 60;
    wanted.duration = 10_s;
    wanted.prompt = "uniform:50:900";
    wanted.output = "uniform:1:120";
    trace_ = service::draw_requests(wanted);
  }
  // Runs the small service and reads what the timeline wrote.
  int draw(observe::TimelineOptions window, int requests) {
    const std::string path = (std::filesystem::temp_directory_path() /
                              ::testing::UnitTest::GetInstance()->current_test_info()->name())
                                 .string() +
                             ".json";
    ServeTimeline timeline(path, window, requests);
    service::ServiceOptions options;
    options.faults.outages.push_back({true, 0, 3_s, 1_s});
    options.watch = [&](const service::Activity& activity) { timeline.add(activity); };
    result_ = service::serve(trace_, service::small_deployment(), service::small_library(), options);
    const int shown = timeline.finish(trace_, result_, service::small_deployment());
    std::ifstream file(path);
    const Json json = Json::parse(file);
    EXPECT_TRUE(slices_perfetto_drops(json).empty()) << slices_perfetto_drops(json).front();
    for (const Json& event : json["traceEvents"]) {
      if (event["ph"] != "X") continue;
      const double begin = event["ts"].get<double>();
      lanes_[{event["pid"].get<int>(), event["tid"].get<int>()}].push_back(
          {begin, begin + event["dur"].get<double>(), event["name"].get<std::string>()});
    }
    std::filesystem::remove(path);
    return shown;
  }

  service::RequestTrace trace_;
  service::ServiceResult result_;
  std::map<Lane, std::vector<Slice>> lanes_;
};

TEST_F(ServeTimelineTest, HasARequestsLifeWithoutAGap) {
  const auto count = static_cast<int>(trace_.requests.size());
  ASSERT_EQ(draw({}, count), count);
  for (int k = 0; k < count; ++k) {
    const auto& slices = lanes_[{1, k}];
    const service::Served& served = result_.served[static_cast<std::size_t>(k)];
    ASSERT_FALSE(slices.empty());
    EXPECT_NEAR(slices.front().begin, served.arrival.us(), 0.01);
    EXPECT_NEAR(slices.back().end, served.done.us(), 0.01);
    EXPECT_EQ(slices.back().name,
              trace_.requests[static_cast<std::size_t>(k)].output > 1 ? "decode" : "prefill");
    for (std::size_t s = 1; s < slices.size(); ++s) EXPECT_NEAR(slices[s].begin, slices[s - 1].end, 0.01);
  }
}

TEST_F(ServeTimelineTest, ShowsInstancesAndLinksThatDoOneThingAtATime) {
  draw({}, static_cast<int>(trace_.requests.size()));
  std::map<std::string, int> names;
  for (const auto& [lane, slices] : lanes_) {
    if (lane.first == 1) continue;
    for (std::size_t s = 0; s < slices.size(); ++s) {
      ++names[lane.first == 3 ? "transfer" : slices[s].name];
      if (s == 0) continue;
      EXPECT_GE(slices[s].begin, slices[s - 1].end - 0.01) << lane.first << " " << slices[s].name;
    }
  }
  EXPECT_EQ(names["batch"] + names["batch, lost"], result_.batches);
  EXPECT_EQ(names["batch, lost"], 1);
  EXPECT_EQ(names["step"], result_.steps);
  EXPECT_EQ(names["away"], 1);
  EXPECT_GT(names["transfer"], 0);
}

TEST_F(ServeTimelineTest, ShowsTheFirstOfAWindow) {
  observe::TimelineOptions window;
  window.from = 2_s;
  EXPECT_EQ(draw(window, 5), 5);
  Time last{};
  for (const auto& [lane, slices] : lanes_) {
    for (const Slice& slice : slices) {
      EXPECT_GE(slice.begin, 2e6 - 0.01);
      if (lane.first == 1) last = std::max(last, Time{static_cast<std::int64_t>(slice.end * 1e6)});
    }
    if (lane.first == 1) {
      EXPECT_GE(slices.front().begin, 2e6);
    }
  }
  // Instances are shown for as long as one of these is there.
  for (const auto& [lane, slices] : lanes_)
    for (const Slice& slice : slices) EXPECT_LE(slice.end, last.us() + 0.01);
}

}  // namespace
}  // namespace cm384::studies::serve_timeline_test
