// The hazard checker: sound programs pass, each missing flag is found and both pcs are named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/error.h"
#include "testbenches/npu_core/vector/stand_in.h"

namespace cm384::npu::testing::hazards_test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
constexpr int kS = CM384_PIPE_S, kV = CM384_PIPE_V, kMte2 = CM384_PIPE_MTE2, kMte3 = CM384_PIPE_MTE3;

struct Checked : StandIn {
  Checked() : StandIn(mte_parameters(), vector_parameters(), {true, true}) {}
};
PipeInstruction work(std::uint32_t to, std::uint32_t from) {
  return vector(CM384_CLASS_VECTOR, CM384_VABS, CM384_F32, to, from, 0, 2);
}
PipeInstruction in(std::uint32_t to) {
  return copy_in(to, cm384_gm_die(kLocal, 0), 512);
}
PipeInstruction out(std::uint32_t from) {
  return copy_out(cm384_gm_die(kRemote, 0), from, 512);
}

// Two rounds through one buffer with all flags: load, compute, store.
std::vector<PipeInstruction> sound() {
  std::vector<PipeInstruction> p{set_flag(kV, kMte2), set_flag(kMte3, kV)};
  for (int i = 0; i < 3; ++i) {
    for (const PipeInstruction& next :
         {wait_flag(kV, kMte2), in(0), set_flag(kMte2, kV), wait_flag(kMte2, kV), wait_flag(kMte3, kV),
          work(0x1000, 0), set_flag(kV, kMte2), set_flag(kV, kMte3), wait_flag(kV, kMte3), out(0x1000),
          set_flag(kMte3, kV)}) {
      p.push_back(next);
    }
  }
  return p;
}

TEST(Hazards, SoundProgramsPass) {
  Checked die;
  EXPECT_TRUE(die.run(sound()));
  Checked barriers;
  EXPECT_TRUE(barriers.run({in(0), barrier(CM384_PIPE_ALL), work(0x1000, 0), barrier(CM384_PIPE_ALL),
                            out(0x1000), barrier(CM384_PIPE_ALL), in(0), in(0x1000)}));
  Checked apart;
  EXPECT_TRUE(apart.run({in(0), work(0x1000, 0x2000), out(0x3000)}));
}

TEST(Hazards, EachMissingFlagIsFound) {
  Checked read;
  EXPECT_THAT(
      [&] {
        read.run({in(0), work(0x1000, 0)});
      },
      ThrowsMessage<MachineError>(::testing::AllOf(HasSubstr("V reads block 0x0 (pc 0x1004)"),
                                                   HasSubstr("MTE2 writes (pc 0x1000)"))));
  Checked store;
  EXPECT_THAT(
      [&] {
        store.run({work(0x1000, 0), out(0x1000)});
      },
      ThrowsMessage<MachineError>(HasSubstr("MTE3 reads")));
  Checked overwrite;  // MTE2 loads over what V still reads
  EXPECT_THAT(
      [&] {
        overwrite.run({work(0x1000, 0), in(0)});
      },
      ThrowsMessage<MachineError>(HasSubstr("V reads")));
  Checked wrong;  // a flag of the wrong pair
  EXPECT_THROW(wrong.run({in(0), set_flag(kMte2, kMte3), wait_flag(kMte2, kMte3), work(0x1000, 0)}),
               MachineError);
  Checked early;  // the flag stands before the copy
  EXPECT_THROW(early.run({set_flag(kMte2, kV), in(0), wait_flag(kMte2, kV), work(0x1000, 0)}), MachineError);
}

TEST(Hazards, OrderPassesOnThroughAThirdPipe) {
  Checked die;
  EXPECT_TRUE(die.run(
      {in(0), set_flag(kMte2, kV), wait_flag(kMte2, kV), set_flag(kV, kMte3), wait_flag(kV, kMte3), out(0)}));
}

// Blocks in which no element of the mask lies are neither read nor written.
TEST(Hazards, WhatIsMaskedOffIsNotTouched) {
  const auto masked = [](const PipeInstruction& before, std::uint64_t low, std::uint64_t high, int type) {
    Checked die;
    return die.run({before, sync(CM384_SET_MASK, low, high),
                    vector(CM384_CLASS_VECTOR, CM384_VABS, type, 0x1000, 0, 0, 1)});
  };
  EXPECT_TRUE(masked(in(0x20), 0xff, 0, CM384_F32)) << "read: 8 elements of 32 B";
  EXPECT_THROW(masked(in(0x20), 0x1ff, 0, CM384_F32), MachineError);
  EXPECT_TRUE(masked(out(0x1020), 0xff, 0, CM384_F32)) << "written";
  EXPECT_THROW(masked(out(0x1020), 0x101, 0, CM384_F32), MachineError);
  // Of 2 B there are 128: blocks 4 to 7 have the high word.
  EXPECT_TRUE(masked(in(0x80), ~std::uint64_t{0}, 0, CM384_F16));
  EXPECT_THROW(masked(in(0x80), ~std::uint64_t{0}, 1, CM384_F16), MachineError);
  EXPECT_TRUE(masked(out(0x1000 - 512), 0, 1, CM384_F16));
}

