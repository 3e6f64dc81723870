// Makes every mechanism of a core dear in turn: what the live-knob tests read. See knobs.h.
#include "testbenches/runs/kernels/knobs.h"

#include "firmware/abi/kernel.h"
#include "kernel_operator.h"

using namespace AscendC;

namespace {

uint64_t* results;
uint64_t started;
// Two pieces of 8 KiB, 32 KiB apart, in the core's private memory.
alignas(65536) volatile uint64_t table[40 * 1024 / 8];

CM384_INLINE void Start() {
  PipeBarrier<PIPE_ALL>();
  started = GetCoreCycle();
}
CM384_INLINE void Stop(unsigned section) {
  results[section] = GetCoreCycle() - started;
}
CM384_INLINE void StopDrained(unsigned section) {
  PipeBarrier<PIPE_ALL>();
  Stop(section);
}

template <int Class, int Operation, int Type = CM384_F32>
CM384_INLINE void OneVector(unsigned number, uint64_t operand = 0x10000) {
  Start();
  cm384::pipe_instruction<Class, Operation, Type>(OffsetPair(0, 0x8000), operand,
                                                  RepeatConfig(4, 1, 1, 1, 8, 8, 8));
  StopDrained(CM384_KNOB_VECTOR + number);
}

void VectorSections() {
  OneVector<CM384_CLASS_VECTOR, CM384_VADD>(0);
  OneVector<CM384_CLASS_VECTOR, CM384_VMUL>(1);
  OneVector<CM384_CLASS_VECTOR, CM384_VADDS>(2);
  OneVector<CM384_CLASS_VECTOR, CM384_VMULS>(3);
  OneVector<CM384_CLASS_VECTOR, CM384_VMAX>(4);
  OneVector<CM384_CLASS_VECTOR, CM384_VMAXS>(5);
  OneVector<CM384_CLASS_VECTOR, CM384_VDIV>(6);
  OneVector<CM384_CLASS_VECTOR, CM384_VABS>(7);
  OneVector<CM384_CLASS_VECTOR, CM384_VEXP>(8);
  OneVector<CM384_CLASS_VECTOR, CM384_VLN>(9);
  OneVector<CM384_CLASS_VECTOR, CM384_VSQRT>(10);
  OneVector<CM384_CLASS_VECTOR, CM384_VRSQRT>(11);
  OneVector<CM384_CLASS_VECTOR, CM384_VAND>(12);
  OneVector<CM384_CLASS_VECTOR, CM384_VCOPY>(13);
  OneVector<CM384_CLASS_VECTOR, CM384_VMADD>(14);
  OneVector<CM384_CLASS_VECTOR, CM384_VSHLS, CM384_S32>(15, 3);
  OneVector<CM384_CLASS_CONVERT, CM384_S32_TO_F32, CM384_RINT>(16, 0);
  OneVector<CM384_CLASS_REDUCE, CM384_VCADD>(17, 0);
  OneVector<CM384_CLASS_REDUCE, CM384_VCMAX>(18, 0);
  OneVector<CM384_CLASS_REDUCE, CM384_VCGADD>(19, 0);
  OneVector<CM384_CLASS_REDUCE, CM384_VCGMAX>(20, 0);
  OneVector<CM384_CLASS_REDUCE, CM384_VCMP_LT>(21);
  OneVector<CM384_CLASS_REDUCE, CM384_VCMPS_LT>(22, 0);
  OneVector<CM384_CLASS_REDUCE, CM384_VSEL>(23, OffsetPair(0x10000, 0x18000));
  OneVector<CM384_CLASS_REDUCE, CM384_VGATHER_MASK>(24, 1);
  OneVector<CM384_CLASS_REDUCE, CM384_VBRCB>(25, 0);
  OneVector<CM384_CLASS_REDUCE, CM384_VGATHER>(26, 0x10000);
  Start();
  cm384::pipe_instruction<CM384_CLASS_REDUCE, CM384_VMERGE, CM384_F32>(OffsetPair(0, 0x8000), 0x10000,
                                                                       32 | 32 << 12);
  StopDrained(CM384_KNOB_VECTOR + 27);
}

#define CM384_REPEAT(text) \
  asm volatile(".rept 32\n" text "\n.endr" ::: "t0", "t1", "t2", "ft0", "ft1", "memory")

void ScalarSections() {
  static uint64_t here;
  here = reinterpret_cast<uint64_t>(&here);
  asm volatile("mv t0, %0" ::"r"(&here) : "t0");
  Start();
  asm volatile("mv t0, %0\n.rept 32\nld t0, 0(t0)\n.endr" ::"r"(&here) : "t0", "memory");
  Stop(CM384_KNOB_LOADS);
  Start();
  CM384_REPEAT("mul t0, t0, t0");
  Stop(CM384_KNOB_MULTIPLY);
  Start();
  CM384_REPEAT("div t0, t0, t0");
  Stop(CM384_KNOB_DIVIDE);
  Start();
  CM384_REPEAT("fadd.s ft0, ft0, ft0");
  Stop(CM384_KNOB_FLOAT);
  Start();
  CM384_REPEAT("fdiv.s ft0, ft0, ft0");
  Stop(CM384_KNOB_FLOAT_DIVIDE);
  Start();
  CM384_REPEAT("fsqrt.s ft0, ft0");
  Stop(CM384_KNOB_FLOAT_ROOT);
  Start();
  asm volatile("li t0, 100\n1: addi t0, t0, -1\nbnez t0, 1b" ::: "t0");
  Stop(CM384_KNOB_TAKEN);
  Start();
  CM384_REPEAT("beqz zero, 1f\nnop\n1:");
  Stop(CM384_KNOB_MISPREDICT);
  asm volatile(
      "la t0, 2f\ncsrw mtvec, t0\nj 3f\n"
      ".balign 4\n2: csrr t1, mepc\naddi t1, t1, 4\ncsrw mepc, t1\nmret\n3:" ::
          : "t0", "t1", "memory");
  Start();
  CM384_REPEAT("ecall");
  Stop(CM384_KNOB_TRAP);
}

// Calls both pieces of code `turns` times in turn.
[[gnu::noinline, gnu::aligned(64)]] void RunCode(uint64_t turns) {
  asm volatile(
      ".option push\n.option norvc\n"
      "mv t0, %0\n"
      "1: j 2f\n"
      ".balign 4096\n2: .rept 2047\nnop\n.endr\nj 3f\n"
      ".skip 24576\n3: .rept 2046\nnop\n.endr\n"
      "addi t0, t0, -1\n"
      "beqz t0, 4f\n"
      "la t1, 2b\njr t1\n4:\n"
      ".option pop" ::"r"(turns)
      : "t0", "t1");
}

CM384_INLINE void WalkData(unsigned turns) {
  for (unsigned turn = 0; turn < turns; ++turn) {
    for (unsigned piece = 0; piece < 2; ++piece) {
      for (unsigned i = 0; i < 8192; i += 64) (void)table[(piece * 32768 + i) / 8];
    }
  }
}

void CacheSections() {
  Start();
  RunCode(1);
  Stop(CM384_KNOB_CODE_COLD);
  Start();
  RunCode(3);
  Stop(CM384_KNOB_CODE);
  Start();
  WalkData(1);
  Stop(CM384_KNOB_DATA_COLD);
  Start();
  WalkData(3);
  Stop(CM384_KNOB_DATA);
  auto* local = reinterpret_cast<volatile uint32_t*>(0x10000000ul);
  uint32_t sum = 0;
  Start();
  for (unsigned i = 0; i < 32; ++i) sum += local[i];
  Stop(CM384_KNOB_UBUFFER_LOAD);
  Start();
  for (unsigned i = 0; i < 32; ++i) local[i] = sum;
  Stop(CM384_KNOB_UBUFFER_STORE);
  Start();
  dcci(reinterpret_cast<uint64_t>(&table[0]), 16384);
  Stop(CM384_KNOB_CLEAN);
}

template <int Operation>
CM384_INLINE void Copies(unsigned section, uint64_t memory, unsigned count, uint64_t bytes) {
  Start();
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t there = memory + i * 8192;
    if constexpr (Operation == CM384_MTE_GM_TO_UB) {
      cm384::pipe_instruction<CM384_CLASS_MTE, Operation>(0, there, bytes | 1ul << 32);
    } else {
      cm384::pipe_instruction<CM384_CLASS_MTE, Operation>(there, 0, bytes | 1ul << 32);
    }
  }
  StopDrained(section);
}

