// The host's calls at their limits: memory that is full to its last byte, the last core, what an event
// counts.
#include "system/host/runtime.h"

#include <gmock/gmock.h>

#include "firmware/abi/memory_map.h"
#include "testbenches/hw/refusal.h"

namespace cm384::host::runtime_test {
namespace {

using ::cm384::refusal;
using ::testing::HasSubstr;

struct Rig {
  explicit Rig(std::vector<int> dies)
      : parameters(hw::load_machine("cloudmatrix384")), machine(parameters, options(std::move(dies))) {}
  static supernode::SupernodeOptions options(std::vector<int> dies) {
    supernode::SupernodeOptions made;
    made.dies = std::move(dies);
    made.sockets = {0};
    return made;
  }
  hw::Machine parameters;
  supernode::Supernode machine;
  Runtime runtime{machine};
};

TEST(Allocation, TakesTheLastByteAndNoMore) {
  Rig rig({3});
  const std::uint64_t all = rig.machine.die(3).allocatable();
  const std::uint64_t first = rig.runtime.allocate(3, 100);
  EXPECT_EQ(cm384_gm_offset(rig.runtime.allocate(3, 8, 64)), cm384_gm_offset(first) + 128);
  EXPECT_EQ(cm384_gm_offset(rig.runtime.allocate(3, 1)), cm384_gm_offset(first) + 512);
  const std::uint64_t used = cm384_gm_offset(first) + 512 + 1;
  EXPECT_THAT(refusal([&] { rig.runtime.allocate(3, all - used + 1, 1); }),
              HasSubstr("memory of die 3 is full"));
  EXPECT_EQ(refusal([&] { rig.runtime.allocate(3, all - used, 1); }), "(accepted)");
  EXPECT_THAT(refusal([&] { rig.runtime.allocate(3, 1, 1); }), HasSubstr("memory of die 3 is full"));
  // A socket's memory is its own.
  EXPECT_EQ(cm384_gm_offset(rig.runtime.allocate_on_socket(0, 64)), 0u);
}

TEST(SdmaQueues, AreForCoresThatExist) {
  Rig rig({0});
  const auto cores = static_cast<std::uint16_t>(rig.machine.die(0).cluster().size());
  EXPECT_EQ(refusal([&] { rig.runtime.create_sdma_queue(0, static_cast<std::uint16_t>(cores - 1), 4); }),
            "(accepted)");
  EXPECT_THAT(refusal([&] { rig.runtime.create_sdma_queue(0, cores, 4); }), HasSubstr("does not exist"));
}

// A wait is for the records that were made before it: not for fewer, not for those to come.
TEST(Events, AWaitIsForTheRecordsBeforeIt) {
  Rig rig({0, 2});
  const Event event = rig.runtime.create_event(0);
  const Stream here = rig.runtime.create_stream(0), there = rig.runtime.create_stream(2);
  const TaskHandle none = rig.runtime.stream_wait_event(here, event);
  const TaskHandle first = rig.runtime.record_event(there, event);
  const TaskHandle one = rig.runtime.stream_wait_event(here, event);
  rig.runtime.host_compute(2, Time{50'000'000});
  const TaskHandle second = rig.runtime.record_event(there, event);
  const TaskHandle two = rig.runtime.stream_wait_event(here, event);
  ASSERT_TRUE(rig.runtime.wait());
  const auto done = [&](TaskHandle task) { return rig.runtime.task(task).record.done; };
  EXPECT_LT(done(none), done(second));
  EXPECT_GT(done(one), done(first) - Time{1'000'000});
  EXPECT_LT(done(one), done(second));
  EXPECT_GT(done(two), Time{50'000'000});
}

}  // namespace
}  // namespace cm384::host::runtime_test
