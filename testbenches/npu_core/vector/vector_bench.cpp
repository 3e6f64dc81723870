// Host time of a vector core's work: a request, a vector instruction in both payload modes.
#include <benchmark/benchmark.h>

#include "testbenches/npu_core/vector/stand_in.h"

namespace cm384::npu::testing {
namespace {

// 7,212 B out to a peer, as in dispatch; time a request of at most 512 B, the event queue of the stand-in
// included.
void remote_writes(benchmark::State& state) {
  StandIn die;
  die.record = false;
  if (state.range(0) != 0) die.aiv.ubuffer().set_payload(0, 8192, true);
  std::vector<PipeInstruction> program(1000, copy_out(cm384_gm_die(kRemote, 0), 0, 7212));
  std::int64_t cycle = 0;
  for (auto _ : state) {
    die.run(program, cycle);
    cycle = die.drained();
  }
  state.SetItemsProcessed(state.iterations() * 15000);
}
BENCHMARK(remote_writes)->ArgName("control")->Arg(0)->Arg(1);

void local_reads(benchmark::State& state) {
  StandIn die;
  die.record = false;
  if (state.range(0) != 0) die.tagged.assign(die.tagged.size(), true);
  std::vector<PipeInstruction> program(1000, copy_in(0, cm384_gm_die(kLocal, 0), 14336));
  std::int64_t cycle = 0;
  for (auto _ : state) {
    die.run(program, cycle);
    cycle = die.drained();
  }
  state.SetItemsProcessed(state.iterations() * 28000);
}
BENCHMARK(local_reads)->ArgName("control")->Arg(0)->Arg(1);

// One row of dynamic INT8 quantisation (7,168 elements): 9 vector instructions.
void quantise_row(benchmark::State& state) {
  StandIn die;
  if (state.range(0) != 0) die.aiv.ubuffer().set_payload(0, 0x20000, true);
  const auto f32 = [](int op, std::uint32_t to, std::uint32_t from, std::uint64_t rs2, std::uint32_t repeats,
                      Strides s = {}) {
    return vector(CM384_CLASS_VECTOR, op, CM384_F32, to, from, rs2, repeats, s);
  };
  const auto cast = [](int op, std::uint32_t to, std::uint32_t from, std::uint64_t ds, std::uint64_t ss) {
    return vector(CM384_CLASS_CONVERT, op, 0, to, from, 0, 112, {1, 1, 1, ds, ss, 0});
  };
  std::vector<PipeInstruction> row{cast(CM384_BF16_TO_F32, 0x4000, 0, 8, 4),
                                   f32(CM384_VABS, 0xc000, 0x4000, 0, 112),
                                   f32(CM384_VMAX, 0xc000, 0xc000, 0xc100, 111, {1, 1, 1, 0, 0, 8}),
                                   vector(CM384_CLASS_REDUCE, CM384_VCMAX, CM384_F32, 0x18000, 0xc000, 0, 1),
                                   f32(CM384_VMULS, 0x4000, 0x4000, 0x3f000000, 112),
                                   cast(CM384_F32_TO_S32, 0x4000, 0x4000, 8, 8),
                                   cast(CM384_S32_TO_F16, 0x4000, 0x4000, 4, 8),
                                   cast(CM384_F16_TO_S8, 0x4000, 0x4000, 2, 4),
                                   barrier(CM384_PIPE_V)};
  std::vector<PipeInstruction> program;
  for (int i = 0; i < 100; ++i) program.insert(program.end(), row.begin(), row.end());
  std::int64_t cycle = 0;
  for (auto _ : state) {
    die.run(program, cycle);
    cycle = die.drained();
  }
  state.SetItemsProcessed(state.iterations() * 100);
}
BENCHMARK(quantise_row)->ArgName("control")->Arg(0)->Arg(1);

}  // namespace
}  // namespace cm384::npu::testing
