// Instructions a second of one scalar core, timing on.
#include <benchmark/benchmark.h>

#include "testbenches/npu_core/scalar/surroundings.h"

namespace cm384::npu::testing {
namespace {

void scalar_speed(benchmark::State& state) {
  const hw::ScalarCoreParameters parameters = small_core();
  Surroundings surroundings;
  auto program =
      std::make_shared<Program>(ElfImage::read(std::string(CM384_SCALAR_PROGRAMS) + "/mix.elf"), parameters);
  ScalarCore core(parameters, surroundings, 0);
  core.start(program, 0);
  for (auto _ : state) {
    core.run(core.cycle() + state.range(0));
  }
  state.counters["instructions"] =
      benchmark::Counter(static_cast<double>(core.instructions()), benchmark::Counter::kIsRate);
  state.counters["cycles per instruction"] =
      static_cast<double>(core.cycle()) / static_cast<double>(core.instructions());
}
// The argument is the slice between two visits of the die's event queue, in cycles.
BENCHMARK(scalar_speed)->Arg(1'000'000)->Arg(1'000);

}  // namespace
}  // namespace cm384::npu::testing
