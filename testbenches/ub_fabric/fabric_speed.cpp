// Packet hops a second of the whole Clos: uniform random 512 B writes among 256 dies, with acknowledgements,
// credits and lanes. A hop is one packet crossing one link.
#include <benchmark/benchmark.h>

#include "firmware/abi/memory_map.h"
#include "testbenches/ub_fabric/fabric_bench.h"

namespace cm384::ub {
namespace {

void uniform_random(benchmark::State& state, sim::Operation operation,
                    const std::vector<std::string>& overrides, std::uint64_t depth) {
  constexpr unsigned kDies = 256;
  std::vector<unsigned> dies;
  for (unsigned d = 0; d < kDies; ++d) dies.push_back(d);
  std::uint64_t hops = 0;
  std::uint64_t events = 0;
  for (auto _ : state) {
    state.PauseTiming();
    FabricBench bench(machine(overrides), dies);
    for (unsigned d = 0; d < kDies; ++d) {
      StandIn& unit = bench.at(d);
      unit.logs = false;
      unit.stream(operation, 512, 2'000, depth, [d](std::uint64_t i) {
        std::uint64_t to = mix(std::uint64_t{d} << 32 | i) % kDies;
        if (to == d) to = (to + 1) % kDies;
        return cm384_gm_die(to, (i % 64) * 512) | CM384_GM_VIA_UB_BIT;
      });
    }
    state.ResumeTiming();
    bench.run();
    hops += bench.packet_hops();
    events += bench.events();
  }
  state.counters["hops/s"] = benchmark::Counter(static_cast<double>(hops), benchmark::Counter::kIsRate);
  state.counters["events/hop"] = static_cast<double>(events) / static_cast<double>(hops);
}

BENCHMARK_CAPTURE(uniform_random, writes, sim::Operation::write, {}, 541)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(uniform_random, writes_light, sim::Operation::write, {}, 100)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(uniform_random, writes_adaptive, sim::Operation::write, {"ub.switch.routing=adaptive"}, 541)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(uniform_random, reads, sim::Operation::read, {}, 622)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cm384::ub
