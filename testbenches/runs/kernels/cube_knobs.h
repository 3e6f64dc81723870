/* Sections of kernel `cube_knobs`, which runs on one cube core: core cycles of each in word n of its results.
 * Plain C, read by host and kernel. */
#ifndef CM384_TESTBENCHES_SYSTEM_KERNELS_CUBE_KNOBS_H
#define CM384_TESTBENCHES_SYSTEM_KERNELS_CUBE_KNOBS_H

enum cm384_cube_knob_section {
  CM384_CUBE_KNOB_MMAD,     /* 16 of INT8 */
  CM384_CUBE_KNOB_MMAD_F32, /* 16 of FP32 */
  CM384_CUBE_KNOB_MMAD_F16, /* 16 of FP16 */
  CM384_CUBE_KNOB_MMAD_S4,  /* 16 of INT4 */
  CM384_CUBE_KNOB_LOAD_A,   /* 8 of 16 KiB */
  CM384_CUBE_KNOB_LOAD_B,
  CM384_CUBE_KNOB_TABLE,
  CM384_CUBE_KNOB_QUEUE,       /* until 40 MMADs are pushed */
  CM384_CUBE_KNOB_FIX,         /* 64 rows of 512 B */
  CM384_CUBE_KNOB_READ,        /* one read of 512 B of the own die */
  CM384_CUBE_KNOB_READS,       /* 16 reads of 8 KiB */
  CM384_CUBE_KNOB_SHORT_READS, /* 64 reads of 128 B */
  CM384_CUBE_KNOB_WRITE,
  CM384_CUBE_KNOB_WRITES,
  CM384_CUBE_KNOB_SHORT_WRITES,
  CM384_CUBE_KNOB_REMOTE_READS, /* 64 KiB of the sibling die */
  CM384_CUBE_KNOB_REMOTE_WRITES,
  CM384_CUBE_KNOB_REMOTE_PARTIAL, /* 100 B to the sibling die */
  CM384_CUBE_KNOB_SECTIONS
};
#define CM384_CUBE_KNOB_DATA_OFFSET 65536

#endif
