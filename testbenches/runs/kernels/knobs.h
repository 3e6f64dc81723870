/* Sections of kernel `knobs`: each makes one mechanism of a core dear, and leaves its core cycles (the system
 * counter's ticks for CM384_KNOB_SYS_COUNT) in word n of its results. Plain C, read by host and kernel. */
#ifndef CM384_TESTBENCHES_SYSTEM_KERNELS_KNOBS_H
#define CM384_TESTBENCHES_SYSTEM_KERNELS_KNOBS_H

enum cm384_knob_section {
  /* One vector instruction each, waited for, in the order of hw/parameters/vector_core.h. */
  CM384_KNOB_VECTOR = 0,
  CM384_KNOB_LOADS = 32, /* chain of loads that hit */
  CM384_KNOB_MULTIPLY,
  CM384_KNOB_DIVIDE,
  CM384_KNOB_FLOAT,
  CM384_KNOB_FLOAT_DIVIDE,
  CM384_KNOB_FLOAT_ROOT,
  CM384_KNOB_TAKEN,      /* backward branches */
  CM384_KNOB_MISPREDICT, /* forward branches, taken */
  CM384_KNOB_TRAP,
  CM384_KNOB_CODE,      /* two pieces of 8 KiB of code, 32 KiB apart, in turn */
  CM384_KNOB_CODE_COLD, /* their first pass */
  CM384_KNOB_DATA,      /* two pieces of 8 KiB of data, 32 KiB apart, in turn */
  CM384_KNOB_DATA_COLD,
  CM384_KNOB_UBUFFER_LOAD,
  CM384_KNOB_UBUFFER_STORE,
  CM384_KNOB_CLEAN,
  CM384_KNOB_QUEUE, /* until 40 vector instructions are pushed */
  CM384_KNOB_READ,  /* one read of 512 B of the own die */
  CM384_KNOB_READS, /* 16 reads of 8 KiB */
  CM384_KNOB_WRITE,
  CM384_KNOB_WRITES,
  CM384_KNOB_SHORT_READS, /* 64 reads of 128 B */
  CM384_KNOB_SHORT_WRITES,
  CM384_KNOB_CROSS_CORE,
  CM384_KNOB_BARRIER,
  CM384_KNOB_SYS_COUNT,
  CM384_KNOB_SECTIONS
};
/* Every block leaves its cycles of the memory section 64 B apart behind the first results. */
#define CM384_KNOB_MEMORY_OFFSET 4096
#define CM384_KNOB_DATA_OFFSET 65536

#endif
