// The bench of the model with the machine's preset, and what bit errors cost it.
#pragma once

#include "Vrtl_link_preset.h"
#include "testbenches/hw/rtl/ub_link/link_shapes.h"

namespace cm384::rtl {

using PresetLink = LinkBench<Vrtl_link_preset, kPreset>;
inline constexpr int kReturnDelay = 256;
inline constexpr int kRetryTimeout = 1024;

// Writes of 512 B: 28 flits, one block.
inline constexpr int kWriteLength = 24 + 512;
inline constexpr int kWriteFlits = 28;
// 100 ns of the preset at 28 GB/s.
inline constexpr int kEndpointLatency = 140;

// hw/rtl/ub_link/README.md, "What a damaged block costs": flit cycles lost with one damaged block of `flits`,
// all blocks alike and back to back, over a wire of `latency`.
constexpr int retry_cost(int flits, int latency) {
  const int ahead = flits + 2 * latency + 3;
  return (ahead + flits - 1) / flits * flits + 1;
}

// Chance of one or more bit errors in so many flits.
inline double hit(double rate, int flits) {
  double passes = 1;
  for (int bit = 0; bit < 160 * flits; ++bit) passes *= 1 - rate;
  return 1 - passes;
}

// Time lost for each unit of useful time: of p / (1 - p) hits a good block each costs one retry, and a
// further RetryTimeout when the request or the answer is hit too.
inline double closed_form(double rate, int flits, int latency) {
  const double p = hit(rate, flits), q = hit(rate, 2);
  return p / (1 - p) * (retry_cost(flits, latency) + q / (1 - q) * kRetryTimeout) / flits;
}

struct Loss {
  double lost;  // for each unit of useful time
  std::uint64_t damaged;
};

// Sends `packets` writes from end 0 at full rate, both directions of the wire with bit errors.
inline Loss measured(double rate, std::uint64_t packets, int latency) {
  PresetLink bench(latency);
  Random random(90);
  BitErrors there(rate, kPreset.flit_bytes, 91), back(rate, kPreset.flit_bytes, 92);
  bench.on_wire = [&](int e, Flit& flit) { (e == 0 ? there : back)(flit); };
  const std::uint64_t start = bench.cycle();
  for (std::uint64_t sent = 0; bench.received(1) < packets && !testing::Test::HasFatalFailure();
       bench.step()) {
    for (; sent < packets && bench.queued(0) < 4; ++sent)
      bench.send(0, random_packet(random, static_cast<unsigned>(sent & 1), kWriteLength));
  }
  // The bench has compared content and order; nothing may come twice either.
  bench.run(5'000);
  EXPECT_EQ(bench.received(1), packets);
  EXPECT_EQ(bench.pending(), 0u);
  // Without the way of the last packet, which is read out when it is whole; its last flit has no content.
  const double useful = static_cast<double>(packets * kWriteFlits);
  const double took = static_cast<double>(bench.cycle() - start - 5'000 - latency - 6 - (kWriteFlits - 2));
  return {took / useful - 1, bench.events(1).damaged};
}

}  // namespace cm384::rtl
