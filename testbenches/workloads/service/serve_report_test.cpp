// What a row tells of a service's run, against results made by hand.
#include "workloads/service/study/serve_report.h"

#include <gtest/gtest.h>

#include "testbenches/hw/refusal.h"
#include "testbenches/system/machine/study_stand.h"
#include "testbenches/workloads/service/file_of.h"
#include "testbenches/workloads/service/small_service.h"
#include "workloads/frame/request_options.h"

namespace cm384::studies::serve_report_test {
namespace {

using namespace cm384::literals;

// Requests of one prompt and ten tokens each, one per 100 ms, answered within 20 ms; the last one only after
// `last`.
Row row_of(int requests, Time last, Time gap = 100_ms, int late = 0) {
  service::RequestTrace trace;
  service::ServiceResult result;
  for (int k = 0; k < requests; ++k) {
    service::Request& request = trace.requests.emplace_back();
    request.arrival = gap * k;
    request.prompt = 100;
    request.output = 10;
    service::Served& served = result.served.emplace_back();
    served.arrival = request.arrival;
    served.prefill_start = request.arrival;
    served.first_token = request.arrival + (k < late ? 5_s : 10_ms);
    served.transferred = served.first_token;
    served.done = served.first_token + (k + 1 == requests ? last : 10_ms);
    result.end = std::max(result.end, served.done);
  }
  result.output_tokens = 10 * requests;
  return service_row(trace, service::small_deployment(), result, {1'000, 1e9});
}

// A benchmark's result without times is no recording.
TEST(RequestOptions, LengthsAloneAreRefusedAsRequests) {
  supernode::StudyStand stand;
  const auto load = [&](const std::string& text) {
    const FileOf file(text);
    RequestOptions options;
    options.requests = file.path();
    return refusal([&] { options.load(stand.context(), "serve", 1, 0); });
  };
  const std::string lengths = R"({"input_lens": [10], "output_lens": [1])";
  EXPECT_NE(load(lengths + "}").find("does not tell when its requests came; allowed"), std::string::npos);
  EXPECT_EQ(load(lengths + R"(, "start_times": [3.5]})"), "(accepted)");
}

TEST(Goodput, IsOfTheTimeInWhichRequestsCome) {
  for (const Time last : {10_ms, 100_s}) {
    const Row row = row_of(101, last);
    EXPECT_NEAR(row["goodput_rps"].number(), 10, 1e-9);
    EXPECT_NEAR(row["goodput_rps"].number(), row["rate_rps"].number(), 1e-9);
  }
}

TEST(Goodput, CountsRequestsThatMeetTheObjectives) {
  const Row row = row_of(100, 10_ms, 100_ms, 25);
  EXPECT_NEAR(row["goodput_share"].number(), 0.75, 1e-12);
  EXPECT_NEAR(row["goodput_rps"].number(), 7.5, 1e-9);
}

TEST(Goodput, IsNoneOfRequestsThatComeAtOneMoment) {
  EXPECT_TRUE(row_of(1, 10_ms)["rate_rps"].empty());
  EXPECT_TRUE(row_of(1, 10_ms)["goodput_rps"].empty());
  EXPECT_TRUE(row_of(5, 10_ms, 0_ms)["goodput_rps"].empty());
  const std::vector<Row> seeds{row_of(5, 10_ms), row_of(1, 10_ms)};
  EXPECT_TRUE(mean_row(seeds)["goodput_rps"].empty());
}

// Two classes, of which the second waits and half of it is refused.
TEST(Classes, HaveTimesOfTheirOwn) {
  service::RequestTrace trace;
  service::ServiceResult result;
  for (int k = 0; k < 20; ++k) {
    service::Request& request = trace.requests.emplace_back();
    request.arrival = 100_ms * k;
    request.output = 1;
    request.priority = k % 2 == 0 ? 0 : 3;
    service::Served& served = result.served.emplace_back();
    served.arrival = request.arrival;
    served.first_token = served.done = request.arrival + (k % 2 == 0 ? 10_ms : 700_ms);
    served.state = k % 4 == 3 ? service::RequestState::refused : service::RequestState::done;
    result.refused += k % 4 == 3 ? 1 : 0;
  }
  result.end = 3_s;
  result.output_tokens = 15;
  service::Deployment deployment = service::small_deployment();
  EXPECT_TRUE(service_row(trace, deployment, result, {500, 1e9})["classes"].empty());
  deployment.prefill.order = "priority";
  deployment.prefill.most_waiting = 1;
  const Row row = service_row(trace, deployment, result, {1000, 1e9});
  EXPECT_EQ(row["requests"].number(), 15);
  EXPECT_EQ(row["refused"].number(), 5);
  EXPECT_DOUBLE_EQ(row["goodput_share"].number(), 0.75);
  const Rows& classes = *row["classes"].rows();
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(*classes[0]["name"].text(), "0");
  EXPECT_EQ(classes[0]["requests"].number(), 10);
  EXPECT_DOUBLE_EQ(classes[0]["ttft_p99_ms"].number(), 10);
  EXPECT_EQ(*classes[1]["name"].text(), "3");
  EXPECT_EQ(classes[1]["requests"].number(), 5);
  EXPECT_DOUBLE_EQ(classes[1]["ttft_p50_ms"].number(), 700);
  EXPECT_DOUBLE_EQ(classes[1]["goodput_share"].number(), 0.5);
}

}  // namespace
}  // namespace cm384::studies::serve_report_test
