// Service classes of the switch: shares, waits and priorities against closed forms, under the bench's
// scoreboard.
#include <numeric>

#include "testbenches/hw/rtl/ub_switch/class_shapes.h"
#include "testbenches/hw/rtl/ub_switch/switch_bench.h"

namespace cm384::ub::classes_test {
namespace {

using Three = ThreeClasses;
using Eight = EightClasses;

template <class Shape>
constexpr unsigned class_of(unsigned lane) {
  return lane / 2 % Shape::classes;
}

// So many flits of each class for each class's turn.
template <class Shape>
std::array<unsigned, Shape::classes> same(unsigned flits) {
  std::array<unsigned, Shape::classes> quanta;
  quanta.fill(flits);
  return quanta;
}

// A source that always has something: packets of these lengths in turn from `input` on `lane` to `output`.
struct Source {
  unsigned input = 0, lane = 0, output = 0;
  std::vector<unsigned> flits;
  unsigned next = 0;
};

template <class Shape>
void saturate(SwitchBench<Shape>& bench, std::vector<Source>& sources, std::uint64_t cycles) {
  for (std::uint64_t c = 0; c < cycles; ++c) {
    for (Source& s : sources) {
      while (bench.backlog(s.input, s.lane) < 4)
        bench.send({s.input, s.lane, s.output, s.flits[s.next++ % s.flits.size()]});
    }
    bench.step();
  }
}

// Flits by class that have come out of an output, of `cycles` under these sources after a start.
template <class Shape>
std::vector<double> shares_of(SwitchBench<Shape>& bench, std::vector<Source> sources, unsigned output,
                              std::uint64_t cycles) {
  saturate(bench, sources, 2'000);
  bench.flits_of.clear();
  saturate(bench, sources, cycles);
  std::vector<double> shares(Shape::classes);
  for (const auto& [flow, flits] : bench.flits_of) {
    if (std::get<2>(flow) == output)
      shares[class_of<Shape>(std::get<1>(flow))] += static_cast<double>(flits) / static_cast<double>(cycles);
  }
  return shares;
}

template <class Shape>
class EveryClasses : public ::testing::Test {};
using Shapes = ::testing::Types<Three, Eight>;
TYPED_TEST_SUITE(EveryClasses, Shapes);

TYPED_TEST(EveryClasses, RandomTrafficUnderBackPressureArrivesWhateverTheArbitration) {
  for (const RtlArbitration arbitration : {RtlArbitration::strict, RtlArbitration::deficit}) {
    SwitchBench<TypeParam> bench(TypeParam::max_flits / TypeParam::cell_flits, 3);
    bench.arbitrate(arbitration, same<TypeParam>(TypeParam::max_flits));
    bench.ready = 0.7;
    bench.credit_delay = 20;
    for (unsigned c = 0; c < 4'000; ++c) {
      for (unsigned i = 0; i < TypeParam::ports; ++i) {
        if (bench.random() % (TypeParam::max_flits * 2) == 0) bench.send_random(i);
      }
      bench.step();
    }
    bench.drain(1'000'000);
    EXPECT_GT(bench.received.size(), 100u);
  }
}

// Each class from an input of its own, with packets of unlike lengths.
TEST(Deficit, ClassesShareAnOutputByTheirQuanta) {
  SwitchBench<Three> bench;
  bench.logs = false;
  bench.arbitrate(RtlArbitration::deficit, std::array{32u, 64u, 128u});
  const auto shares = shares_of(bench, {{0, 0, 3, {32}}, {1, 2, 3, {3}}, {2, 4, 3, {17, 31}}}, 3, 40'000);
  EXPECT_NEAR(shares[0], 1. / 7, 0.02 / 7);
  EXPECT_NEAR(shares[1], 2. / 7, 0.04 / 7);
  EXPECT_NEAR(shares[2], 4. / 7, 0.08 / 7);
}

// All classes from all inputs, which send to another output too.
TEST(Deficit, QuantaHoldAmongAllInputs) {
  SwitchBench<Three> bench;
  bench.logs = false;
  bench.arbitrate(RtlArbitration::deficit, std::array{128u, 64u, 64u});
  std::vector<Source> sources;
  for (unsigned i = 0; i < 4; ++i) {
    for (unsigned c = 0; c < 3; ++c) sources.push_back({i, 2 * c, 3, {8 + 11 * c}});
    sources.push_back({i, 7, 1, {32}});
  }
  const auto shares = shares_of(bench, sources, 3, 40'000);
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  EXPECT_GT(all, 0.97);
  EXPECT_NEAR(shares[0] / all, 0.5, 0.01);
  EXPECT_NEAR(shares[1] / all, 0.25, 0.005);
}

TEST(Deficit, WhatAClassDoesNotUseGoesToTheOthers) {
  SwitchBench<Three> bench;
  bench.logs = false;
  bench.arbitrate(RtlArbitration::deficit, std::array{32u, 512u, 96u});
  const auto shares = shares_of(bench, {{0, 0, 3, {20}}, {2, 4, 3, {9}}}, 3, 40'000);
  EXPECT_NEAR(shares[0], 0.25, 0.005);
  EXPECT_NEAR(shares[2], 0.75, 0.015);
}

// A packet now and then of class `c` from input 2, beside two inputs that fill the output with the others;
// the longest time from first flit in to first flit out.
std::uint64_t longest_wait(SwitchBench<Three>& bench, unsigned c, unsigned flits) {
  std::vector<Source> others;
  for (const unsigned i : {0u, 1u}) {
    for (unsigned other = 0; other < 3; ++other) {
      if (other != c) others.push_back({i, 2 * other, 3, {32}});
    }
  }
  saturate(bench, others, 2'000);
  bench.received.clear();
  for (unsigned n = 0; n < 60; ++n) {
    bench.send({2, 2 * c, 3, flits});
    saturate(bench, others, 700 + 13 * n);
  }
  std::uint64_t longest = 0;
  for (const ReceivedPacket& p : bench.received) {
    if (class_of<Three>(p.packet.lane) == c) longest = std::max(longest, p.first_out - p.first_in);
  }
  return longest;
}

// The others' quanta, a packet by which each may overdraw, the one under way and the one picked ahead.
TEST(Deficit, AClassWaitsForNoMoreThanTheOthersTurns) {
  SwitchBench<Three> bench;
  bench.arbitrate(RtlArbitration::deficit, std::array{64u, 96u, 32u});
  const std::uint64_t wait = longest_wait(bench, 2, 4);
  EXPECT_LE(wait, 64u + 96 + 4 * 32 + 6);
  EXPECT_GT(wait, 96u);
}

// What is left of its turn where nothing waits any more: a burst later has a quantum, not more.
TEST(Deficit, AClassThatHadNothingBeginsAnew) {
  SwitchBench<Three> bench;
  bench.arbitrate(RtlArbitration::deficit, std::array{32u, 32u, 32u});
  std::vector<Source> other{{0, 0, 3, {32}}};
  saturate(bench, other, 500);
  bench.send({1, 2, 3, 4});
  saturate(bench, other, 500);
  for (unsigned n = 0; n < 60; ++n) bench.send({1, 2, 3, 4});
  saturate(bench, other, 2'000);
  unsigned run = 0, longest = 0;
  for (const ReceivedPacket& p : bench.received) {
    run = p.packet.lane == 2 ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  EXPECT_EQ(longest, 8u);  // of 4 flits each
}

TEST(Strict, TheHighestClassWaitsForThePacketUnderWayAndTheNext) {
  SwitchBench<Three> bench;
  bench.arbitrate(RtlArbitration::strict, same<Three>(32));
  const std::uint64_t wait = longest_wait(bench, 2, 4);
  EXPECT_LE(wait, 2 * 32u + 6);
  EXPECT_GT(wait, 32u);
}

TEST(Strict, LowerClassesGetWhatIsLeft) {
  SwitchBench<Three> bench;
  bench.logs = false;
  bench.arbitrate(RtlArbitration::strict, same<Three>(32));
  std::vector<Source> lower{{1, 2, 3, {32}}, {2, 0, 3, {32}}};
  std::array<double, 3> flits{};
  for (unsigned n = 0; n < 400; ++n) {  // a packet of 20 flits in 50 cycles
    bench.send({0, 4, 3, 20});
    saturate(bench, lower, 50);
    if (n == 50) bench.flits_of.clear();
  }
  for (const auto& [flow, sent] : bench.flits_of)
    flits[class_of<Three>(std::get<1>(flow))] += static_cast<double>(sent);
  const double all = 349 * 50;
  EXPECT_NEAR(flits[2] / all, 0.4, 0.01);
  EXPECT_NEAR(flits[1] / all, 0.6, 0.01);
  EXPECT_LE(flits[0] / all, 0.01);
}

// An input that reads one packet at a time has packets of the highest class for one output and of the lowest
// for another.
TEST(Strict, AnInputTakesItsHighestClassFirst) {
  SwitchBench<Eight> bench;
  bench.logs = false;
  bench.arbitrate(RtlArbitration::strict, same<Eight>(16));
  const std::vector<Source> sources{{0, 14, 1, {16}}, {0, 0, 2, {16}}};
  const double high = shares_of(bench, sources, 1, 10'000)[7];
  bench.arbitrate(RtlArbitration::round_robin, same<Eight>(16));
  const double equal = shares_of(bench, sources, 1, 10'000)[7];
  EXPECT_GT(high, 1.6 * equal);
}

// Lanes 0, 1, 6 and 7 are of class 0, lanes 2 and 3 of class 1.
TEST(Classes, LanesOfAClassTakeTurns) {
  for (const RtlArbitration arbitration : {RtlArbitration::strict, RtlArbitration::deficit}) {
    SwitchBench<Three> bench;
    bench.logs = false;
    bench.arbitrate(arbitration, std::array{64u, 64u, 64u});
    std::vector<Source> sources;
    for (const unsigned lane : {0u, 1u, 6u, 7u}) sources.push_back({lane % 2, lane, 3, {13}});
    if (arbitration == RtlArbitration::deficit) {
      sources.push_back({2, 2, 3, {32}});
      sources.push_back({3, 3, 3, {32}});
    }
    saturate(bench, sources, 30'000);
    std::map<unsigned, double> lanes;
    for (const auto& [flow, flits] : bench.flits_of) lanes[std::get<1>(flow)] += static_cast<double>(flits);
    for (const unsigned lane : {1u, 6u, 7u}) EXPECT_NEAR(lanes[lane] / lanes[0], 1, 0.01);
    if (arbitration == RtlArbitration::deficit) {
      EXPECT_NEAR(lanes[3] / lanes[2], 1, 0.01);
    }
  }
}

}  // namespace
}  // namespace cm384::ub::classes_test
