// Makes every mechanism of a cube core dear in turn: what the live-knob tests read. See cube_knobs.h.
#include "testbenches/runs/kernels/cube_knobs.h"

#include "firmware/abi/kernel.h"
#include "kernel_operator.h"

using namespace AscendC;

namespace {

uint64_t* results;

template <typename Work>
CM384_INLINE void Section(unsigned section, Work&& work) {
  PipeBarrier<PIPE_ALL>();
  const uint64_t start = GetCoreCycle();
  work();
  PipeBarrier<PIPE_ALL>();
  results[section] = GetCoreCycle() - start;
}

CM384_INLINE void Store(uint64_t gm, uint32_t l1, uint64_t bytes) {
  cm384::pipe_instruction<CM384_CLASS_MTE, CM384_MTE_L1_TO_GM>(gm, l1, bytes | 1ull << 32);
}

void UnitSections(uint64_t data) {
  MmadParams p;
  p.m = p.n = 64;
  p.k = 64;
  Section(CM384_CUBE_KNOB_MMAD, [&] {
    for (int i = 0; i < 16; ++i) Mmad<int8_t>(0, 0, 0, p);
  });
  Section(CM384_CUBE_KNOB_MMAD_F32, [&] {
    for (int i = 0; i < 16; ++i) Mmad<float>(0, 0, 0, p);
  });
  Section(CM384_CUBE_KNOB_MMAD_F16, [&] {
    for (int i = 0; i < 16; ++i) Mmad<half>(0, 0, 0, p);
  });
  Section(CM384_CUBE_KNOB_MMAD_S4, [&] {
    for (int i = 0; i < 16; ++i) Mmad<int4b_t>(0, 0, 0, p);
  });
  Section(CM384_CUBE_KNOB_LOAD_A, [] {
    for (int i = 0; i < 8; ++i) LoadA<int8_t>(0, 0, 4096, 8, 4);
  });
  Section(CM384_CUBE_KNOB_LOAD_B, [] {
    for (int i = 0; i < 8; ++i) LoadB<int8_t>(0, 0, 4096, 8, 4);
  });
  Section(CM384_CUBE_KNOB_TABLE,
          [] { cm384::pipe_instruction<CM384_CLASS_CUBE, CM384_CUBE_LOAD_BIAS>(0, 0, 1024); });
  PipeBarrier<PIPE_ALL>();
  const uint64_t start = GetCoreCycle();
  for (int i = 0; i < 40; ++i) Mmad<int8_t>(0, 0, 0, p);
  results[CM384_CUBE_KNOB_QUEUE] = GetCoreCycle() - start;
  Section(CM384_CUBE_KNOB_FIX, [&] { Fixpipe<CM384_FIX_KEEP>(data, 0, 64, 128, 512); });
}

void MemorySections(uint64_t data, uint64_t remote) {
  Section(CM384_CUBE_KNOB_READ, [&] { CopyToL1(0, data, 512); });
  Section(CM384_CUBE_KNOB_READS, [&] {
    for (uint32_t i = 0; i < 16; ++i) CopyToL1(0, data + i * 8192, 8192);
  });
  Section(CM384_CUBE_KNOB_SHORT_READS, [&] {
    for (uint32_t i = 0; i < 64; ++i) CopyToL1(0, data + i * 128, 128);
  });
  Section(CM384_CUBE_KNOB_WRITE, [&] { Store(data, 0, 512); });
  Section(CM384_CUBE_KNOB_WRITES, [&] {
    for (uint32_t i = 0; i < 16; ++i) Store(data + i * 8192, 0, 8192);
  });
  Section(CM384_CUBE_KNOB_SHORT_WRITES, [&] {
    for (uint32_t i = 0; i < 64; ++i) Store(data + i * 128, 0, 128);
  });
  Section(CM384_CUBE_KNOB_REMOTE_READS, [&] { CopyToL1(0, remote, 65536); });
  Section(CM384_CUBE_KNOB_REMOTE_WRITES, [&] { Store(remote, 0, 65536); });
  Section(CM384_CUBE_KNOB_REMOTE_PARTIAL, [&] { Store(remote, 0, 100); });
}

}  // namespace

extern "C" void kernel_main(GM_ADDR arguments) {
  const auto* given = reinterpret_cast<const cm384_kernel*>(arguments);
  results = reinterpret_cast<uint64_t*>(given->scratch);
  const uint64_t data = given->scratch + CM384_CUBE_KNOB_DATA_OFFSET;
  const uint64_t remote = cm384_gm_die(GetDie() ^ 1, cm384_gm_offset(data));
  for (int turn = 0; turn < 2; ++turn) {  // the second finds its code in the cache
    UnitSections(data);
    MemorySections(data, remote);
  }
  dcci(0, 0);
}
