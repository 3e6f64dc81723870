// The task scheduler of a die: what a stream's entries cost, and the stages of a kernel's launch. A
// profiler's task duration runs from an entry's turn at the head of its stream to its completion.
#pragma once

#include "base/text/describe.h"

namespace cm384::hw {

struct Scheduler {
  int queue_depth = 0;
  int slots = 0;
  Time entry_interval{};
  Time entry_latency{};
  Time kernel_setup{};
  Time block_interval{};
  Time block_head{};
  Time block_tail{};
  Time kernel_teardown{};
  Time completion_latency{};
  int graph_lookahead = 0;
  Time graph_block_head{};
  Time graph_block_tail{};
  Bytes graph_preload{};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("queue_depth", self.queue_depth, Range{2, 65'536},
          "entries of 64 B in the submission queue of each stream, and in its completion queue");
    visit("slots", self.slots, Range{1, 4096},
          "entries in flight, over all streams; an entry waiting for an event takes no slot");
    visit("entry_interval", self.entry_interval, Range{Time{0}, 100_us},
          "minimum time between the decoding of two entries");
    visit("entry_latency", self.entry_latency, Range{Time{0}, 1_ms},
          "from the arrival of an entry from memory to its decoding");
    visit("kernel_setup", self.kernel_setup, Range{Time{0}, 1_ms},
          "from the decoding of a kernel entry to the dispatch of its first block");
    visit("block_interval", self.block_interval, Range{Time{0}, 100_us},
          "minimum time between two blocks dispatched to cores");
    visit("block_head", self.block_head, Range{Time{0}, 1_ms},
          "from the dispatch of a block to its first instruction");
    visit("block_tail", self.block_tail, Range{Time{0}, 1_ms},
          "from the last retired instruction of a block until its core is free");
    visit("kernel_teardown", self.kernel_teardown, Range{Time{0}, 1_ms},
          "from the release of a kernel's last core to the end of the kernel");
    visit("completion_latency", self.completion_latency, Range{Time{0}, 1_ms},
          "from the end of an entry's work to its completion, when the next entry of the stream is taken");
    visit(
        "graph_lookahead", self.graph_lookahead, Range{1, 64},
        "kernels of a captured graph that are fetched, decoded and set up while one of the same stream runs");
    visit("graph_block_head", self.graph_block_head, Range{Time{0}, 1_ms},
          "block_head of a captured graph's kernel, which was set up ahead");
    visit("graph_block_tail", self.graph_block_tail, Range{Time{0}, 1_ms},
          "block_tail of a captured graph's kernel, whose teardown overlaps the next task");
    visit("graph_preload", self.graph_preload, Range{Bytes{0}, 1_MiB},
          "code of a captured graph's kernel that is in the instruction caches of its cores when it begins");
  }
};

}  // namespace cm384::hw
