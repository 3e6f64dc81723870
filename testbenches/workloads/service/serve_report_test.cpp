// What a row tells of a service's run, against results made by hand.
#include "workloads/service/study/serve_report.h"

#include <gtest/gtest.h>

#include <array>

#include "testbenches/hw/refusal.h"
#include "testbenches/system/machine/study_stand.h"
#include "testbenches/workloads/service/file_of.h"
#include "testbenches/workloads/service/small_service.h"
#include "workloads/frame/request_options.h"
#include "workloads/service/study/serve_evidence.h"

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
  return service_row(trace, service::small_deployment(), result, {{1'000, 1e9}});
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
  EXPECT_NE(load(lengths + "}").find("does not say when its requests arrived; allowed"), std::string::npos);
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

// Every third request is of class 1, which may wait ten times as long, and of class 2, which has to end in
// time.
TEST(Goodput, IsByTheObjectivesOfEachClass) {
  service::RequestTrace trace;
  service::ServiceResult result;
  for (int k = 0; k < 30; ++k) {
    service::Request& request = trace.requests.emplace_back();
    request.output = 11;
    request.priority = static_cast<std::uint8_t>(k % 3);
    service::Served& served = result.served.emplace_back();
    served.state = service::RequestState::done;
    served.first_token = 1_ms * (100 * (k / 3 + 1));  // 100 ms to a second, each once in each class
    served.done = served.first_token + 200_ms;        // 20 ms per token
  }
  Objectives objectives{{400, 20}};
  EXPECT_DOUBLE_EQ(share_that_meets(trace, result, objectives), 0.4);
  objectives.by_class.insert(class_objective("1:4000:20"));
  EXPECT_DOUBLE_EQ(share_that_meets(trace, result, objectives), (4 + 10 + 4) / 30.0);
  objectives.by_class.insert(class_objective("2:4000:20:700"));
  EXPECT_DOUBLE_EQ(share_that_meets(trace, result, objectives), (4 + 10 + 5) / 30.0);
  objectives.of_all.e2e_ms = 300;
  EXPECT_DOUBLE_EQ(share_that_meets(trace, result, objectives), (1 + 10 + 5) / 30.0)
      << "an end at 300 ms is in time";
  objectives.by_class[1].tpot_ms = 19.99;
  EXPECT_DOUBLE_EQ(share_that_meets(trace, result, objectives), (1 + 0 + 5) / 30.0);
  // The longest wait for a token, 20 ms here, and 60 ms of one request of each class.
  for (int k = 0; k < 30; ++k)
    result.served[static_cast<std::size_t>(k)].longest_gap = 1_ms * (k < 3 ? 60 : 20);
  objectives = {{400, 20, 0, 59.9}};
  EXPECT_DOUBLE_EQ(share_that_meets(trace, result, objectives), 9 / 30.0);
  objectives.by_class.insert(class_objective("1:4000:20:0:60"));
  EXPECT_DOUBLE_EQ(share_that_meets(trace, result, objectives), (3 + 10 + 3) / 30.0);
  objectives.by_class[1].itl_ms = 19.9;
  EXPECT_DOUBLE_EQ(share_that_meets(trace, result, objectives), (3 + 0 + 3) / 30.0);
  for (const char* text :
       {"", "1", "1:2", "1:2:3:4:5:6", "1:1:1:1:-1", "256:1:1", "-1:1:1", "1:0:1", "1:1:x", "1:1:1:0"})
    EXPECT_NE(refusal([&] { check_class_objective(text); }), "(accepted)") << text;
}

TEST(Goodput, IsNoneOfRequestsThatComeAtOneMoment) {
  EXPECT_TRUE(row_of(1, 10_ms)["rate_rps"].empty());
  EXPECT_TRUE(row_of(1, 10_ms)["goodput_rps"].empty());
  EXPECT_TRUE(row_of(5, 10_ms, 0_ms)["goodput_rps"].empty());
  const std::vector<Row> seeds{row_of(5, 10_ms), row_of(1, 10_ms)};
  EXPECT_TRUE(mean_row(seeds)["goodput_rps"].empty());
}

// A hundred requests of 100 ms, and one of a second that the links had for 700 ms.
TEST(Why, SaysWhereTheTimeWent) {
  service::ServiceResult result;
  const auto add = [&](const std::array<int, 5>& ms, int preemptions = 0) {
    service::Served& served = result.served.emplace_back();
    served.state = service::RequestState::done;
    served.die = 0;
    served.preemptions = preemptions;
    served.arrival = 5_s;
    served.prefill_start = served.arrival + 1_ms * ms[0];
    served.first_token = served.prefill_start + 1_ms * ms[1];
    served.transfer_start = served.first_token + 1_ms * ms[2];
    served.transferred = served.transfer_start + 1_ms * ms[3];
    served.done = served.transferred + 1_ms * ms[4];
  };
  const auto why = [&](double kv_peak = 0.5) {
    Row row{{"kv_peak", kv_peak}};
    set_why(row, result);
    return row;
  };
  const auto share = [](const Row& row, const char* of, const char* name) {
    return (*row[of].row())[name].number();
  };
  for (int k = 0; k < 99; ++k) add({10, 20, 5, 5, 60});
  add({50, 50, 100, 700, 100});
  Row row = why();
  const double all = 99 * 100 + 1000;
  EXPECT_NEAR(share(row, "time_share", "queue"), (99 * 10 + 50) / all, 1e-12);
  EXPECT_NEAR(share(row, "time_share", "prefill"), (99 * 20 + 50) / all, 1e-12);
  EXPECT_NEAR(share(row, "time_share", "place"), (99 * 5 + 100) / all, 1e-12);
  EXPECT_NEAR(share(row, "time_share", "transfer"), (99 * 5 + 700) / all, 1e-12);
  EXPECT_NEAR(share(row, "time_share", "decode"), (99 * 60 + 100) / all, 1e-12);
  EXPECT_NEAR(share(row, "tail_share", "transfer"), 0.7, 1e-12) << "of the slowest one alone";
  EXPECT_EQ(*row["bound"].text(), "decode: steps");
  // One more request, and two are the slowest hundredth.
  add({10, 20, 5, 5, 60});
  EXPECT_NEAR(share(why(), "tail_share", "transfer"), 705.0 / 1100, 1e-12);
  // Of one that was preempted all behind its first token is decode, and of one with a single token nothing
  // is.
  result.served.clear();
  add({10, 20, 500, 500, 70}, 1);
  EXPECT_NEAR(share(why(), "time_share", "decode"), 1070.0 / 1100, 1e-12);
  result.served.clear();
  add({30, 10, 0, 0, 0});
  result.served.back().die = -1;
  result.served.back().transfer_start = result.served.back().transferred = {};
  row = why();
  EXPECT_NEAR(share(row, "time_share", "queue"), 0.75, 1e-12);
  EXPECT_EQ(share(row, "time_share", "decode"), 0);
  EXPECT_EQ(*row["bound"].text(), "prefill: prompts wait for an instance");
  // Who was refused has no time.
  result.served.emplace_back().state = service::RequestState::refused;
  EXPECT_NEAR(share(why(), "time_share", "queue"), 0.75, 1e-12);
  const auto bound = [&](const std::array<int, 5>& ms, double kv_peak) {
    result.served.clear();
    add(ms);
    return *why(kv_peak)["bound"].text();
  };
  EXPECT_EQ(bound({1, 9, 1, 1, 1}, 0), "prefill: batches of prompts");
  EXPECT_EQ(bound({1, 1, 1, 9, 1}, 0), "links: contexts on their way");
  EXPECT_EQ(bound({1, 1, 9, 1, 1}, 0.9), "slots of decode: contexts wait for them");
  EXPECT_EQ(bound({1, 1, 9, 1, 1}, 0.95), "memory of decode: contexts wait for room");
}

// A thousand requests, each a millisecond later to its first token than the one before: the first half is
// measured, the second one interpolated and up to 5 % off. Links take a tenth of the rest.
TEST(EvidenceOfPercentiles, IsThatOfTheRequestsNextToThem) {
  service::RequestTrace trace;
  service::ServiceResult result;
  for (int k = 0; k < 1000; ++k) {
    service::Request& request = trace.requests.emplace_back();
    request.output = 11;
    service::Served& served = result.served.emplace_back();
    served.state = service::RequestState::done;
    served.die = 0;
    served.first_token = 1_ms * (k + 1);
    served.transfer_start = served.first_token;
    served.transferred = served.first_token + 10_ms;
    served.done = served.first_token + 100_ms;
    service::LatencyEvidence& of = result.evidence_of.emplace_back();
    of.prefill.s[k < 500 ? 0 : 1] = 7;  // stretched to what it took
    of.prefill.error_s = k < 500 ? 0 : 0.05 * 7;
    of.decode.s[0] = of.decode.s[2] = 1;
  }
  // Who was refused is of no percentile.
  trace.requests.emplace_back().output = 11;
  result.served.emplace_back().state = service::RequestState::refused;
  result.evidence_of.emplace_back();
  const Rows rows = evidence_rows(trace, result);
  ASSERT_EQ(rows.size(), 9u);
  const auto find = [&](const char* metric, const char* percentile) -> const Row& {
    return *std::ranges::find_if(rows, [&](const Row& row) {
      return *row["metric"].text() == metric && *row["percentile"].text() == percentile;
    });
  };
  // The 500th and five on each side: 495 to 500 ms measured, 501 to 505 ms not.
  const double measured = 495 + 496 + 497 + 498 + 499 + 500, other = 501 + 502 + 503 + 504 + 505;
  const Row& p50 = find("ttft", "p50");
  EXPECT_DOUBLE_EQ(p50["ms"].number(), 500);
  EXPECT_NEAR(p50["measured"].number(), measured / (measured + other), 1e-12);
  EXPECT_NEAR(p50["interpolated"].number(), other / (measured + other), 1e-12);
  EXPECT_NEAR(p50["error"].number(), 0.05 * other / (measured + other), 1e-12);
  EXPECT_NEAR(find("ttft", "p99")["interpolated"].number(), 1, 1e-12);
  EXPECT_NEAR(find("ttft", "p99")["error"].number(), 0.05, 1e-12);
  const Row& tpot = find("tpot", "p90");
  EXPECT_DOUBLE_EQ(tpot["ms"].number(), 10);
  EXPECT_NEAR(tpot["measured"].number(), 0.45, 1e-12);
  EXPECT_NEAR(tpot["extrapolated"].number(), 0.45, 1e-12);
  EXPECT_NEAR(tpot["parameter"].number(), 0.1, 1e-12);
  // From arrival to the end both parts count by their time: 990 ms and 100 ms.
  const Row& e2e = find("e2e", "p99");
  EXPECT_DOUBLE_EQ(e2e["ms"].number(), 1090);
  EXPECT_NEAR(e2e["interpolated"].number(), 990.0 / 1090, 1e-3);
  EXPECT_NEAR(e2e["parameter"].number(), 10.0 / 1090, 1e-4);
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
  EXPECT_TRUE(service_row(trace, deployment, result, {{500, 1e9}})["classes"].empty());
  deployment.prefill.order = "priority";
  deployment.prefill.most_waiting = 1;
  const Row row = service_row(trace, deployment, result, {{1000, 1e9}});
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
