// The scalar unit of an AI core: latencies in core cycles, caches.
#pragma once

#include <string>

#include "base/text/describe.h"

namespace cm384::hw {

struct ScalarCoreParameters {
  int load_use = 0;
  int multiply = 0;
  int divide = 0;
  int float_operation = 0;
  int float_divide = 0;
  int float_square_root = 0;
  int taken_branch = 0;
  int branch_mispredict = 0;
  int trap = 0;
  Bytes instruction_cache{};
  int instruction_cache_ways = 0;
  Bytes instruction_cache_line{};
  std::string instruction_cache_relaunch;
  int instruction_prefetch = 0;
  std::string instruction_fetch;
  Bytes data_cache{};
  int data_cache_ways = 0;
  Bytes data_cache_line{};
  int ubuffer_load = 0;
  int ubuffer_store = 0;
  int cache_clean_line = 0;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("load_use", self.load_use, Range{1, 64},
          "core cycles from the issue of a load that hits the data cache to the issue of its first consumer");
    visit("multiply", self.multiply, Range{1, 64},
          "core cycles from an integer multiply to its first consumer");
    visit("divide", self.divide, Range{1, 256}, "core cycles from an integer divide to its first consumer");
    visit(
        "float_operation", self.float_operation, Range{1, 64},
        "core cycles from a single-precision add, multiply, fused multiply-add, compare or conversion to its "
        "first consumer");
    visit("float_divide", self.float_divide, Range{1, 256},
          "core cycles from a single-precision divide to its first consumer");
    visit("float_square_root", self.float_square_root, Range{1, 256},
          "core cycles from a single-precision square root to its first consumer");
    visit("taken_branch", self.taken_branch, Range{0, 64},
          "core cycles lost at a branch or jump correctly predicted as taken");
    visit("branch_mispredict", self.branch_mispredict, Range{0, 64},
          "core cycles lost at a mispredicted branch (backward is predicted taken, forward not taken) or at "
          "an indirect jump that is not a return");
    visit("trap", self.trap, Range{0, 1000}, "core cycles lost on entry to a trap and at mret");
    visit("instruction_cache", self.instruction_cache, Range{1_KiB, 1_MiB}, "size of the instruction cache");
    visit("instruction_cache_ways", self.instruction_cache_ways, Range{1, 16},
          "ways of the instruction cache, replaced round robin");
    visit("instruction_cache_line", self.instruction_cache_line, Range{64_B, 512_B},
          "line of the instruction cache, a power of two");
    visit(
        "instruction_cache_relaunch", self.instruction_cache_relaunch, OneOf{{"kept", "dropped"}},
        "what a block finds in the instruction cache if its core last ran the same image: what that left, or "
        "nothing");
    visit("instruction_prefetch", self.instruction_prefetch, Range{0, 8},
          "lines after a missing one that are fetched with it");
    visit("instruction_fetch", self.instruction_fetch, OneOf{{"charged", "free"}},
          "whether instruction cache misses take time; free shows what a figure owes to code that is not the "
          "part's");
    visit("data_cache", self.data_cache, Range{1_KiB, 1_MiB}, "size of the write-back data cache");
    visit("data_cache_ways", self.data_cache_ways, Range{1, 16},
          "ways of the data cache, replaced round robin");
    visit("data_cache_line", self.data_cache_line, Range{64_B, 512_B},
          "line of the data cache, a power of two");
    visit("ubuffer_load", self.ubuffer_load, Range{0, 256},
          "core cycles by which a scalar load from the UBuffer takes longer than a data cache hit");
    visit("ubuffer_store", self.ubuffer_store, Range{0, 256},
          "core cycles by which a scalar store to the UBuffer takes longer than a data cache hit");
    visit("cache_clean_line", self.cache_clean_line, Range{0, 64},
          "core cycles of clean-and-invalidate per cache line that it looks up");
  }
};

}  // namespace cm384::hw
