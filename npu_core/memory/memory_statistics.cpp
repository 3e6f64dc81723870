// Declares the counters of a die's memory.
#include "npu_core/memory/die_memory.h"

namespace cm384::npu {
namespace {

using ChannelCounter = std::uint64_t (*)(const HbmChannelStatistics& statistics);

struct ChannelStatistic {
  const char* name;
  const char* unit;
  const char* sentence;
  ChannelCounter counter;
};

constexpr ChannelStatistic kChannel[] = {
    {"reads", "trains", "of read bursts, one per request of a line", [](const auto& s) { return s.reads; }},
    {"writes", "trains", "of write bursts that left the write queue", [](const auto& s) { return s.writes; }},
    {"row_hits", "banks", "of a train that found their row open", [](const auto& s) { return s.row_hits; }},
    {"row_misses", "banks", "of a train that were closed", [](const auto& s) { return s.row_misses; }},
    {"row_conflicts", "banks", "of a train that had another row open",
     [](const auto& s) { return s.row_conflicts; }},
    {"refreshes_met", "refreshes", "that closed a row or delayed a train",
     [](const auto& s) { return s.refreshes_met; }},
    {"backfills", "trains", "that went before an earlier one which waited for its bank",
     [](const auto& s) { return s.backfills; }},
    {"busy_cycles", "cycles", "of the channel's clock in which the data bus moved data",
     [](const auto& s) { return static_cast<std::uint64_t>(s.busy_cycles); }},
};

}  // namespace

void HbmMemory::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const {
  to.declare(at, "read_bytes", "B", "read, whole bursts", read_bytes_);
  to.declare(at, "written_bytes", "B", "taken into write queues, whole bursts", written_bytes_);
  for (std::uint32_t c = 0; c < channels(); ++c) {
    const auto path = at.part("channel", c);
    for (const ChannelStatistic& s : kChannel) {
      to.declare(path, s.name, s.unit, s.sentence,
                 [this, c, counter = s.counter] { return counter(statistics(c)); });
    }
  }
}

void DieMemory::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const {
  const MemoryStatistics& s = statistics_;
  const auto memory = at.part("memory"), l2 = at.part("l2");
  to.declare(memory, "reads", "requests",
             "to the die's memory, from cores and from outside, at most 512 B each", s.reads);
  to.declare(memory, "writes", "requests", "to the die's memory, from cores and from outside", s.writes);
  to.declare(memory, "atomics", "requests", "atomic adds at the L2 slices", s.atomics);
  to.declare(memory, "read_bytes", "B", "asked for by read requests", s.read_bytes);
  to.declare(memory, "written_bytes", "B", "brought by write and atomic requests", s.written_bytes);
  to.declare(memory, "realigned", "requests", "of runs that start inside a sector", s.realigned);
  to.declare(l2, "hits", "sectors", "asked for that were in L2", s.l2_hits);
  to.declare(l2, "misses", "sectors", "asked for that were not in L2", s.l2_misses);
  to.declare(l2, "write_backs", "lines", "evicted dirty", s.write_backs);
  to.declare(l2, "line_waits", "requests", "that waited for another requester's hold of a line",
             s.line_waits);
  to.declare(l2, "merged", "requests", "that met a line on its way from HBM", s.merged);
  to.declare(l2, "miss_waits", "requests", "that missed while their slice waited for as many lines as it can",
             s.miss_waits);
  hbm_.declare_statistics(to, at.part("hbm"));
}

}  // namespace cm384::npu
