// Bandwidth, with and without bit errors, against closed forms, and against the transaction-level model of a
// link.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "hw/machine.h"
#include "testbenches/hw/rtl/ub_link/preset_link.h"
#include "ub_fabric/link.h"
#include "ub_fabric/wire_format.h"

namespace cm384::rtl::rate_test {
namespace {

constexpr int kAckGrain = 32;
constexpr int kCreditGrain = 4;

void send_many(PresetLink& bench, int e, unsigned lane, int length, int packets) {
  Random random(80 + lane);
  for (int p = 0; p < packets; ++p) bench.send(e, random_packet(random, lane % 2, length));
}

// Returns ride in headers: control blocks of their own appear for what is left over, once every ReturnDelay
// cycles.
TEST(LinkRate, TwoWayTrafficCarriesItsReturnsInHeaders) {
  PresetLink bench(5);
  for (int e = 0; e < 2; ++e) send_many(bench, e, 0, 536, 300);
  const std::uint64_t start = bench.cycle();
  bench.drain(20'000);
  const std::uint64_t took = bench.cycle() - start;
  EXPECT_LE(took, 300u * 28 + took / (kReturnDelay + 1) + 60);
  EXPECT_LE(bench.events(0).returned, took / kReturnDelay + 5);
}

TEST(LinkRate, HeadersReturnWholeGrains) {
  PresetLink bench(5);
  unsigned flits = 0, cells = 0, block_flits = 0, block_cells = 0;
  int left = 0;
  bench.on_wire = [&](int e, Flit& flit) {
    if (e != 1) return;
    if (left == 0 && block_header(flit).format == 0) {
      if (!is_control(flit, Control::returns)) return;
      block_flits += field(flit, 2);
      for (int l = 0; l < 16; ++l) {
        for (int b = 0; b < 5; ++b) {
          const int bit = 32 + 5 * l + b;
          block_cells += (flit[bit / 8] >> bit % 8 & 1u) << b;
        }
      }
      return;
    }
    if (left == 0) {
      left = kPreset.flits(static_cast<int>(field(flit, 2)));
      flits += block_header(flit).acknowledge ? kAckGrain : 0;
      cells += block_header(flit).credit ? kCreditGrain : 0;
    }
    --left;
  };
  send_many(bench, 0, 1, 536, 100);
  send_many(bench, 1, 3, 536, 100);
  bench.drain(10'000);
  bench.run(1'000);
  // All 100 packets of 4 cells have come back, most of them in headers.
  EXPECT_EQ(cells + block_cells, 400u);
  EXPECT_GT(cells, 200u);
  EXPECT_GE(flits + block_flits, 2'800u);
  EXPECT_GT(flits, 2'000u);
}

// The preset's buffers cover its round trip: 10,000 writes pass at one flit per cycle.
TEST(LinkRate, ThePresetsBuffersCoverTheRoundTrip) {
  EXPECT_EQ(measured(0, 10'000, kEndpointLatency).lost, 0.0);
}

TEST(LinkRate, OneDamagedBlockCostsItsClosedFormOverAnyWire) {
  for (const int latency : {2, 26, 40, 41, kEndpointLatency}) {
    std::uint64_t took[2];
    for (int damaged = 0; damaged < 2; ++damaged) {
      PresetLink bench(latency);
      send_many(bench, 0, 0, kWriteLength, 40);
      int flits = 0;
      bench.on_wire = [&](int e, Flit& flit) {
        if (e != 0 || (flits == 0 && is_control(flit, Control::null))) return;
        if (flits++ == 10 * kWriteFlits + 3) flit[7] ^= static_cast<std::uint8_t>(damaged);
      };
      bench.drain(10'000);
      took[damaged] = bench.cycle();
    }
    EXPECT_EQ(took[1] - took[0], static_cast<std::uint64_t>(retry_cost(kWriteFlits, latency))) << latency;
  }
}

constexpr double kRates[] = {1e-5, 3e-5};
// One run for both tests.
const Loss& loss_at(double rate) {
  static std::map<double, Loss> known;
  const auto at = known.find(rate);
  return at != known.end() ? at->second : known[rate] = measured(rate, 12'000, kEndpointLatency);
}

TEST(LinkRate, BitErrorsLoseTheBandwidthOfTheClosedForm) {
  for (const double rate : kRates) {
    const Loss& loss = loss_at(rate);
    EXPECT_GT(loss.damaged, 400u);
    const double expected = closed_form(rate, kWriteFlits, kEndpointLatency);
    EXPECT_NEAR(loss.lost / expected, 1.0, 0.1) << "bit error rate " << rate << ", lost " << loss.lost;
    std::printf("bit error rate %.0e: lost %.4f of the useful time, closed form %.4f, %d hits\n", rate,
                loss.lost, expected, static_cast<int>(loss.damaged));
  }
}

// Where a hit is the rule: nothing is lost, even so.
TEST(LinkRate, ABadWireLosesNoPacket) {
  EXPECT_GT(measured(1e-4, 300, kEndpointLatency).damaged, 50u);
}

// The same from LinkBank, at the preset's retry_turnaround: its grain is the packet, here one block; it draws
// no damage to requests and answers.
double lost_by_the_model(double rate, std::uint64_t packets, const hw::Machine& machine) {
  const auto& link = machine.ub.link;
  sim::EventQueue queue;
  ub::LinkBank bank(queue, 0, 0, 1, 1, ub::RetryTimes{link.retry_turnaround, link.retry_timeout});
  bank.connect(0, Clock(Bytes{ub::kFlitBytes}, link.bandwidth), link.endpoint_latency, 1);
  ub::RandomFault fault = ub::RandomFault::of_bits(rate, ub::Damage::corrupted, 93);
  bank.attach_fault(0, &fault);
  ub::Packet packet{};
  packet.flits = kWriteFlits;
  for (std::uint64_t p = 0; p < packets; ++p) bank.transmit(0, ub::Hop(0, packet), Time{});
  const double took = static_cast<double>(bank.free_at(0).ps);
  bank.attach_fault(0, nullptr);
  return took / static_cast<double>(bank.busy(0).ps) - 1;
}

TEST(LinkRate, TheTransactionLevelModelLosesTheSame) {
  const hw::Machine machine = hw::load_machine("cloudmatrix384");
  for (const double rate : kRates) {
    const double model = lost_by_the_model(rate, 100'000, machine);
    const double rtl = loss_at(rate).lost;
    EXPECT_NEAR(model / rtl, 1.0, 0.1) << "bit error rate " << rate << ": model " << model << ", RTL " << rtl;
    std::printf("bit error rate %.0e: lost %.4f by the model, %.4f by the RTL\n", rate, model, rtl);
  }
}

}  // namespace
}  // namespace cm384::rtl::rate_test
