// The task scheduler of a die: what a stream's entries cost, and the stages of a kernel's launch. A
// profiler's task duration runs from an entry's turn at the head of its stream to its completion.
#pragma once

#include "hw/parameters/describe.h"

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

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("queue_depth", self.queue_depth, Range{2, 65'536},
          "entries of 64 B in a stream's submission queue, and in its completion queue");
    visit("slots", self.slots, Range{1, 4096},
          "entries under way at a time, of all streams; one that waits for an event takes none");
    visit("entry_interval", self.entry_interval, Range{Time{0}, 100_us},
          "shortest time between two entries being decoded");
    visit("entry_latency", self.entry_latency, Range{Time{0}, 1_ms},
          "from an entry's arrival from memory to its decoding");
    visit("kernel_setup", self.kernel_setup, Range{Time{0}, 1_ms},
          "from a kernel entry's decoding to the dispatch of its first block");
    visit("block_interval", self.block_interval, Range{Time{0}, 100_us},
          "shortest time between two blocks dispatched to cores");
    visit("block_head", self.block_head, Range{Time{0}, 1_ms},
          "from a block's dispatch to its first instruction");
    visit("block_tail", self.block_tail, Range{Time{0}, 1_ms},
          "from a block's last retired instruction to its core being free");
    visit("kernel_teardown", self.kernel_teardown, Range{Time{0}, 1_ms},
          "from a kernel's last core being free to the kernel's being done");
    visit("completion_latency", self.completion_latency, Range{Time{0}, 1_ms},
          "from an entry's work being done to its completion, when the stream's next entry has its turn");
  }
};

}  // namespace cm384::hw