// What a merge that stops has taken is read after a flag.
TEST(Hazards, CountsOfAMerge) {
  PipeInstruction merge = vector(CM384_CLASS_REDUCE, CM384_VMERGE, CM384_F32, 0x1000, 0, 0x2000, 0);
  merge.c = CM384_MERGE_STOPS | 3 | 5 << 12;
  Checked die;
  EXPECT_TRUE(die.run({merge, set_flag(kV, kS), wait_flag(kV, kS)}));
  EXPECT_EQ(die.aiv.merged(0xabc), 3u);  // all are zero: the first list's come first
  Checked early;
  early.aiv.issue(merge, 0);
  EXPECT_THAT([&] { early.aiv.merged(0xabc); },
              ThrowsMessage<MachineError>(HasSubstr("the counts of a merge")));
}

TEST(Hazards, ScalarAccesses) {
  const auto scalar = [](const std::vector<PipeInstruction>& before, bool write,
                         const std::vector<PipeInstruction>& after) {
    Checked die;
    EXPECT_TRUE(die.run(before));
    die.aiv.check_scalar_access(0x1000, 4, write, 0xabc);
    EXPECT_TRUE(die.run(after, 100000));
  };
  // drain at the end of a run orders everything before for the scalar unit
  scalar({work(0x1000, 0)}, false, {work(0x1000, 0)});
  scalar({}, true, {set_flag(kS, kV), wait_flag(kS, kV), work(0x2000, 0x1000)});
  EXPECT_THROW(scalar({}, true, {work(0x2000, 0x1000)}), MachineError);
  scalar({}, true, {barrier(CM384_PIPE_ALL), work(0x2000, 0x1000)});
  EXPECT_THROW(scalar({barrier(CM384_PIPE_ALL)}, true, {work(0x2000, 0x1000)}), MachineError);
  EXPECT_THROW(scalar({}, true, {out(0x1000)}), MachineError);
  Checked unfinished;
  unfinished.aiv.issue(work(0x1000, 0), 0);
  EXPECT_THROW(unfinished.aiv.check_scalar_access(0x1000, 4, false, 0xabc), MachineError);
}

// What a listener hears: all hazards, each pair of places once.
struct Listened : Checked, HazardListener {
  Listened() {
    aiv.set_hazard_listener(this);
    aiv.reset();
  }
  void hazard(const Hazard& found) override { heard.push_back(found); }
  std::vector<Hazard> heard;
};

