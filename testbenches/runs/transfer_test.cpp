// Contexts from prefill to decode: which dies, against the published formula; times on the simulated plane,
// against closed forms on both sides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text/error.h"
#include "testbenches/system/machine/study_stand.h"
#include "workloads/contexts/transfer_run.h"
#include "workloads/service/context_links.h"
#include "workloads/service/study/serve_runs.h"

namespace cm384::studies::transfer_test {
namespace {

constexpr double kUs = 1e6;

TransferSetting small(int prefill, int requests, const std::string& prompt = "fixed:256") {
  TransferSetting setting;
  setting.prefill = prefill;
  setting.prefill_ranks = 4;
  setting.decode_ranks = 8;
  setting.requests = requests;
  setting.prompt = prompt;
  return setting;
}

struct Outcome {
  std::vector<PlannedContext> plan;
  TransferReading reading;

  double there_us(std::size_t n) const { return reading.contexts[n].there.us(); }
  double last_us() const {
    double last = 0;
    for (const SentContext& sent : reading.contexts) last = std::max(last, sent.there.us());
    return last;
  }
};

Outcome outcome_of(const TransferSetting& setting, unsigned threads = 1) {
  supernode::StudyStand stand;
  StudyContext context = stand.context();
  context.threads = threads;
  SimulatorCounts counts;
  Outcome made{plan_contexts(stand.machine, setting, 1), {}};
  made.reading = measure_transfer_of(context, setting, made.plan, counts).value();
  return made;
}

// From the host's call until a copy's first requests may leave: a closed form has none of it.
double submission_us(const Outcome& made) {
  return made.reading.contexts.front().begun.us();
}

// As it is printed, with real numbers: ratio = prefill_tp / decode_tp, group_size = decode_dp / ratio, group
// = floor(decode_dp_rank / group_size), prefill_tp_rank = group x decode_tp + decode_tp_rank.
int printed_rank(double prefill_tp, double decode_tp, double decode_dp, int dp_rank, int tp_rank) {
  const double ratio = prefill_tp / decode_tp, group_size = decode_dp / ratio;
  double group = 0;
  while ((group + 1) * group_size <= dp_rank + 1e-9) ++group;
  return static_cast<int>(group * decode_tp) + tp_rank;
}

TEST(Mapping, IsThePublishedFormula) {
  struct Case {
    int prefill_tp, decode_tp, decode_dp;
  };
  for (const auto& [prefill_tp, decode_tp, decode_dp] :
       {Case{32, 1, 320}, {32, 1, 40}, {16, 4, 8}, {16, 2, 144}, {8, 8, 5}, {32, 1, 16}, {1, 1, 7}}) {
    const service::ContextMapping mapping{prefill_tp, decode_tp, decode_dp};
    std::map<int, int> of_rank;
    for (int dp = 0; dp < decode_dp; ++dp) {
      for (int tp = 0; tp < decode_tp; ++tp) {
        const int rank = mapping.prefill_rank(dp, tp);
        EXPECT_EQ(rank, printed_rank(prefill_tp, decode_tp, decode_dp, dp, tp)) << prefill_tp << " " << dp;
        EXPECT_GE(rank, 0);
        EXPECT_LT(rank, prefill_tp);
        ++of_rank[rank];
      }
    }
    // No rank has more than its share, rounded up.
    for (const auto& [rank, contexts] : of_rank)
      EXPECT_LE(contexts, (decode_dp * decode_tp + prefill_tp - 1) / prefill_tp);
  }
  // The published deployment: ten dies of decode ask each die of an instance.
  const service::ContextMapping published;
  EXPECT_EQ(published.prefill_rank(9), 0);
  EXPECT_EQ(published.prefill_rank(10), 1);
  EXPECT_EQ(published.prefill_rank(319), 31);
}

TEST(Plan, GoesFromTheMappedDieToTheOneWithFewestRequests) {
  const hw::Machine machine = hw::load_machine("cloudmatrix384");
  TransferSetting setting = small(2, 5);
  const auto plan = plan_contexts(machine, setting, 1);
  ASSERT_EQ(plan.size(), 10u);
  for (int n = 0; n < 10; ++n) {
    const PlannedContext& context = plan[static_cast<std::size_t>(n)];
    EXPECT_EQ(context.instance, n / 5);
    EXPECT_EQ(context.decode_rank, n % 8);
    EXPECT_EQ(context.sender, n / 5 * 4 + n % 8 / 2);
    EXPECT_EQ(context.receiver, 8 + n % 8);
    EXPECT_EQ(context.bytes, 256 * 70'272);
  }
  setting.spread = true;
  const auto spread = plan_contexts(machine, setting, 1);
  const std::vector<int> ranks{0, 2, 4, 6, 1, 3, 5, 7, 0, 2};
  for (std::size_t n = 0; n < 10; ++n) EXPECT_EQ(spread[n].decode_rank, ranks[n]);
}

TEST(Plan, DrawsLengthsBySeed) {
  const hw::Machine machine = hw::load_machine("cloudmatrix384");
  const TransferSetting setting = small(1, 50, "uniform:100:200");
  const auto one = plan_contexts(machine, setting, 1), again = plan_contexts(machine, setting, 1),
             other = plan_contexts(machine, setting, 2);
  std::set<std::int64_t> lengths;
  bool differ = false;
  for (std::size_t n = 0; n < one.size(); ++n) {
    EXPECT_EQ(one[n].bytes, again[n].bytes);
    differ = differ || one[n].bytes != other[n].bytes;
    EXPECT_EQ(one[n].bytes % 70'272, 0);
    EXPECT_GE(one[n].bytes, 100 * 70'272);
    EXPECT_LE(one[n].bytes, 200 * 70'272);
    lengths.insert(one[n].bytes);
  }
  EXPECT_TRUE(differ);
  EXPECT_GT(lengths.size(), 20u);
}

std::string refusal(const TransferSetting& setting) {
  try {
    plan_contexts(hw::load_machine("cloudmatrix384"), setting, 1);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST(Plan, RefusesWhatTheMachineHasNoRoomFor) {
  TransferSetting setting = small(94, 1);
  setting.decode_ranks = 392;
  EXPECT_EQ(refusal(setting), "");  // 768 dies
  setting.decode_ranks = 394;
  EXPECT_THAT(refusal(setting), ::testing::HasSubstr("take 770 dies; the machine has 768"));
  // A die of 64 GiB has room for two contexts of 32 GiB, and for nothing more.
  setting = small(1, 2, "fixed:1");
  setting.prefill_ranks = 1;
  setting.token = Bytes{std::int64_t{32} << 30};
  EXPECT_EQ(refusal(setting), "");
  setting.token = Bytes{(std::int64_t{32} << 30) + 512};
  EXPECT_THAT(refusal(setting), ::testing::HasSubstr("which sends them"));
  setting = small(3, 1, "fixed:1");
  setting.decode_ranks = 2;
  setting.token = Bytes{(std::int64_t{32} << 30) + 512};
  EXPECT_THAT(refusal(setting), ::testing::HasSubstr("which receives them"));
}

// The form of docs/planes.md for many packets: 2.1 us for the first to be there, then the link's peak. Memory
// answers out of order, so that not all packets are full: at most 2 % more, never less.
TEST(Transfer, OfOneContextAloneIsTheClosedForm) {
  const hw::Rdma p = hw::load_machine("cloudmatrix384").rdma;
  for (const int tokens : {256, 1024}) {
    const Outcome made = outcome_of(small(1, 1, "fixed:" + std::to_string(tokens)));
    const double bytes = tokens * 70'272.0, wire = bytes * static_cast<double>(p.mtu.count + p.header.count) /
                                                   static_cast<double>(p.mtu.count) /
                                                   static_cast<double>(p.link_rate.bytes_per_second) * kUs;
    const double packet = static_cast<double>(p.mtu.count + p.header.count) /
                          static_cast<double>(p.link_rate.bytes_per_second) * kUs;
    const double closed = p.send_latency.us() + wire + packet + 2 * p.link_latency.us() +
                          p.switch_latency.us() + p.receive_latency.us();
    EXPECT_NEAR(made.plan[0].closed.us(), closed, 0.01);
    const double transfer = (made.reading.contexts[0].there - made.reading.contexts[0].begun).us();
    EXPECT_GT(transfer, closed);
    EXPECT_LT(transfer, closed * 1.025);
    // A host's call, its doorbell, entry and descriptor.
    EXPECT_GT(submission_us(made), 5);
    EXPECT_LT(submission_us(made), 15);
  }
}

// Four prefill instances to one die of decode, whose link they share, or which takes them one after another.
TEST(Transfer, IncastTakesAsManyTimesAsLong) {
  TransferSetting setting = small(4, 1);
  setting.decode_ranks = 2;
  setting.prefill_ranks = 1;
  setting.prompt = "fixed:1024";
  const double one = outcome_of([&] {
                       TransferSetting alone = setting;
                       alone.prefill = 1;
                       return alone;
                     }())
                         .last_us();
  for (const bool in_turn : {false, true}) {
    setting.one_at_a_time = in_turn;
    const Outcome made = outcome_of(setting);
    EXPECT_EQ(made.plan.size(), 4u);
    // Two dies of decode: two contexts each.
    EXPECT_NEAR(made.last_us(), 2 * one, 2 * one * 0.02);
    EXPECT_EQ(most_at_a_time(made.plan, made.reading.contexts, &PlannedContext::receiver), in_turn ? 1 : 2);
    EXPECT_EQ(most_at_a_time(made.plan, made.reading.contexts, &PlannedContext::sender), 1);
    // One after another the first is there in its own time; shared, both take twice as long.
    EXPECT_NEAR(made.there_us(0), in_turn ? one : 2 * one, 2 * one * 0.03);
  }
}

// What run serve uses, alone and where six instances send to a die.
TEST(Transfer, HoldsTheServicesClosedForm) {
  TransferSetting setting = small(1, 1, "fixed:1024");
  const Outcome alone = outcome_of(setting);
  EXPECT_NEAR(alone.plan[0].closed.us(), alone.there_us(0), alone.there_us(0) * 0.025);
  setting = small(6, 2, "fixed:1024");
  setting.decode_ranks = 2;
  setting.one_at_a_time = true;
  const Outcome incast = outcome_of(setting);
  for (std::size_t n = 0; n < incast.plan.size(); ++n)
    EXPECT_NEAR(incast.plan[n].closed.us(), incast.there_us(n), incast.there_us(n) * 0.025) << n;
  setting.one_at_a_time = false;
  const Outcome shared = outcome_of(setting);
  double last = 0;
  for (const PlannedContext& context : shared.plan) last = std::max(last, context.closed.us());
  EXPECT_NEAR(last, shared.last_us(), shared.last_us() * 0.025);
}

// A request by itself in the published deployment, and its context on the simulated plane.
TEST(Transfer, IsWhatARequestOfTheServiceWaitsFor) {
  supernode::StudyStand stand;
  const StudyContext context = stand.context();
  ServeOptions options;
  options.allow_extrapolation = true;
  const ServeRuns runs(context, options);
  service::RequestTrace trace;
  trace.requests.resize(1);
  trace.requests[0].prompt = 1024;
  trace.requests[0].output = 8;
  const service::Served served = runs.run(runs.deployments().front(), trace, 1, false).served.front();
  const double waits = (served.transferred - served.first_token).us();
  const Outcome made = outcome_of(small(1, 1, "fixed:1024"));
  EXPECT_NEAR(waits, made.plan[0].closed.us(), 0.001);
  EXPECT_NEAR(waits, made.there_us(0), made.there_us(0) * 0.025);
}

TEST(Transfer, ContextsOfOneSenderLeaveOneAfterAnother) {
  TransferSetting setting = small(1, 3);
  setting.prefill_ranks = 1;
  const Outcome made = outcome_of(setting);
  for (std::size_t n = 1; n < 3; ++n)
    EXPECT_GE(made.reading.contexts[n].begun, made.reading.contexts[n - 1].there);
}

TEST(Transfer, CopiesOfAContextLieOneBehindTheOther) {
  TransferSetting setting = small(1, 1);
  const double whole = outcome_of(setting).last_us();
  setting.copy = Bytes{1 << 20};
  const Outcome in_pieces = outcome_of(setting);
  const double pieces = in_pieces.last_us();
  EXPECT_EQ(in_pieces.reading.arrived, 1u);
  EXPECT_GT(pieces, whole);
  EXPECT_LT(pieces, whole * 1.2);
}

TEST(Transfer, DoesNotDependOnThreads) {
  for (const bool decode_moves : {false, true}) {
    TransferSetting setting = small(2, 4, "uniform:50:200");
    setting.decode_moves = decode_moves;
    setting.one_at_a_time = true;
    const Outcome one = outcome_of(setting), two = outcome_of(setting, 2), again = outcome_of(setting);
    for (std::size_t n = 0; n < one.plan.size(); ++n) {
      EXPECT_EQ(one.reading.contexts[n].there, two.reading.contexts[n].there);
      EXPECT_EQ(one.reading.contexts[n].begun, two.reading.contexts[n].begun);
      EXPECT_EQ(one.reading.contexts[n].there, again.reading.contexts[n].there);
    }
  }
}

TEST(Transfer, DisturbsAttentionALittle) {
  TransferSetting setting = small(1, 1, "fixed:128");
  setting.beside_dies = 1;
  setting.beside_runs = 40;
  setting.sequences = 2;
  setting.kv_len = 256;
  const Outcome made = outcome_of(setting);
  ASSERT_TRUE(made.reading.beside);
  const BesideReading& beside = *made.reading.beside;
  EXPECT_EQ(beside.dies, 1);
  EXPECT_GT(beside.launches, 5);
  EXPECT_LT(beside.launches, 40);  // the others came too late
  EXPECT_GT(beside.alone_us, 5);
  EXPECT_NE(beside.beside_us, beside.alone_us);
  EXPECT_NEAR(beside.beside_us, beside.alone_us, beside.alone_us * 0.05);
}

TEST(Overlap, CountsWhatIsUnderWayAtATime) {
  std::vector<PlannedContext> plan(4);
  for (std::size_t n = 0; n < 4; ++n) plan[n].receiver = n == 3 ? 1 : 0;
  // The second ends where the third begins; the fourth is elsewhere.
  const std::vector<SentContext> sent{{0_us, 9_us}, {1_us, 5_us}, {5_us, 7_us}, {0_us, 9_us}};
  EXPECT_EQ(most_at_a_time(plan, sent, &PlannedContext::receiver), 2);
}

}  // namespace
}  // namespace cm384::studies::transfer_test
