// Host speed of the memory model: requests a second of one die.
#include <benchmark/benchmark.h>

#include "npu_core/memory/backing_store.h"
#include "npu_core/memory/die_memory.h"
#include "testbenches/npu_core/memory/preset.h"

namespace cm384::npu {
namespace {

// 48 cores each walk their own region in 512 B requests, in turn. `range(0)` is the bytes a core walks before
// it starts again: small regions hit in L2, large ones do not.
void walk(benchmark::State& state, bool write) {
  DieMemory memory(testing::preset_memory());
  const auto region = static_cast<std::uint64_t>(state.range(0));
  std::uint64_t i = 0;
  Time now{1000};
  for (auto _ : state) {
    MemoryAccess a;
    a.requester = static_cast<std::uint16_t>(i % 48);
    a.offset = (i % 48) * (std::uint64_t{64} << 20) + (i / 48 * 512) % region;
    a.bytes = 512;
    a.write = write;
    a.at = now;
    benchmark::DoNotOptimize(memory.access(a));
    now += Time{350};
    ++i;
  }
  state.SetItemsProcessed(state.iterations());
}
void BM_ReadMiss(benchmark::State& state) {
  walk(state, false);
}
void BM_ReadHit(benchmark::State& state) {
  walk(state, false);
}
void BM_WriteMiss(benchmark::State& state) {
  walk(state, true);
}
BENCHMARK(BM_ReadMiss)->Arg(32 << 20);
BENCHMARK(BM_ReadHit)->Arg(64 << 10);
BENCHMARK(BM_WriteMiss)->Arg(32 << 20);

// 512 B at random lines of 64 MiB, bytes or tags.
void BM_StoreWriteRead(benchmark::State& state) {
  BackingStore store(64_GiB);
  std::byte bytes[512] = {};
  const sim::TagMask tags = state.range(0) != 0 ? sim::all_tags(512) : 0;
  std::uint64_t x = 1;
  for (auto _ : state) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t offset = (x >> 40) % (64u << 11) * 512;
    store.write(offset, bytes, 512, tags);
    benchmark::DoNotOptimize(store.read(offset ^ 0x1000, bytes, 512));
  }
  state.SetItemsProcessed(state.iterations() * 2);
}
BENCHMARK(BM_StoreWriteRead)->Arg(0)->Arg(1);

}  // namespace
}  // namespace cm384::npu