void PipeSections(uint64_t memory) {
  Start();
  for (unsigned i = 0; i < 40; ++i) {
    cm384::pipe_instruction<CM384_CLASS_VECTOR, CM384_VADD>(OffsetPair(0, 0x8000), 0x10000,
                                                            RepeatConfig(100, 1, 1, 1, 8, 8, 8));
  }
  Stop(CM384_KNOB_QUEUE);
  Copies<CM384_MTE_GM_TO_UB>(CM384_KNOB_READ, memory, 1, 512);
  Copies<CM384_MTE_GM_TO_UB>(CM384_KNOB_READS, memory + (1 << 20), 16, 8192);
  Copies<CM384_MTE_UB_TO_GM>(CM384_KNOB_WRITE, memory, 1, 512);
  Copies<CM384_MTE_UB_TO_GM>(CM384_KNOB_WRITES, memory + (2 << 20), 16, 8192);
  Copies<CM384_MTE_GM_TO_UB>(CM384_KNOB_SHORT_READS, memory + (1 << 20), 16, 128);
  Copies<CM384_MTE_UB_TO_GM>(CM384_KNOB_SHORT_WRITES, memory + (2 << 20), 16, 128);
}

// Reads, writes and adds of all kinds of places: rows of one bank, shared lines, unaligned runs, a wide span.
void MemorySection(uint64_t memory, uint64_t bytes, uint64_t block) {
  uint64_t x = 11 + block * 977;
  for (unsigned i = 0; i < 192; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    const uint64_t pick = x >> 20;
    const unsigned kind = static_cast<unsigned>(x >> 60) & 3;
    const uint64_t where = kind == 0   ? pick % 64 * 512
                           : kind == 1 ? pick % 256 * (1u << 19)
                                       : pick % (bytes / 512) * 512;
    const uint64_t size = kind == 3 ? 128 : 512;
    const unsigned what = static_cast<unsigned>(x >> 56) & 7;
    if (what < 5) {
      cm384::pipe_instruction<CM384_CLASS_MTE, CM384_MTE_GM_TO_UB>(0, memory + where + (what == 0 ? 4 : 0),
                                                                   size | 1ul << 32);
    } else if (what < 7) {
      cm384::pipe_instruction<CM384_CLASS_MTE, CM384_MTE_UB_TO_GM>(memory + where, 0x8000, size | 1ul << 32);
    } else {
      cm384::pipe_instruction<CM384_CLASS_MTE, CM384_MTE_UB_TO_GM_ADD_S32>(memory + where, 0x8000,
                                                                           64 | 1ul << 32);
    }
    if (i % 8 == 0) PipeBarrier<PIPE_ALL>();
  }
  PipeBarrier<PIPE_ALL>();
}

}  // namespace

