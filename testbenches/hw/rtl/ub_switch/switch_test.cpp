// The switch alone: random traffic under a scoreboard, back-pressure, corners of the parameters, reset,
// fairness.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#ifdef CM384_CHIP_CYCLES  // one of a user's own, by `cm384 rtl build`: the smallest shape alone
#include "Vown_bench.h"
#else
#define CM384_CHIP_CYCLES 5
#define CM384_SWITCH_CORNERS
#include "Vrtl_switch_lanes.h"
#include "Vrtl_switch_many.h"
#include "Vrtl_switch_one.h"
#include "Vrtl_switch_ports.h"
#endif
#if !defined(CM384_SWITCH_CORNERS)
#elif defined(CM384_SWITCH_COVERED)
#include "Vrtl_switch_small_covered.h"
#include "Vrtl_switch_wide_covered.h"
#else
#include "Vrtl_switch_small.h"
#include "Vrtl_switch_wide.h"
#endif
#ifdef CM384_SWITCH_CORNERS
#include "testbenches/hw/rtl/ub_switch/class_shapes.h"
#endif
#include "testbenches/hw/rtl/ub_switch/switch_bench.h"

namespace cm384::ub::switch_test {
namespace {

// As CMakeLists.txt builds them.
struct Small {
#if !defined(CM384_SWITCH_CORNERS)
  using Model = Vown_bench;
#elif defined(CM384_SWITCH_COVERED)
  using Model = Vrtl_switch_small_covered;
#else
  using Model = Vrtl_switch_small;
#endif
  static constexpr unsigned ports = 4, lanes = 2, buffer_cells = 32, cell_flits = 8, flit_bits = 64,
                            max_flits = 32, routes = 64, streams = 2;
};
#ifdef CM384_SWITCH_CORNERS
// Full width, one of everything: one stream, one lane, the least buffer.
struct Wide {
#ifdef CM384_SWITCH_COVERED
  using Model = Vrtl_switch_wide_covered;
#else
  using Model = Vrtl_switch_wide;
#endif
  static constexpr unsigned ports = 3, lanes = 1, buffer_cells = 4, cell_flits = 8, flit_bits = 160,
                            max_flits = 32, routes = 5, streams = 1;
};
// Many lanes and streams, cells and buffers of odd size.
struct Many {
  using Model = Vrtl_switch_many;
  static constexpr unsigned ports = 6, lanes = 5, buffer_cells = 9, cell_flits = 4, flit_bits = 96,
                            max_flits = 16, routes = 17, streams = 4;
};
// As many lanes as a header can name, packets of up to 960 flits, a buffer of just one.
struct LanesCorner {
  using Model = Vrtl_switch_lanes;
  static constexpr unsigned ports = 2, lanes = 16, buffer_cells = 15, cell_flits = 64, flit_bits = 64,
                            max_flits = 960, routes = 300, streams = 3;
};
// As many ports as there can be.
struct PortsCorner {
  using Model = Vrtl_switch_ports;
  static constexpr unsigned ports = 64, lanes = 1, buffer_cells = 8, cell_flits = 2, flit_bits = 64,
                            max_flits = 8, routes = 64, streams = 2;
};
// A single port, packets of one cell, flits that just hold a header.
struct One {
  using Model = Vrtl_switch_one;
  static constexpr unsigned ports = 1, lanes = 2, buffer_cells = 1, cell_flits = 2, flit_bits = 32,
                            max_flits = 2, routes = 2, streams = 2;
};
#endif

template <class Shape>
class EveryShape : public ::testing::Test {};
// Of service classes none is told apart here: classes_test.cpp does.
#ifdef CM384_SWITCH_CORNERS
using Shapes = ::testing::Types<Small, Wide, Many, LanesCorner, PortsCorner, ThreeClasses, EightClasses, One>;
#else
using Shapes = ::testing::Types<Small>;
#endif
TYPED_TEST_SUITE(EveryShape, Shapes);

template <class Shape>
void random_traffic(SwitchBench<Shape>& bench, std::uint64_t cycles, unsigned one_in) {
  for (std::uint64_t c = 0; c < cycles; ++c) {
    for (unsigned i = 0; i < Shape::ports; ++i) {
      if (bench.random() % one_in == 0) bench.send_random(i);
    }
    bench.step();
  }
}

TYPED_TEST(EveryShape, RandomTrafficArrivesOnceWholeAndInOrder) {
  SwitchBench<TypeParam> bench;
  const unsigned cycles = std::max(4'000u, 100 * TypeParam::max_flits);
  random_traffic(bench, cycles, TypeParam::max_flits);
  bench.drain();
  EXPECT_GT(bench.received.size(), cycles / 4 * 3 * TypeParam::ports / TypeParam::max_flits);
}

TYPED_TEST(EveryShape, BackPressureHoldsPacketsAndLosesNone) {
  SwitchBench<TypeParam> bench(TypeParam::max_flits / TypeParam::cell_flits, 2);
  bench.ready = 0.6;
  bench.credit_delay = 25;
  random_traffic(bench, std::max(3'000u, 160 * TypeParam::max_flits), TypeParam::max_flits * 2);
  bench.drain(1'000'000);
  EXPECT_GT(bench.received.size(), 100u);
}

TYPED_TEST(EveryShape, ShortestPacketsAtFullRate) {
  SwitchBench<TypeParam> bench;
  for (unsigned n = 0; n < 600; ++n) {
    for (unsigned i = 0; i < TypeParam::ports; ++i)
      bench.send({i, n % TypeParam::lanes, (i + 1) % TypeParam::ports, 1});
  }
  bench.drain();
}

TYPED_TEST(EveryShape, AnIdleSwitchTakesFiveCycles) {
  SwitchBench<TypeParam> bench;
  bench.run(40);
  for (const unsigned flits : {1u, TypeParam::max_flits}) {
    bench.send({0, 0, TypeParam::ports - 1, flits});
    bench.drain();
    const ReceivedPacket& p = bench.received.back();
    // Put before the edge that ends cycle first_in, seen after the edge that ends cycle first_out - 1.
    EXPECT_EQ(p.first_out - p.first_in, std::uint64_t{CM384_CHIP_CYCLES});
    EXPECT_EQ(p.last_out - p.first_out, flits - 1);
  }
}

TYPED_TEST(EveryShape, ResetInTrafficEmptiesTheSwitch) {
  SwitchBench<TypeParam> bench;
  // From one cycle on, while flits still come in.
  for (unsigned cycles = 1; cycles <= 3; ++cycles) {
    random_traffic(bench, 300 + cycles * 37, 4);
    EXPECT_GT(bench.in_flight, 0u);
    bench.received.clear();
    bench.restart(cycles);
    bench.run(100);
    EXPECT_TRUE(bench.received.empty()) << "something came out of an empty switch";
    random_traffic(bench, std::max(500u, 10 * TypeParam::max_flits), TypeParam::max_flits);
    bench.drain();
    EXPECT_FALSE(bench.received.empty());
  }
}

TYPED_TEST(EveryShape, RoutesCanBeRewritten) {
  SwitchBench<TypeParam> bench;
  for (unsigned turn = 0; turn < 3; ++turn) {
    for (unsigned label = 0; label < TypeParam::routes; ++label)
      bench.write_route(label, (label + turn) % TypeParam::ports);
    random_traffic(bench, 500, TypeParam::max_flits);
    bench.drain();
  }
}

// All inputs busy with packets of full length for all outputs.
template <class Shape>
double saturated_throughput(SwitchBench<Shape>& bench, std::uint64_t cycles) {
  const auto fill = [&bench] {
    for (unsigned i = 0; i < Shape::ports; ++i) {
      while (bench.backlog(i) < 2 * Shape::lanes)
        bench.send({i, static_cast<unsigned>(bench.random() % Shape::lanes),
                    static_cast<unsigned>(bench.random() % Shape::ports), Shape::max_flits});
    }
  };
  bench.logs = false;
  for (std::uint64_t c = 0; c < 1'000; ++c) fill(), bench.step();
  const std::uint64_t before = bench.flits_out;
  for (std::uint64_t c = 0; c < cycles; ++c) fill(), bench.step();
  return static_cast<double>(bench.flits_out - before) / static_cast<double>(cycles * Shape::ports);
}

TEST(Throughput, UniformTrafficFillsTheOutputs) {
  SwitchBench<Small> bench;
  EXPECT_GE(saturated_throughput(bench, 10'000), 0.90);
}

TEST(Throughput, OneOutputHasNoGapBetweenPackets) {
  SwitchBench<Small> bench;
  for (unsigned n = 0; n < 200; ++n) {
    for (unsigned i = 0; i < Small::ports; ++i) bench.send({i, n % 2, 2, 1 + (n * 5 + i) % 32});
  }
  bench.drain();
  std::uint64_t flits = 0;
  for (const auto& p : bench.received) flits += p.packet.flits;
  EXPECT_LE(bench.received.back().last_out - bench.received.front().first_out + 1, flits + 20);
}

double jain(const std::vector<double>& shares) {
  double sum = 0, squares = 0;
  for (const double s : shares) {
    sum += s;
    squares += s * s;
  }
  return sum * sum / (static_cast<double>(shares.size()) * squares);
}

// Everybody sends all the time, on all lanes: two in three packets to one output, the others to all.
TYPED_TEST(EveryShape, InputsAndLanesShareAnOutput) {
  constexpr unsigned kPacket = TypeParam::max_flits / 2;
  constexpr unsigned kHot = TypeParam::ports / 2;
  SwitchBench<TypeParam> bench;
  bench.logs = false;
  for (unsigned c = 0; c < 40 * kPacket * TypeParam::ports * TypeParam::lanes; ++c) {
    for (unsigned i = 0; i < TypeParam::ports; ++i) {
      for (unsigned lane = 0; lane < TypeParam::lanes; ++lane) {
        if (bench.backlog(i, lane) >= 4) continue;
        const bool hot = bench.random() % 3 != 0;
        bench.send({i, lane, hot ? kHot : static_cast<unsigned>(bench.random() % TypeParam::ports), kPacket});
      }
    }
    bench.step();
  }
  std::vector<double> inputs(TypeParam::ports), lanes(TypeParam::lanes);
  for (const auto& [flow, flits] : bench.flits_of) {
    if (std::get<2>(flow) != kHot) continue;
    inputs[std::get<0>(flow)] += static_cast<double>(flits);
    lanes[std::get<1>(flow)] += static_cast<double>(flits);
  }
  EXPECT_GT(jain(inputs), 0.99);
  EXPECT_GT(jain(lanes), 0.99);
}

TEST(Lanes, OneWithoutCreditsDoesNotHoldTheOther) {
  SwitchBench<Small> bench(8);
  bench.run(20);
  bench.held_lanes[0] = true;
  for (unsigned n = 0; n < 100; ++n) {
    for (unsigned i = 0; i < Small::ports; ++i) {
      bench.send({i, 0, 3, 32});
      bench.send({i, 1, 3, 32});
    }
  }
  bench.run(40'000);
  std::array<unsigned, 2> arrived{};
  for (const auto& p : bench.received) ++arrived[p.packet.lane];
  EXPECT_EQ(arrived[1], 400u);
  EXPECT_EQ(arrived[0], 2u);  // what 8 cells take
  bench.held_lanes[0] = false;
  bench.drain();
}

// One cell at the receiver: packets of one cell go, one after the other.
TYPED_TEST(EveryShape, APacketNeedsCreditsForItsOwnCellsOnly) {
  SwitchBench<TypeParam> bench(1);
  bench.run(20);
  for (unsigned n = 0; n < 20; ++n) {
    for (unsigned i = 0; i < TypeParam::ports; ++i)
      bench.send({i, n % TypeParam::lanes, TypeParam::ports - 1, 1 + n % TypeParam::cell_flits});
  }
  bench.drain();
  EXPECT_EQ(bench.received.size(), 20u * TypeParam::ports);
}

// An input with packets of four cells among inputs with packets of one, and never more than four cells free:
// it gets its turns.
TEST(Fairness, ShortPacketsDoNotKeepALongOneWaiting) {
  SwitchBench<Small> bench(4);
  bench.credit_delay = 9;
  for (unsigned c = 0; c < 20'000; ++c) {
    for (unsigned i = 0; i < Small::ports; ++i) {
      while (bench.backlog(i) < 4) bench.send({i, 0, 1, i == 2 ? 32u : 8u});
    }
    bench.step();
  }
  std::array<std::uint64_t, Small::ports> packets{};
  for (const auto& p : bench.received) ++packets[p.packet.input];
  EXPECT_GT(packets[2], 100u);
  for (const std::uint64_t n : packets)
    EXPECT_NEAR(static_cast<double>(n), static_cast<double>(packets[2]), 2.0);
}

#ifdef CM384_SWITCH_CORNERS
// The counter has room for thousands of cells, the receivers for 64.
TEST(Assertions, AReceiverHasNoMoreCellsThanItsBuffer) {
  {
    SwitchBench<Small> bench(64);
    bench.run(20);
  }
  testing::TestPartResultArray failures;
  {
    testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &failures);
    SwitchBench<Small> bench(65);
    bench.run(20);
  }
  ASSERT_EQ(failures.size(), 1);
  EXPECT_NE(std::string(failures.GetTestPartResult(0).message()).find("assertions of the RTL failed"),
            std::string::npos);
}
#endif

// A scoreboard that cannot fail proves nothing.
TEST(Scoreboard, SeesAWrongOutput) {
  testing::TestPartResultArray failures;
  {
    testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &failures);
    SwitchBench<Small> bench;
    bench.run(40);
    bench.model->route_write_i = 1;  // behind the bench's back
    bench.model->route_output_i = 0;
    for (unsigned label = 0; label < Small::routes; ++label) {
      bench.model->route_label_i = static_cast<CData>(label);
      bench.tick();
    }
    bench.model->route_write_i = 0;
    bench.send({0, 0, 1, 4});
    bench.drain(200);
  }
  ASSERT_GT(failures.size(), 0);
  EXPECT_NE(std::string(failures.GetTestPartResult(0).message()).find("not the next of any flow"),
            std::string::npos);
}

}  // namespace
}  // namespace cm384::ub::switch_test
