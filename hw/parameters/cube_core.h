// Parameters of a cube core (AIC): the matrix unit and what feeds and drains its buffers. Its engines to
// global memory have an hw::Mte of their own (section cube_mte). Cycles are core cycles.
#pragma once

#include "base/text/describe.h"
#include "base/text/units.h"

namespace cm384::hw {

// Multiplications with their additions per core cycle. A die's peak follows from them: hw::peaks_of.
struct MacsPerCycle {
  int int8 = 0;
  int bf16 = 0;
  int fp32 = 0;
  int int4 = 0;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("int8", self.int8, Range{1, 1 << 20}, "multiply-adds of INT8 per core cycle");
    visit("bf16", self.bf16, Range{1, 1 << 20}, "multiply-adds of BF16 or FP16 per core cycle");
    visit("fp32", self.fp32, Range{1, 1 << 20}, "multiply-adds of FP32 per core cycle");
    visit("int4", self.int4, Range{1, 1 << 20}, "multiply-adds of INT4 per core cycle");
  }
};

struct CubeCore {
  int queue_depth = 0;
  int mmad_setup = 0;
  MacsPerCycle macs_per_cycle;
  int l0a_bytes_per_cycle = 0;
  int l0b_bytes_per_cycle = 0;
  int table_bytes_per_cycle = 0;
  int load_latency = 0;
  int fixpipe_bytes_per_cycle = 0;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("queue_depth", self.queue_depth, Range{1, 64},
          "instructions that the queue of each cube-core pipe holds");
    visit("mmad_setup", self.mmad_setup, Range{0, 1000},
          "cycles of an MMAD on top of those that its steps of 16 rows x 32 B x 16 columns take at the rate "
          "of macs_per_cycle");
    visit("macs_per_cycle", self.macs_per_cycle);
    visit("l0a_bytes_per_cycle", self.l0a_bytes_per_cycle, Range{32, 4096}, "rate of MTE1 from L1 to L0A");
    visit("l0b_bytes_per_cycle", self.l0b_bytes_per_cycle, Range{32, 4096}, "rate of MTE1 from L1 to L0B");
    visit("table_bytes_per_cycle", self.table_bytes_per_cycle, Range{1, 4096},
          "rate from L1 to the bias table and the fixpipe buffer");
    visit("load_latency", self.load_latency, Range{0, 1000},
          "cycles from the last byte of a load on MTE1 until it is visible");
    visit("fixpipe_bytes_per_cycle", self.fixpipe_bytes_per_cycle, Range{1, 4096},
          "rate of FIX from L0C to global memory, in result bytes, rounded up to sectors of 128 B");
  }
};

}  // namespace cm384::hw
