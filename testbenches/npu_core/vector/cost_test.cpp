// Costs of vector instructions: head, slope, tail, bank conflicts, exactly.
#include <gtest/gtest.h>

#include "npu_core/vector/bank_conflicts.h"
#include "testbenches/npu_core/vector/stand_in.h"

namespace cm384::npu::testing::cost_test {
namespace {

constexpr std::uint32_t kA = 0x0, kB = 0x8000, kC = 0x10000;
constexpr std::uint64_t kOnes = ~std::uint64_t{0};

// Cycles from an empty pipe's start to all results being visible. The instruction is in the queue at cycle 1.
std::int64_t alone(const PipeInstruction& i) {
  StandIn die;
  EXPECT_TRUE(die.run({i}));
  return die.drained() - 1;
}
PipeInstruction op(int operation, std::uint32_t repeats, Strides s = {}) {
  return vector(CM384_CLASS_VECTOR, operation, CM384_F32, kA, kB, kC, repeats, s);
}

TEST(VectorCost, FittedTotals) {
  // ascend-facts A4, rounded up to whole cycles
  EXPECT_EQ(alone(op(CM384_VMAX, 112)), 226 + 23);  // 2.01 rep + 23 = 248.12
  EXPECT_EQ(alone(op(CM384_VADD, 112)), 237 + 24);  // 2.11 rep + 24 = 260.32
  EXPECT_EQ(alone(op(CM384_VMUL, 100)), 230 + 25);
  EXPECT_EQ(alone(op(CM384_VMULS, 112)), 112 + 26);
  EXPECT_EQ(alone(op(CM384_VABS, 112)), 112 + 23);
  EXPECT_EQ(alone(op(CM384_VMAXS, 1)), 1 + 23);
  EXPECT_EQ(alone(op(CM384_VDIV, 100)), 403 + 31);
  EXPECT_EQ(alone(op(CM384_VEXP, 10)), 20 + 31);
  EXPECT_EQ(alone(op(CM384_VLN, 10)), 20 + 33);
  EXPECT_EQ(alone(op(CM384_VRSQRT, 100)), 107 + 24);
  EXPECT_EQ(alone(op(CM384_VADDS, 10)), 10 + 31);
  EXPECT_EQ(alone(op(CM384_VDUP, 10)), 10 + 24);
  EXPECT_EQ(alone(vector(CM384_CLASS_CONVERT, CM384_BF16_TO_F32, 0, kA, kB, 0, 112, {1, 1, 1, 8, 4, 0})),
            2 * 112 + 32);
  EXPECT_EQ(alone(vector(CM384_CLASS_REDUCE, CM384_VCADD, CM384_F32, kA, kB, 0, 3, {1, 1, 1, 1, 8, 8})),
            21 + 46);
}

// Lists of so many structures from kB on, 0x1000 apart.
PipeInstruction merge(std::uint64_t stops, const std::array<std::uint64_t, 4>& lengths) {
  std::uint64_t others = 0, all = stops;
  for (std::size_t list = 0; list < 4; ++list) {
    if (list > 0) others |= (kB + list * 0x1000) << 20 * (list - 1);
    all |= lengths[list] << 12 * list;
  }
  PipeInstruction i = vector(CM384_CLASS_REDUCE, CM384_VMERGE, CM384_F32, kA, kB, 0, 0);
  i.b = others;
  i.c = all;
  return i;
}

TEST(VectorCost, AMergeTakesWhatComesOutOfIt) {
  // ascend-facts A4: 78 rep + 20, a repeat being four lists of 32; a quarter of that for each 32 structures.
  EXPECT_EQ(alone(merge(0, {32, 32, 32, 32})), 78 + 20);
  EXPECT_EQ(alone(merge(0, {512, 512, 512, 512})), 16 * 78 + 20);
  EXPECT_EQ(alone(merge(0, {1, 0, 0, 0})), 20 + 20);  // 19.5, rounded up
  EXPECT_EQ(alone(merge(0, {33, 0, 0, 0})), 39 + 20);
  // All are equal, so the first list is used up before anything of the others is taken.
  EXPECT_EQ(alone(merge(CM384_MERGE_STOPS, {64, 512, 512, 512})), 39 + 20);
}

TEST(VectorCost, HeadIsPaidByAnEmptyPipeAndTailOnce) {
  // Three in a row: one head, three slopes, the last one's tail.
  StandIn die;
  ASSERT_TRUE(die.run({op(CM384_VABS, 50), op(CM384_VABS, 50), op(CM384_VABS, 50)}));
  EXPECT_EQ(die.drained(), 1 + 13 + 150 + 10);
  // A barrier empties the pipe: head and tail each time.
  StandIn other;
  ASSERT_TRUE(other.run({op(CM384_VABS, 50), barrier(CM384_PIPE_V), op(CM384_VABS, 50)}));
  EXPECT_EQ(other.drained(), 1 + 2 * (13 + 50 + 10));
}

TEST(VectorCost, HeadOverlapsPartlyWithTheEndOfTheOneBefore) {
  // The second arrives at cycle 1 + 60 - d; the unit is free at 1 + 13 + 50 = 64.
  for (const std::int64_t arrival : {40, 51, 52, 60, 70}) {
    StandIn die;
    std::vector<PipeInstruction> program{op(CM384_VABS, 50)};
    while (static_cast<std::int64_t>(program.size()) < arrival - 1)
      program.push_back(sync(CM384_SET_MASK, kOnes, kOnes));
    program.push_back(op(CM384_VABS, 1));
    ASSERT_TRUE(die.run(program));
    const std::int64_t first_repeat = std::max<std::int64_t>(64, arrival + 13);
    EXPECT_EQ(die.drained(), std::max<std::int64_t>(64 + 10, first_repeat + 1 + 10)) << arrival;
  }
}

std::int64_t conflicts(int operation, std::uint32_t destination, std::uint32_t source0, std::uint32_t source1,
                       std::uint32_t repeats, Strides s) {
  return bank_conflict_cycles(decode_vector(
      vector(CM384_CLASS_VECTOR, operation, CM384_F32, destination, source0, source1, repeats, s), kOnes,
      kOnes));
}

TEST(VectorCost, BankConflictsOfOneOperand) {
  // ascend-facts A2: 8 blocks of a repeat in one group take 8 cycles instead of 1; in two groups, 4.
  EXPECT_EQ(conflicts(CM384_VABS, kA, kB, 0, 1, {1, 16, 1, 8, 128, 8}), 7);
  EXPECT_EQ(conflicts(CM384_VABS, kA, kB, 0, 1, {1, 8, 1, 8, 64, 8}), 3);
  EXPECT_EQ(conflicts(CM384_VABS, kA, kB, 0, 1, {1, 4, 1, 8, 32, 8}), 1);
  EXPECT_EQ(conflicts(CM384_VABS, kA, kB, 0, 1, {1, 2, 1, 8, 16, 8}), 0);
  EXPECT_EQ(conflicts(CM384_VABS, kA, kB, 0, 1, {1, 3, 1, 8, 24, 8}), 0);
  EXPECT_EQ(conflicts(CM384_VABS, kA, kB, 0, 1, {1, 0, 1, 8, 1, 8}), 0);        // one row for all
  EXPECT_EQ(conflicts(CM384_VABS, kA, kB, 0, 3, {16, 1, 1, 128, 8, 8}), 21);    // writes
  EXPECT_EQ(conflicts(CM384_VABS, kA, kB, 0, 1, {16, 16, 1, 128, 128, 8}), 7);  // reads and writes overlap
  EXPECT_EQ(conflicts(CM384_VADD, kA, kB, kC, 2, {1, 16, 8, 8, 128, 64}), 2 * (7 + 3));
}

// A counted operand is read 256 B at a time, however long it is.
TEST(VectorCost, NoBankConflictsOfACount) {
  const auto odd = vector(CM384_CLASS_REDUCE, CM384_VGATHER_MASK, CM384_F32, kA, kB, 2 | 2048 << 8, 1);
  EXPECT_EQ(alone(odd), 14 + 32 * 14 + 20);
  const auto sum = vector(CM384_CLASS_REDUCE, CM384_VCADD, CM384_F32, kA, kB, 1 | 2048 << 8, 1);
  EXPECT_EQ(alone(sum), 14 + 32 * 7 + 32);
}

TEST(VectorCost, ReadsAndWritesInOneBank) {
  // Streams through all groups stay a cycle apart; repeats that come back to the same bank do not.
  EXPECT_EQ(conflicts(CM384_VABS, 0x0, 0x4000, 0, 10, {}), 0);
  EXPECT_EQ(conflicts(CM384_VABS, 0x0, 0x4000, 0, 10, {1, 1, 1, 16, 16, 8}), 9);
  EXPECT_EQ(conflicts(CM384_VABS, 0x0, 0x4100, 0, 10, {1, 1, 1, 16, 16, 8}), 0);  // the other eight groups
  EXPECT_EQ(conflicts(CM384_VABS, 0x0, 0x10000, 0, 10, {1, 1, 1, 16, 16, 8}),
            0);  // another bank of the group
  EXPECT_EQ(conflicts(CM384_VABS, 0x10000, 0x0, 0, 10, {1, 1, 1, 16, 16, 8}), 0);  // above or below
  EXPECT_EQ(conflicts(CM384_VABS, 0x0, 0x0, 0, 10, {1, 1, 1, 16, 16, 8}), 0);      // in place
}

TEST(VectorCost, ConflictsLengthenTheInstruction) {
  EXPECT_EQ(alone(op(CM384_VABS, 5, {1, 16, 1, 8, 128, 8})), 13 + 5 * 8 + 10);
}

TEST(VectorCost, EveryCostParameterMovesTheTime) {
  // One instruction of each row of the table, in the order of VectorCost.
  const auto reduce = [](int operation) {
    const std::uint32_t operand = operation == CM384_VGATHER_MASK ? 1 : operation <= CM384_VCMIN ? 0 : kC;
    return vector(CM384_CLASS_REDUCE, operation, CM384_F32, kA, kB, operand, 4, {1, 1, 1, 8, 8, 8});
  };
  const auto integer = [](int operation) {
    return vector(CM384_CLASS_VECTOR, operation, CM384_S32, kA, kB, kC, 4);
  };
  const PipeInstruction rows[] = {op(CM384_VADD, 4),
                                  op(CM384_VMUL, 4),
                                  op(CM384_VADDS, 4),
                                  op(CM384_VMULS, 4),
                                  op(CM384_VMAX, 4),
                                  op(CM384_VMAXS, 4),
                                  op(CM384_VDIV, 4),
                                  op(CM384_VABS, 4),
                                  op(CM384_VEXP, 4),
                                  op(CM384_VLN, 4),
                                  op(CM384_VSQRT, 4),
                                  op(CM384_VREC, 4),
                                  op(CM384_VAND, 4),
                                  op(CM384_VDUP, 4),
                                  op(CM384_VMADD, 4),
                                  integer(CM384_VSHLS),
                                  vector(CM384_CLASS_CONVERT, 4, 0, kA, kB, 0, 4),
                                  reduce(CM384_VCADD),
                                  reduce(CM384_VCMAX),
                                  reduce(CM384_VCGADD),
                                  reduce(CM384_VCGMIN),
                                  reduce(CM384_VCMP_LT),
                                  reduce(CM384_VCMPS_LT),
                                  reduce(CM384_VSEL),
                                  reduce(CM384_VGATHER_MASK),
                                  reduce(CM384_VBRCB),
                                  vector(CM384_CLASS_REDUCE, CM384_VGATHER, CM384_F32, kA, kB, 0, 4),
                                  merge(0, {32, 32, 32, 32})};
  hw::VectorCore base = vector_parameters();
  hw::VectorTiming* const parameters[] = {
      &base.add,         &base.mul,       &base.adds,      &base.muls,    &base.max,      &base.maxs,
      &base.div,         &base.unary,     &base.exp,       &base.ln,      &base.sqrt,     &base.rsqrt,
      &base.logic,       &base.copy,      &base.madd,      &base.shift,   &base.cast,     &base.reduce_add,
      &base.reduce_max,  &base.group_add, &base.group_max, &base.compare, &base.compares, &base.select,
      &base.gather_mask, &base.broadcast, &base.gather,    &base.merge};
  for (std::size_t i = 0; i < std::size(parameters); ++i) {
    const auto time = [&](hw::VectorTiming with) {
      const hw::VectorTiming kept = *parameters[i];
      *parameters[i] = with;
      StandIn die(mte_parameters(), base);
      EXPECT_TRUE(die.run({rows[i]}));
      *parameters[i] = kept;
      return die.drained();
    };
    const hw::VectorTiming t = *parameters[i];
    const std::int64_t before = time(t);
    EXPECT_EQ(time({t.head + 3, t.slope, t.tail}), before + 3) << i;
    EXPECT_EQ(time({t.head, t.slope + 1, t.tail}), before + 4) << i;
    EXPECT_EQ(time({t.head, t.slope, t.tail + 7}), before + 7) << i;
  }
}

}  // namespace
}  // namespace cm384::npu::testing::cost_test
