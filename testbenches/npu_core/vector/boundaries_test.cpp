// Limits where one value more or less makes the difference.
#include <gtest/gtest.h>

#include "base/text/error.h"
#include "npu_core/vector/vector_unit.h"
#include "testbenches/npu_core/vector/stand_in.h"

namespace cm384::npu::testing::boundaries_test {
namespace {

constexpr std::uint32_t kTo = 0x10000, kFrom = 0x0;

template <class T>
void put(UBuffer& u, std::uint32_t at, T v) {
  u.store(at, reinterpret_cast<const std::byte*>(&v), sizeof v);
}
template <class T>
T get(const UBuffer& u, std::uint32_t at) {
  T v;
  u.load(at, reinterpret_cast<std::byte*>(&v), sizeof v);
  return v;
}

void reduce(UBuffer& u, int operation, std::uint64_t rs2, std::uint64_t mask) {
  perform(decode_vector(vector(CM384_CLASS_REDUCE, operation, CM384_S32, kTo, kFrom, rs2, 1), mask, 0), u);
}

TEST(Boundaries, OfEqualExtremesTheFirstIsNamed) {
  UBuffer u;
  for (std::uint32_t i = 0; i < 64; ++i) put(u, kFrom + i * 4, std::int32_t{5});
  for (const std::uint32_t i : {7u, 9u, 30u}) put(u, kFrom + i * 4, std::int32_t{3});
  reduce(u, CM384_VCMIN, 1, ~std::uint64_t{0});
  EXPECT_EQ(get<std::int32_t>(u, kTo), 3);
  EXPECT_EQ(get<std::uint32_t>(u, kTo + 4), 7u);
  for (const std::uint32_t i : {7u, 9u, 30u}) put(u, kFrom + i * 4, std::int32_t{8});
  reduce(u, CM384_VCMAX, 1, ~std::uint64_t{0});
  EXPECT_EQ(get<std::uint32_t>(u, kTo + 4), 7u);
}

TEST(Boundaries, AGatherReachesTheLastWordOfTheUBuffer) {
  UBuffer u;
  put(u, kUBufferBytes - 4, std::uint32_t{77});
  put(u, kFrom, std::uint32_t{0});
  reduce(u, CM384_VGATHER, kUBufferBytes - 4, 1);
  EXPECT_EQ(get<std::uint32_t>(u, kTo), 77u);
  put(u, kFrom, std::uint32_t{4});
  EXPECT_THROW(reduce(u, CM384_VGATHER, kUBufferBytes - 4, 1), MachineError);
}

// A write in the very cycle of a turn is seen by that turn.
TEST(Boundaries, APollSeesAWriteAtItsTurn) {
  StandIn die;
  const Time write = die.clock.start(1250);
  die.at(write, [&] { die.aiv.watched_write(write); });
  std::vector<PipeInstruction> program;
  for (int turn = 0; turn < 2; ++turn) {
    program.push_back(sync(CM384_POLL_MARK, cm384_gm_die(kLocal, 0x400), 64));
    for (int k = 0; k < 49; ++k)
      program.push_back(sync(CM384_SET_MASK, ~std::uint64_t{0}, ~std::uint64_t{0}));
  }
  ASSERT_TRUE(die.run(program));
  EXPECT_EQ(die.released(50), 1250 + 1);  // turns stand at 50, 100, ...
  EXPECT_EQ(die.aiv.statistics().skipped_polls, 24u);
}

TEST(Boundaries, ACrossCoreFlagCountsToFifteen) {
  StandIn die;
  die.aiv.cross_core_flag(4, 15, Time{});
  EXPECT_THROW(die.aiv.cross_core_flag(4, 1, Time{}), MachineError);
  die.aiv.cross_core_flag(5, 1, Time{});
}

}  // namespace
}  // namespace cm384::npu::testing::boundaries_test