// Launches of a core follow each other in one checker: of the one before nothing counts, neither its accesses
// nor what was told of it.
TEST(Hazards, ALaunchKnowsNothingOfTheOneBefore) {
  Listened die;
  for (int launch = 0; launch < 3; ++launch) {
    die.heard.clear();
    EXPECT_TRUE(die.run({in(0), work(0x1000, 0)}, 100'000 * launch));
    EXPECT_EQ(die.heard.size(), 1u) << "told anew in launch " << launch;
    die.aiv.reset();
    die.heard.clear();
    EXPECT_TRUE(die.run({out(0x1000), in(0x2000)}, 100'000 * launch + 50'000));
    EXPECT_TRUE(die.heard.empty()) << "written by V in the launch before";
    die.aiv.reset();
  }
}

TEST(Hazards, AllAreListedOnce) {
  Listened die;
  EXPECT_TRUE(die.run({in(0), work(0x1000, 0), out(0x1000)}));
  ASSERT_EQ(die.heard.size(), 2u);  // of several blocks each
  EXPECT_EQ(die.heard[0].text(),
            "hazard in the UBuffer: V reads block 0x0 ({}), which MTE2 writes ({}); no flag or barrier "
            "orders them");
  EXPECT_EQ(die.heard[0].other.pc, 0x1000u);
  EXPECT_EQ(die.heard[1].text(),
            "hazard in the UBuffer: MTE3 reads block 0x1000 ({}), which V writes ({}); no flag or barrier "
            "orders them");
}

// Instructions of V begin in order, but what one writes is there for the next behind a barrier or a flag
// alone.
TEST(Hazards, VWithV) {
  const auto heard = [](const std::vector<PipeInstruction>& program) {
    Listened die;
    EXPECT_TRUE(die.run(program));
    return die.heard;
  };
  const std::vector<Hazard> read = heard({work(0x1000, 0), work(0x2000, 0x1000)});
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].text(),
            "hazard in the UBuffer: V reads block 0x1000 ({}), which V writes ({}); no PipeBarrier<PIPE_V> "
            "orders them");
  EXPECT_EQ(read[0].other.pc, 0x1000u);
  EXPECT_EQ(read[0].access.pc, 0x1004u);
  // Some calls are several instructions, whose results may overlap.
  EXPECT_TRUE(heard({work(0x1000, 0), work(0x1000, 0x2000)}).empty());
  // Single results of reductions share a block; read is all of it.
  const auto sum = [](std::uint32_t to) {
    return vector(CM384_CLASS_REDUCE, CM384_VCADD, CM384_F32, to, 0, 0, 1);
  };
  EXPECT_TRUE(heard({sum(0x1000), sum(0x1004)}).empty());
  EXPECT_EQ(heard({sum(0x1000), work(0x2000, 0x1000)}).size(), 1u);
  EXPECT_TRUE(heard({work(0x1000, 0), work(0, 0x2000)}).empty())
      << "reads come before what a later one writes";
  EXPECT_TRUE(heard({work(0x1000, 0x1000)}).empty()) << "in place";
  EXPECT_TRUE(heard({work(0x1000, 0), work(0x2000, 0)}).empty());
  EXPECT_TRUE(heard({work(0x1000, 0), barrier(kV), work(0x2000, 0x1000)}).empty());
  EXPECT_TRUE(heard({work(0x1000, 0), barrier(CM384_PIPE_ALL), work(0x2000, 0x1000)}).empty());
  EXPECT_EQ(heard({barrier(kV), work(0x1000, 0), work(0x2000, 0x1000)}).size(), 1u);
  EXPECT_EQ(heard({work(0x1000, 0), barrier(kMte2), work(0x2000, 0x1000)}).size(), 1u);
  // By way of another pipe, or of the scalar unit.
  EXPECT_TRUE(heard({work(0x1000, 0), set_flag(kV, kMte3), wait_flag(kV, kMte3), set_flag(kMte3, kV),
                     wait_flag(kMte3, kV), work(0x2000, 0x1000)})
                  .empty());
  EXPECT_TRUE(heard({work(0x1000, 0), set_flag(kV, kS), wait_flag(kV, kS), work(0x2000, 0x1000)}).empty());
  EXPECT_EQ(heard({work(0x1000, 0), set_flag(kV, kMte3), wait_flag(kV, kMte3), work(0x2000, 0x1000)}).size(),
            1u);
  // Each once: one barrier would have ordered both.
  EXPECT_EQ(heard({work(0x1000, 0), work(0x2000, 0x1000), work(0x3000, 0x1000)}).size(), 1u);
  EXPECT_EQ(heard({work(0x1000, 0), work(0x2000, 0x1000), work(0x3000, 0x2000)}).size(), 2u);
  Listened automatic;
  automatic.aiv.set_order(true);
  automatic.aiv.reset();
  EXPECT_TRUE(automatic.run({work(0x1000, 0), work(0x2000, 0x1000)}));
  ASSERT_EQ(automatic.heard.size(), 1u);
  EXPECT_TRUE(automatic.heard[0].ordered);
}

// Those of the scalar unit with a pipe are told apart where the order covers them.
TEST(Hazards, TheAutomaticOrderCoversScalarAccesses) {
  Listened die;
  die.aiv.set_order(true);
  die.aiv.reset();
  die.aiv.issue(work(0x1000, 0), 0);
  die.aiv.check_scalar_access(0x1000, 4, false, 0xabc);
  // It has waited: what comes after the load is ordered too.
  die.aiv.issue(out(0x1000), 1000);
  EXPECT_TRUE(die.run({in(0x4000), work(0x5000, 0x4000)}, 2000));
  ASSERT_EQ(die.heard.size(), 2u);
  EXPECT_TRUE(die.heard[0].ordered);
  EXPECT_EQ(die.heard[0].text(),
            "hazard in the UBuffer: S reads block 0x1000 ({}), which V writes ({}); covered by the automatic "
            "order");
  EXPECT_FALSE(die.heard[1].ordered);
  // Without a listener those alone are thrown that it does not cover.
  Checked thrown;
  thrown.aiv.set_order(true);
  thrown.aiv.reset();
  thrown.aiv.issue(work(0x1000, 0), 0);
  thrown.aiv.check_scalar_access(0x1000, 4, true, 0xabc);
  EXPECT_TRUE(thrown.run({work(0x2000, 0x1000)}, 1000));
  EXPECT_THROW(thrown.run({in(0x2000), work(0x3000, 0x2000)}, 10000), MachineError);
}

}  // namespace
}  // namespace cm384::npu::testing::hazards_test
