// The states of a request, one after the other, and back after a fault.
#include "workloads/service/request_table.h"

#include <gmock/gmock.h>

namespace cm384::service::request_table_test {
namespace {

RequestTrace two_requests() {
  RequestTrace trace;
  trace.requests.resize(2);
  trace.requests[0].output = 9;
  trace.requests[1].output = 1;
  return trace;
}

TEST(RequestTable, KeepsTheTimesOfTheLastAttempt) {
  const RequestTrace trace = two_requests();
  RequestTable table(trace);
  EXPECT_EQ(table.state(0), RequestState::pending);
  table.arrive(0, 1_ms);
  table.set_cached(0, 3, 2, 1);
  table.begin_prefill(0, 4, 2_ms);
  EXPECT_FALSE(table.has_context(0));
  table.end_prefill(0, 3_ms);
  EXPECT_TRUE(table.has_context(0));
  table.begin_transfer(0, 17, 5, 4_ms);
  EXPECT_EQ(table.state(0), RequestState::transferring);
  EXPECT_EQ(table.served(0).die, 17);
  table.restart(0);
  EXPECT_EQ(table.state(0), RequestState::waiting);
  EXPECT_EQ(table.served(0).die, -1);
  EXPECT_FALSE(table.has_context(0));
  table.begin_prefill(0, 5, 6_ms);
  table.end_prefill(0, 7_ms);
  table.begin_transfer(0, 3, 6, 8_ms);
  table.end_transfer(0, 9_ms);
  EXPECT_EQ(table.state(0), RequestState::decoding);
  table.complete(0, 10_ms);
  const Served served = table.release().front();
  EXPECT_EQ(served.state, RequestState::done);
  EXPECT_EQ(served.restarts, 1);
  EXPECT_EQ(served.instance, 5);
  EXPECT_EQ(served.die, 3);
  EXPECT_EQ(served.steps, 6);
  EXPECT_EQ(served.cached(), 6);
  EXPECT_EQ(served.arrival, 1_ms);
  EXPECT_EQ(served.prefill_start, 6_ms);
  EXPECT_EQ(served.first_token, 7_ms);
  EXPECT_EQ(served.transfer_start, 8_ms);
  EXPECT_EQ(served.transferred, 9_ms);
  EXPECT_EQ(served.done, 10_ms);
}

TEST(RequestTable, EndsAnAnswerOfOneTokenWithItsPrompt) {
  const RequestTrace trace = two_requests();
  RequestTable table(trace);
  table.arrive(1, {});
  table.begin_prefill(1, 0, {});
  table.end_prefill(1, 1_ms);
  table.complete(1, 1_ms);
  EXPECT_EQ(table.state(1), RequestState::done);
  EXPECT_FALSE(table.has_context(1));
}

}  // namespace
}  // namespace cm384::service::request_table_test
