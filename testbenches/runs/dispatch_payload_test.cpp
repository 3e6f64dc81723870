// Payload mode full: every token arrives at every expert it chose, bit for bit as the host's reference
// quantises it, with scale, source and slot.
#include <gtest/gtest.h>

#include <tuple>

#include "base/text/error.h"
#include "system/machine/supernode.h"
#include "testbenches/runs/machine_run.h"
#include "ub_fabric/fault.h"

namespace cm384::testing::dispatch_payload_test {
namespace {

using studies::DispatchCase;
using studies::DispatchReading;

void expect_every_token(DispatchCase setting, const Changes& changes = {}) {
  setting.full = true;
  const DispatchReading reading = run_dispatch(setting, changes);
  ASSERT_TRUE(reading.correct.has_value());
  EXPECT_TRUE(*reading.correct) << setting.ranks << " ranks, " << setting.routing << ": "
                                << reading.first_difference;
  EXPECT_EQ(reading.tasks.size(), static_cast<std::size_t>(setting.ranks * setting.iterations));
}

class EveryTokenArrives : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, EveryTokenArrives, ::testing::Values(8, 60, 64));

TEST_P(EveryTokenArrives, OfUniformRoutingThreeTimesWithSkew) {
  DispatchCase setting = small_dispatch(GetParam(), 8, 512, 16);
  setting.iterations = 3;  // the third call writes the half of the window that the first has left
  setting.start_skew = 10_us;
  expect_every_token(setting);
}

TEST_P(EveryTokenArrives, OfSkewedRouting) {
  DispatchCase setting = small_dispatch(GetParam(), 12, 512, 16);
  setting.routing = "zipf:1.2";
  expect_every_token(setting);
}

TEST_P(EveryTokenArrives, OfTheRecordedRouting) {
  DispatchCase setting = small_dispatch(GetParam(), 16, 512, 16);
  setting.routing = "trace:" + sample_trace();
  expect_every_token(setting);
  setting.drop_repeats = true;
  expect_every_token(setting);
}

TEST(Dispatch, EveryTokenArrivesOfTheWholeRecording) {
  if (full_trace().empty()) GTEST_SKIP() << "../shared/traces is not there; the repository has a part of it";
  DispatchCase setting = small_dispatch(60, 16, 512, 16);
  setting.routing = "trace:" + full_trace();
  expect_every_token(setting);
  setting.drop_repeats = true;
  expect_every_token(setting);
}

TEST(Dispatch, EveryTokenArrivesWhereRanksHaveUnlikeBatches) {
  DispatchCase setting = small_dispatch(12, 8, 256, 16);
  setting.iterations = 2;
  setting.shared_copies = 2;
  setting.batches = "uniform:1..16";
  expect_every_token(setting);
  setting.full_mesh = true;
  setting.batches = "1,16,3";
  expect_every_token(setting);
}

// Ranks without tokens receive all rows, from ranks without experts; each expert on one rank, on several, and
// several on one.
TEST(Dispatch, EveryTokenArrivesAtRanksThatHoldAllExperts) {
  for (const bool full_mesh : {false, true}) {
    for (const auto& [ranks, holders, experts] :
         {std::tuple{9, 3, 24}, std::tuple{8, 7, 4}, std::tuple{8, 1, 8}}) {
      DispatchCase setting = small_dispatch(ranks, 8, 256, 16);
      setting.full_mesh = full_mesh;
      setting.experts = experts;
      setting.top_k = 3;
      setting.iterations = 3;
      setting.start_skew = 10_us;
      setting.expert_ranks = holders;
      expect_every_token(setting);
      setting.shared_copies = holders > 1 ? 1 : 0;
      setting.batches = "1,16,3";
      expect_every_token(setting);
    }
  }
}

TEST(Dispatch, BatchesThatAreAlikeAreABatch) {
  DispatchCase setting = small_dispatch(8, 16, 512, 16);
  const DispatchReading alike = run_dispatch(setting);
  setting.batches = "16,16,16";
  const DispatchReading listed = run_dispatch(setting);
  EXPECT_EQ(listed.task_us.mean, alike.task_us.mean);
  EXPECT_EQ(listed.batch, 0);
  EXPECT_EQ(listed.mean_batch, 16);
  EXPECT_EQ(alike.batch, 16);
}

TEST(Dispatch, EveryTokenArrivesAtTheDeploymentOf320Ranks) {
  DispatchCase setting = small_dispatch(320, 3, 256, 6);
  setting.iterations = 2;
  expect_every_token(setting);
}

TEST(Dispatch, EveryTokenArrivesOnAnyPlacement) {
  for (const char* placement : {"strided", "random", "767,0,391,16,17,1,130,5,6,7,64,65"}) {
    DispatchCase setting = small_dispatch(12, 8, 512, 16);
    setting.placement = placement;
    expect_every_token(setting);
  }
}

TEST(Dispatch, EveryTokenArrivesWhateverTheFabricsPolicies) {
  DispatchCase setting = small_dispatch(12, 8, 512, 16);
  setting.placement = "strided";
  for (const char* change :
       {"ub.switch.routing=flow", "ub.switch.routing=adaptive", "ub.controller.spreading=flow",
        "ub.controller.spreading=round-robin", "ub.switch.forwarding=packet-store"})
    expect_every_token(setting, {change});
}

// An architect's odd machines: tensors that end inside a repeat, fewer blocks than tokens and more.
TEST(Dispatch, EveryTokenArrivesAtOddSizes) {
  for (const auto& [batch, hidden, cores] :
       {std::tuple{1, 32, 1}, std::tuple{5, 96, 3}, std::tuple{7, 2080, 48}}) {
    DispatchCase setting = small_dispatch(8, batch, hidden, cores);
    setting.top_k = 3;
    setting.experts = 17;
    setting.check_hazards = "on";
    expect_every_token(setting);
  }
}

// A comparison that never finds a difference would pass all of the above.
TEST(Dispatch, OneWrongElementIsFound) {
  DispatchCase setting = small_dispatch(8, 4, 256, 8);
  setting.full = true;
  setting.prepare = [](supernode::Supernode& machine) {
    // Its tokens stand behind the block of arguments, in the order of their allocation.
    npu::BackingStore& store = machine.die(3).store();
    std::byte byte{};
    store.read_bytes(512 + 2 * 17, &byte, 1);
    byte ^= std::byte{0x40};
    store.write_bytes(512 + 2 * 17, &byte, 1);
  };
  const DispatchReading reading = run_dispatch(setting);
  EXPECT_FALSE(*reading.correct);
  EXPECT_NE(reading.first_difference, "");
}

// Nothing is ever dropped without a fault being injected, and then it is retried.
TEST(Dispatch, EveryTokenArrivesOverDamagedLinks) {
  DispatchCase setting = small_dispatch(20, 8, 512, 16);  // two nodes: links below and above the L1 chips
  setting.full = true;
  const DispatchReading clear = run_dispatch(setting);
  for (const ub::Damage damage : {ub::Damage::corrupted, ub::Damage::lost}) {
    ub::RandomFault down(0.05, damage, 3), up(0.05, damage, 4), out(0.02, damage, 5);
    setting.prepare = [&](supernode::Supernode& machine) {
      for (int p = 0; p < machine.parameters().topology.sub_planes; ++p) {
        ub::SubPlane& plane = machine.plane(p);
        plane.attach_fault(plane.link_to_endpoint(5), &down);
        const ub::Network& network = plane.network();
        for (unsigned l2 = 0; l2 < 16; ++l2)
          plane.attach_fault(network.link_between(network.chip("l1chip", 1), network.chip("l2chip", l2)),
                             &up);
        machine.controller(2).ports().attach_fault(static_cast<unsigned>(p), &out);
      }
    };
    const DispatchReading damaged = run_dispatch(setting);
    EXPECT_TRUE(*damaged.correct) << damaged.first_difference;
    EXPECT_GT(down.strikes(), 10u);
    EXPECT_GT(up.strikes(), 10u);
    EXPECT_GT(out.strikes(), 5u);
    EXPECT_GT(damaged.kernel_us.mean, clear.kernel_us.mean);
    // A lost packet costs the time-out of 10 us, a damaged one only its round trip.
    if (damage == ub::Damage::lost) {
      EXPECT_GT(damaged.kernel_us.max, clear.kernel_us.max + 9);
    }
  }
}

}  // namespace
}  // namespace cm384::testing::dispatch_payload_test