extern "C" void kernel_main(GM_ADDR arguments) {
  const auto* given = reinterpret_cast<const cm384_kernel*>(arguments);
  const uint64_t block = static_cast<uint64_t>(GetBlockIdx());
  results = reinterpret_cast<uint64_t*>(given->scratch);
  const uint64_t memory = given->scratch + CM384_KNOB_DATA_OFFSET;
  if (block == 0) {
    for (unsigned turn = 0; turn < 2; ++turn) {  // the second finds its code in the cache
      VectorSections();
      ScalarSections();
    }
    CacheSections();
    PipeSections(memory);
    const int64_t ticks = GetSystemCycle();
    asm volatile("li t0, 4000\n1: addi t0, t0, -1\nbnez t0, 1b" ::: "t0");
    results[CM384_KNOB_SYS_COUNT] = static_cast<uint64_t>(GetSystemCycle() - ticks);
  }
  SyncAll();
  const uint64_t start = GetCoreCycle();
  SyncAll();
  const uint64_t barrier = GetCoreCycle() - start;
  uint64_t cross = 0;
  if (block < 2) {
    const uint64_t set = GetCoreCycle();
    CrossCoreSetFlag<1, PIPE_MTE3>(3);
    CrossCoreWaitFlag(3);
    cross = GetCoreCycle() - set;
  }
  SyncAll();
  const uint64_t begin = GetCoreCycle();
  MemorySection(memory, given->scratch_bytes - CM384_KNOB_DATA_OFFSET - 4096, block);
  const uint64_t cycles = GetCoreCycle() - begin;
  if (block == 0) {
    results[CM384_KNOB_BARRIER] = barrier;
    results[CM384_KNOB_CROSS_CORE] = cross;
  }
  *reinterpret_cast<uint64_t*>(given->scratch + CM384_KNOB_MEMORY_OFFSET + block * 64) = cycles;
  dcci(0, 0);
}
