// What goes wrong in a service, counted by hand on one request; and that nothing is lost under all of it.
#include <gmock/gmock.h>

#include <cmath>

#include "testbenches/hw/refusal.h"
#include "testbenches/workloads/service/small_service.h"
#include "workloads/service/drawn_requests.h"
#include "workloads/service/simulation.h"

namespace cm384::service::faults_test {
namespace {

// A prompt of 500 tokens takes 50 ms, its context 0.5 ms on the link and 3 us; the answer's eight further
// tokens four steps.
constexpr double kReady = 50.503;
constexpr std::int32_t kSteps = 4;

RequestTrace one_request() {
  RequestTrace trace;
  trace.requests.resize(1);
  trace.requests[0].prompt = 500;
  trace.requests[0].output = 9;
  return trace;
}

double step_ms() {
  return DecodeSteps(small_library(), 4, 1).at(8, 128).ms;
}
Time ms(double value) {
  return {std::llround(value * 1e9)};
}

class Faulty : public ::testing::Test {
 protected:
  Faulty() {
    deployment_.decode.acceptance = 1;
    deployment_.recovery.degrade = 200_ms;
    deployment_.recovery.role_switch = 300_ms;
    deployment_.recovery.restart = 400_ms;
    options_.rdma = {1'000'000'000};
    options_.rdma_latency = 3_us;
  }
  double e2e_ms() {
    result_ = serve(one_request(), deployment_, small_library(), options_);
    return result_.served[0].e2e_ms();
  }
  void lose_die(bool prefill, int instance, int die, double at_ms, Recovery recovery = Recovery::degrade) {
    options_.faults.dies.push_back({prefill, instance, die, ms(at_ms), recovery});
  }

  Deployment deployment_ = small_deployment();
  ServiceOptions options_;
  ServiceResult result_;
};

// Four contexts at a time: a die of prefill sends to two of decode, one context after the other.
TEST_F(Faulty, ContextsQueueOnTheLinksOfBothSides) {
  RequestTrace trace = one_request();
  trace.requests[0].prompt = 250;
  trace.requests.resize(4, trace.requests[0]);
  deployment_.prefill.instances = 1;
  deployment_.prefill.batch_tokens = 2000;
  // The first is a batch of its own, and done when the other three end together.
  result_ = serve(trace, deployment_, small_library(), options_);
  const auto sent = [&](int k) {
    const Served& s = result_.served[static_cast<std::size_t>(k)];
    return std::pair(s.die, (s.transferred - s.first_token).us());
  };
  EXPECT_EQ(sent(0), std::pair(0, 253.0));
  EXPECT_EQ(sent(1), std::pair(0, 253.0));
  EXPECT_EQ(sent(2), std::pair(1, 503.0));
  EXPECT_EQ(sent(3), std::pair(2, 253.0));
  // Into one die, from two instances: the link there takes one after the other.
  deployment_.prefill.instances = 2;
  deployment_.decode.npus = 2;
  trace.requests.resize(2);
  trace.requests[0].arrival = trace.requests[1].arrival = {};
  options_.faults.dies = {{false, 0, 1, {}, Recovery::degrade},
                          {false, 0, 2, {}, Recovery::degrade},
                          {false, 0, 3, {}, Recovery::degrade}};
  result_ = serve(trace, deployment_, small_library(), options_);
  EXPECT_EQ(sent(0), std::pair(0, 253.0));
  EXPECT_EQ(sent(1), std::pair(0, 503.0));
}

TEST_F(Faulty, ALostDieStopsTheOthersForAPause) {
  // In the middle of the second step, which is made again after the pause.
  const double at = kReady + 1.5 * step_ms();
  lose_die(false, 0, 3, at);
  EXPECT_NEAR(e2e_ms(), at + 200 + (kSteps - 1) * step_ms(), 1e-6);
  EXPECT_EQ(result_.restarted, 0);
  EXPECT_EQ(result_.steps, kSteps + 1);
  EXPECT_NEAR(result_.degraded_s, (e2e_ms() - at) * 1e-3, 1e-9);
  EXPECT_NEAR(result_.decode_busy_s, (kSteps + 0.5) * step_ms() * 1e-3, 1e-9);
}

TEST_F(Faulty, ALostDieSendsItsRequestsBack) {
  const double at = kReady + 1.5 * step_ms();
  lose_die(false, 0, 0, at);
  // Its prompt and its context's way are over before the pause is.
  EXPECT_NEAR(e2e_ms(), at + 200 + kSteps * step_ms(), 1e-6);
  EXPECT_EQ(result_.restarted, 1);
  EXPECT_EQ(result_.served[0].restarts, 1);
  EXPECT_EQ(result_.served[0].die, 1);
  EXPECT_EQ(result_.lost_prompt_tokens, 500);
  EXPECT_EQ(result_.lost_output_tokens, 1 + 2);
  EXPECT_EQ(result_.output_tokens, 9);
}

TEST_F(Faulty, AContextOnItsWayIsLostWithItsDie) {
  lose_die(false, 0, 0, 50.2);
  deployment_.recovery.degrade = {};
  EXPECT_NEAR(e2e_ms(), 50.2 + kReady + kSteps * step_ms(), 1e-6);
  EXPECT_EQ(result_.restarted, 1);
  EXPECT_EQ(result_.lost_output_tokens, 1);
}

TEST_F(Faulty, ARoleSwitchTakesTheIdlestDieAsWell) {
  const double at = kReady + 1.5 * step_ms();
  lose_die(false, 0, 3, at, Recovery::role_switch);
  EXPECT_NEAR(e2e_ms(), at + 300 + (kSteps - 1) * step_ms(), 1e-6);
  EXPECT_EQ(result_.restarted, 0);
  // Two dies are left: with one more lost in this way there is none.
  lose_die(false, 0, 0, at, Recovery::role_switch);
  EXPECT_EQ(refusal([&] { e2e_ms(); }), "--fault: decode instance 0: all its 4 dies are lost");
}

TEST_F(Faulty, ARestartLosesEveryContext) {
  const double at = kReady + 1.5 * step_ms();
  lose_die(false, 0, 3, at, Recovery::restart);
  // The context is ready before the instance is, and waits at prefill.
  EXPECT_NEAR(e2e_ms(), at + 400 + 0.503 + kSteps * step_ms(), 1e-6);
  EXPECT_EQ(result_.restarted, 1);
}

TEST_F(Faulty, AnInstanceOfPrefillIsSlowerByTheDiesItLacks) {
  lose_die(true, 0, 1, 20);
  // The other instance takes the prompt at once.
  EXPECT_NEAR(e2e_ms(), 20 + kReady + kSteps * step_ms(), 1e-6);
  EXPECT_EQ(result_.lost_prompt_tokens, 500);
  EXPECT_EQ(result_.lost_output_tokens, 0);
  EXPECT_NEAR(result_.prefill_busy_s, 0.07, 1e-12);
  deployment_.prefill.instances = 1;
  EXPECT_NEAR(e2e_ms(), 20 + 200 + 2 * 50 + 0.503 + kSteps * step_ms(), 1e-6);
}

TEST_F(Faulty, AnInstanceOfPrefillLosesWhatItHasNotSent) {
  options_.faults.outages.push_back({true, 0, ms(50.2), 10_s});
  EXPECT_NEAR(e2e_ms(), 50.2 + kReady + kSteps * step_ms(), 1e-6);
  EXPECT_EQ(result_.restarted, 1);
}

TEST_F(Faulty, EachLostPlaneSlowsStepsAndBatches) {
  deployment_.recovery.plane_step = 1.5;
  deployment_.recovery.plane_batch = 1.2;
  options_.faults.planes.push_back({2, {}, {}});
  EXPECT_NEAR(e2e_ms(), 1.2 * 50 + 0.503 + 1.5 * kSteps * step_ms(), 1e-6);
  EXPECT_NEAR(result_.evidence_s[3], (1.2 * 50 + 0.5 * kSteps * step_ms()) * 1e-3, 1e-9);
  // Another one, back before the third step begins.
  const double batch = 1.44 * 50 + 0.503;
  options_.faults.planes.push_back({3, {}, ms(batch + 1.5 * 2.25 * step_ms())});
  EXPECT_NEAR(e2e_ms(), batch + (2 * 2.25 + 2 * 1.5) * step_ms(), 1e-6);
}

TEST_F(Faulty, RenewalsStopAnInstanceEverySoManySteps) {
  deployment_.decode.renew_every = 2;
  deployment_.decode.renew_time = 7_ms;
  EXPECT_NEAR(e2e_ms(), kReady + kSteps * step_ms() + 2 * 7, 1e-6);
  EXPECT_EQ(result_.renewals, 2);
  EXPECT_EQ(result_.degraded_s, 0);
}

TEST_F(Faulty, ADecodeInstanceBecomesSeveralOfPrefill) {
  deployment_.decode.instances = 2;
  deployment_.recovery.role_switch = 20_ms;
  options_.faults.switches.push_back({false, 1, 1, 10_ms});
  const double end = e2e_ms() * 1e-3;
  EXPECT_NEAR(end * 1e3, kReady + kSteps * step_ms(), 1e-6);
  EXPECT_NEAR(result_.decode_pool_s, end + 0.010, 1e-9);
  EXPECT_NEAR(result_.prefill_pool_s, 2 * end + 2 * (end - 0.030), 1e-9);
}

TEST_F(Faulty, InstancesOfPrefillBecomeOneOfDecodeWhenTheyAreDone) {
  deployment_.prefill.instances = 3;
  deployment_.recovery.role_switch = 1_ms;
  options_.faults.switches.push_back({true, 0, 1, 20_ms});
  const double end = e2e_ms() * 1e-3;
  // The first has a prompt, and its context until that is sent; the second has nothing.
  EXPECT_NEAR(result_.prefill_pool_s, end + kReady * 1e-3 + 0.020, 1e-9);
  EXPECT_NEAR(result_.decode_pool_s, end + end - (kReady + 1) * 1e-3, 1e-9);
}

TEST_F(Faulty, LosesNoRequestUnderAllOfIt) {
  DrawnRequests wanted;
  wanted.rate = 30;
  wanted.duration = 60_s;
  wanted.prompt = "uniform:50:900";
  wanted.output = "uniform:1:120";
  wanted.reuse = 0.5;
  wanted.block_tokens = 128;
  const RequestTrace trace = draw_requests(wanted);
  deployment_ = small_deployment();
  deployment_.prefill.instances = 5;
  deployment_.decode.instances = 3;
  deployment_.cache.on = true;
  deployment_.cache.dram = Bytes{1'000'000'000};
  deployment_.recovery = {1_s, 2_s, 3_s, 1.2, 1.1};
  deployment_.decode.renew_every = 50;
  deployment_.decode.renew_time = 20_ms;
  Faults& faults = options_.faults;
  faults.outages = {{true, 0, 5_s, 4_s}, {true, 0, 7_s, 4_s}, {false, 0, 20_s, 3_s}};
  faults.dies = {{false, 0, 1, 10_s, Recovery::degrade}, {false, 1, 2, 10_s, Recovery::role_switch},
                 {false, 1, 0, 40_s, Recovery::restart}, {true, 1, 0, 12_s, Recovery::degrade},
                 {true, 2, 0, 12_s, Recovery::restart},  {false, 2, 3, 25'001_ms, Recovery::restart}};
  faults.planes = {{0, 15_s, 10_s}, {1, 18_s, 20_s}, {0, 50_s, {}}};
  faults.switches = {{false, 2, 2, 25'002_ms}, {true, 3, 4, 30_s}};
  const auto run = [&](std::uint64_t seed) {
    options_.seed = seed;
    return serve(trace, deployment_, small_library(), options_);
  };
  const ServiceResult result = run(1);
  std::int64_t outputs = 0, computed = 0, restarts = 0;
  double e2e_s = 0;
  for (std::size_t k = 0; k < trace.requests.size(); ++k) {
    const Served& s = result.served[k];
    EXPECT_GT(s.done, s.arrival);
    EXPECT_EQ(s.state, RequestState::done);
    outputs += trace.requests[k].output;
    computed += trace.requests[k].prompt - s.cached();
    restarts += s.restarts;
    e2e_s += s.e2e_ms() * 1e-3;
  }
  EXPECT_EQ(result.output_tokens, outputs);
  EXPECT_EQ(result.computed_tokens, computed + result.lost_prompt_tokens);
  EXPECT_EQ(result.restarted, restarts);
  // Whoever is lost has no step any more: of each answer the last attempt's steps at least.
  std::int64_t gaps = 0, last_steps = 0;
  for (const TokenGap& gap : result.gaps) {
    EXPECT_GT(gap.ms, 0);
    EXPECT_GT(gap.requests, 0);
    gaps += gap.requests;
  }
  for (const Served& s : result.served) last_steps += s.steps;
  EXPECT_GT(gaps, last_steps);
  EXPECT_GT(restarts, 10);
  EXPECT_NEAR(result.request_seconds, e2e_s, e2e_s * 1e-9);
  EXPECT_EQ(result.role_switches, 2);
  EXPECT_GT(result.renewals, 0);
  // From the first outage on something is always out of order: the dies that are lost stay so.
  EXPECT_NEAR(result.degraded_s, (result.end - 5_s).us() * 1e-6, 1e-9);
  const auto ends = [](const ServiceResult& of) {
    std::vector<std::int64_t> all;
    for (const Served& s : of.served) all.push_back(s.done.ps);
    return all;
  };
  EXPECT_EQ(ends(run(1)), ends(result));
  EXPECT_NE(ends(run(2)), ends(result));
}

TEST_F(Faulty, WhatIsNotThereIsRefused) {
  const auto message = [&](const Faults& faults) {
    options_.faults = faults;
    return refusal([&] { e2e_ms(); });
  };
  EXPECT_EQ(message({.outages = {{false, 1, 1_s, 1_s}}}),
            "--outage: decode instance 1: the deployment has 1");
  EXPECT_EQ(message({.dies = {{true, 2, 0, 1_s}}}), "--fault: prefill instance 2: the deployment has 2");
  EXPECT_EQ(message({.dies = {{true, 1, 2, 1_s}}}), "--fault: die 2 of prefill instance 1: it has 2");
  EXPECT_EQ(message({.dies = {{false, 0, 2, 1_s}, {false, 0, 2, 2_s}}}),
            "--fault: die 2 of decode instance 0 is lost twice");
  EXPECT_EQ(message({.planes = {{1, 1_s, {}}, {1, 5_s, 1_s}}}),
            "--fault: plane 1 is lost while it is already lost");
  EXPECT_EQ(message({.planes = {{1, 1_s, 4_s}, {1, 5_s, 1_s}}}), "(accepted)");
  EXPECT_EQ(message({.switches = {{false, 0, 0, 1_s}}}), "--switch: leaves no instance in decode");
  EXPECT_EQ(message({.switches = {{true, 0, 0, 1_s}}}),
            "--switch: 1 prefill instance(s); allowed: 2, which have the NPUs of an instance of decode");
  deployment_.decode.instances = 2;
  EXPECT_EQ(message({.outages = {{false, 1, 2_s, 1_s}}, .switches = {{false, 1, 1, 1_s}}}),
            "--outage: decode instance 1: --switch takes it out of its pool before");
}

}  // namespace
}  // namespace cm384::service::faults_test
