// Parameters of a vector core (AIV): instruction queues, cost of vector instructions, and the MTE engines
// that move data between global memory and the UBuffer. Cycles are core cycles.
#pragma once

#include <string>

#include "base/text/describe.h"
#include "base/text/units.h"

namespace cm384::hw {

// Cost of one class of vector instructions: head (only when the pipe was empty) + slope a repeat of 256 B +
// tail (before whatever depends on the result).
struct VectorTiming {
  int head = 0;
  double slope = 0;
  int tail = 0;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("head", self.head, Range{1, 200}, "cycles from issue to the first repeat in an empty pipe");
    visit("slope", self.slope, Range{0.01, 200.0}, "cycles per repeat, rounded to 1/100 cycle");
    visit("tail", self.tail, Range{0, 200}, "cycles from the last repeat until the result is visible");
  }
};

struct VectorCore {
  int queue_depth = 0;
  VectorTiming add, mul, adds, muls, max, maxs, div, unary, exp, ln, sqrt, rsqrt, logic, copy, madd, shift;
  VectorTiming cast, reduce_add, reduce_max, group_add, group_max, compare, compares, select, gather_mask;
  VectorTiming broadcast, gather, merge;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("queue_depth", self.queue_depth, Range{1, 64},
          "instructions that the queue of each pipe holds (V, MTE2, MTE3)");
    visit("add", self.add);                  // VADD, VSUB
    visit("mul", self.mul);                  // VMUL
    visit("adds", self.adds);                // VADDS
    visit("muls", self.muls);                // VMULS
    visit("max", self.max);                  // VMAX, VMIN
    visit("maxs", self.maxs);                // VMAXS, VMINS
    visit("div", self.div);                  // VDIV
    visit("unary", self.unary);              // VABS, VRELU
    visit("exp", self.exp);                  // VEXP
    visit("ln", self.ln);                    // VLN
    visit("sqrt", self.sqrt);                // VSQRT
    visit("rsqrt", self.rsqrt);              // VRSQRT, VREC
    visit("logic", self.logic);              // VAND, VOR, VNOT
    visit("copy", self.copy);                // VDUP, VCOPY
    visit("madd", self.madd);                // VMADD, VAXPY
    visit("shift", self.shift);              // VSHLS, VSHRS
    visit("cast", self.cast);                // all of class CONVERT
    visit("reduce_add", self.reduce_add);    // VCADD
    visit("reduce_max", self.reduce_max);    // VCMAX, VCMIN
    visit("group_add", self.group_add);      // VCGADD
    visit("group_max", self.group_max);      // VCGMAX, VCGMIN
    visit("compare", self.compare);          // VCMP_*
    visit("compares", self.compares);        // VCMPS_*
    visit("select", self.select);            // VSEL
    visit("gather_mask", self.gather_mask);  // VGATHER_MASK
    visit("broadcast", self.broadcast);      // VBRCB
    visit("gather", self.gather);            // VGATHER, VSORT32, VTRANSPOSE
    visit("merge", self.merge);              // VMERGE: a repeat is 32 structures that come out
  }
};

// The two MTE engines of a vector core: MTE2 reads global memory into the UBuffer, MTE3 writes it back.
struct Mte {
  int read_setup = 0, write_setup = 0;
  double read_instruction_overhead = 0, write_instruction_overhead = 0;
  double read_request_interval = 0, write_request_interval = 0;
  Bytes local_read_window, local_write_window;
  int remote_reads = 0, remote_writes = 0;
  std::string remote_partial_write;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("read_setup", self.read_setup, Range{0, 10'000},
          "cycles from the start of an MTE2 instruction to its first request in an idle engine");
    visit("write_setup", self.write_setup, Range{0, 10'000},
          "cycles from the start of an MTE3 instruction to its first request in an idle engine");
    visit("read_instruction_overhead", self.read_instruction_overhead, Range{0.0, 1000.0},
          "MTE2 request-issue cycles per instruction on top of those of its requests");
    visit("write_instruction_overhead", self.write_instruction_overhead, Range{0.0, 1000.0},
          "MTE3 request-issue cycles per instruction on top of those of its requests");
    visit("read_request_interval", self.read_request_interval, Range{1.0, 1000.0},
          "cycles from one request of MTE2 (at most 512 B) to the next");
    visit("write_request_interval", self.write_request_interval, Range{1.0, 1000.0},
          "cycles from one request of MTE3 (at most 512 B) to the next");
    visit("local_read_window", self.local_read_window, Range{Bytes{512}, Bytes{262'144}},
          "maximum outstanding bytes of MTE2 reads from the local die");
    visit("local_write_window", self.local_write_window, Range{Bytes{512}, Bytes{262'144}},
          "maximum outstanding bytes of MTE3 writes to the local die");
    visit("remote_reads", self.remote_reads, Range{1, 4096},
          "maximum outstanding MTE2 requests to memory outside the die");
    visit("remote_writes", self.remote_writes, Range{1, 4096},
          "maximum outstanding MTE3 requests to memory outside the die");
    visit("remote_partial_write", self.remote_partial_write, OneOf{{"merge", "byte-enable"}},
          "how a remote write handles a partly covered 32 B block: MTE3 reads the block and writes it back "
          "whole, or the packet carries byte enables");
  }
};

}  // namespace cm384::hw
