// Random traffic over a bench's fabric, and what must hold after it.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "firmware/abi/memory_map.h"
#include "testbenches/ub_fabric/fabric_bench.h"

namespace cm384::ub {

inline const std::vector<unsigned> kUnits = {0, 1, 2, 15, 16, 17, 40, 255, 767};

inline std::uint64_t address_of(const Parameters& p, unsigned endpoint, std::uint64_t offset) {
  const auto dies = static_cast<unsigned>(p.topology.dies());
  return endpoint < dies ? cm384_gm_die(endpoint, offset) : cm384_gm_cpu(endpoint - dies, offset);
}

// Random requests from all to all, tags unique an initiator.
inline void random_traffic(FabricBench& bench, const Parameters& p, const std::vector<unsigned>& units,
                           unsigned requests, std::uint64_t seed) {
  for (const unsigned u : units) {
    for (unsigned i = 0; i < requests; ++i) {
      const std::uint64_t r = mix(seed ^ std::uint64_t{u} << 32 ^ i);
      unsigned to = units[r % units.size()];
      if (to == u) to = units[(r + 1) % units.size()];
      const auto bytes = static_cast<std::uint32_t>(1 + (r >> 20) % 512);
      const sim::Operation operation = (r >> 40) % 3 == 0   ? sim::Operation::read
                                       : (r >> 40) % 3 == 1 ? sim::Operation::write
                                                            : sim::Operation::atomic_add_s32;
      std::uint64_t address = address_of(p, to, (r >> 8) % 4096 * 512);
      if (r >> 50 & 1) address |= CM384_GM_VIA_UB_BIT;
      const Time at{static_cast<std::int64_t>((r >> 12) % 3'000'000)};
      bench.at(u).request(at, operation, address, bytes, i, static_cast<unsigned>(r >> 44 & 1),
                          static_cast<unsigned>(r >> 55) % 48);
    }
  }
}

inline void expect_all_done_once(FabricBench& bench, const std::vector<unsigned>& units, unsigned requests) {
  for (const unsigned u : units) {
    std::vector<int> seen(requests, 0);
    for (const auto& d : bench.at(u).done) ++seen.at(d.tag);
    for (unsigned i = 0; i < requests; ++i) ASSERT_EQ(seen[i], 1) << "unit " << u << " tag " << i;
    EXPECT_EQ(bench.at(u).controller.pending(), 0u);
  }
  EXPECT_EQ(bench.packets.in_use(), 0u);
  EXPECT_EQ(bench.payloads.in_use(), 0u);
}

// Every credit is back where it was, of all that is in order.
inline void expect_no_credit_lost(FabricBench& bench, const std::vector<unsigned>& units) {
  for (unsigned p = 0; p < bench.planes(); ++p) {
    sim::Statistics counted;
    bench.plane(p).declare_statistics(counted, {});
    EXPECT_EQ(counted.total("injected"), counted.total("delivered") + bench.plane(p).lost());
    const Network& network = bench.plane(p).network();
    const auto whole = [&](unsigned link) {
      const Network::Link& l = network.link(link);
      return network.in_order(l.chip) && network.link_in_order(link) &&
             (l.peer == Network::kNoLink || network.in_order(network.link(l.peer).chip));
    };
    auto& links = const_cast<LinkBank&>(bench.plane(p).links());
    for (unsigned link = 0; link < network.links(); ++link) {
      for (unsigned lane = 0; lane < links.lanes() && whole(link); ++lane) {
        ASSERT_EQ(links.occupied(link, lane, Time::never()), 0) << "plane " << p << " link " << link;
      }
    }
    for (const unsigned u : units) {
      if (!whole(network.link_to(static_cast<Endpoint>(u)))) continue;
      for (unsigned lane = 0; lane < links.lanes(); ++lane) {
        ASSERT_EQ(bench.at(u).controller.ports().occupied(p, lane, Time::never()), 0);
      }
    }
  }
}

}  // namespace cm384::ub
