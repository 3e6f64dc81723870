// The hold model: a queue keeps `pending` events; each handled event pushes one at a later time. What is
// measured is one pop with one push.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <vector>

#include "base/engine/event_queue.h"

namespace cm384::sim {
namespace {

constexpr std::size_t kDelays = 4096;
using Delays = std::array<std::int64_t, kDelays>;

std::uint64_t next_random(std::uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

// Any time up to 1 us ahead: packets on links of a sub-plane.
Delays uniform_delays() {
  Delays d{};
  std::uint64_t state = 88172645463325252ull;
  for (auto& v : d) v = static_cast<std::int64_t>(next_random(state) % 1'000'000) + 1;
  return d;
}

// What a die sees: pipes that finish in a few cycles, memory in 100 to 400 ns, the fabric in 1 to 3 us.
Delays die_delays() {
  Delays d{};
  std::uint64_t state = 88172645463325252ull;
  for (auto& v : d) {
    const std::uint64_t r = next_random(state);
    if (r % 10 < 5) {
      v = static_cast<std::int64_t>((r >> 8) % 40 * 541) + 1;
    } else if (r % 10 < 9) {
      v = static_cast<std::int64_t>(100'000 + (r >> 8) % 300'000);
    } else {
      v = static_cast<std::int64_t>(1'000'000 + (r >> 8) % 2'000'000);
    }
  }
  return d;
}

void hold(benchmark::State& state, const Delays& delays) {
  EventQueue queue(1);
  std::size_t k = 0;
  for (std::int64_t i = 0; i < state.range(0); ++i) queue.push(Time{delays[k++ % kDelays]}, 0, 0);
  Time end{};
  for (auto _ : state) {
    end += 200_ns;
    queue.run_until(end, [&](const Event& e) {
      queue.push(Time{e.at.ps + delays[k++ % kDelays]}, e.unit, e.what, e.argument + 1);
    });
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(queue.handled()));
}

void hold_uniform(benchmark::State& state) {
  hold(state, uniform_delays());
}
void hold_die(benchmark::State& state) {
  hold(state, die_delays());
}
// All modules of a supernode in turn, one window each: caches are cold at every turn.
void hold_supernode(benchmark::State& state) {
  const Delays delays = die_delays();
  std::vector<EventQueue> queues;
  std::size_t k = 0;
  for (std::uint32_t module = 0; module < 776; ++module) {
    queues.emplace_back(module);
    for (std::int64_t i = 0; i < state.range(0); ++i) queues.back().push(Time{delays[k++ % kDelays]}, 0, 0);
  }
  Time end{};
  for (auto _ : state) {
    end += 100_ns;
    for (EventQueue& queue : queues) {
      queue.run_until(end, [&](const Event& e) {
        queue.push(Time{e.at.ps + delays[k++ % kDelays]}, e.unit, e.what, e.argument + 1);
      });
    }
  }
  std::int64_t handled = 0;
  for (const EventQueue& queue : queues) handled += static_cast<std::int64_t>(queue.handled());
  state.SetItemsProcessed(handled);
}
BENCHMARK(hold_supernode)->Arg(20)->Arg(200);
BENCHMARK(hold_uniform)->Arg(20)->Arg(200)->Arg(2000)->Arg(20000);
BENCHMARK(hold_die)->Arg(20)->Arg(200)->Arg(2000)->Arg(20000);

}  // namespace
}  // namespace cm384::sim
