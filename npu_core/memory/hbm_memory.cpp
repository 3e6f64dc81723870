#include "npu_core/memory/hbm_memory.h"

#include <algorithm>

namespace cm384::npu {

HbmMemory::HbmMemory(const hw::Hbm& p)
    : mapping_(p),
      timing_(p),
      clock_(p.clock),
      controller_latency_(p.controller_latency),
      burst_bytes_(static_cast<std::uint32_t>(p.burst.count)),
      queue_depth_(static_cast<std::uint32_t>(p.write_queue)) {}

HbmMemory::Controller& HbmMemory::controller(std::uint32_t channel) {
  if (controllers_.empty()) {
    controllers_.reserve(channels());
    for (std::uint32_t c = 0; c < channels(); ++c) controllers_.push_back({HbmChannel(timing_, c)});
    writes_.resize(std::size_t{channels()} * queue_depth_);
  }
  return controllers_[channel];
}

std::uint32_t HbmMemory::bursts(std::uint64_t offset, std::uint32_t bytes) const {
  const auto first = static_cast<std::uint32_t>(offset % burst_bytes_);
  return (first + bytes + burst_bytes_ - 1) / burst_bytes_;
}

std::int64_t HbmMemory::write_out(Controller& c, const Write& w, std::int64_t at) {
  return c.channel.schedule(timing_, std::max(at, w.at), {w.bank, timing_.train_banks, w.row, w.bursts, true})
      .column;
}

// While the channel was idle for longer than a line takes, its controller wrote out what had gathered.
void HbmMemory::drain_idle(Controller& c, std::uint32_t channel, std::int64_t at) {
  const std::int64_t patience = timing_.ccd_s * 16;
  std::uint32_t done = 0;
  Write* queue_of = queue(channel);
  while (done < c.waiting) {
    const std::int64_t start = std::max(c.channel.last_column(), queue_of[done].at) + patience;
    if (start >= at) break;
    write_out(c, queue_of[done], start);
    ++done;
  }
  if (done == 0) return;
  std::copy(queue_of + done, queue_of + c.waiting, queue_of);
  c.waiting -= done;
}

inline HbmMemory::Arrived HbmMemory::arrive(std::uint64_t offset, Time at) {
  const HbmLocation where = mapping_.locate(offset);
  Controller& c = controller(where.channel);
  const Time there{at.ps + controller_latency_.ps / 2};
  const std::int64_t cycle = clock_.tick_at_or_after(there);
  if (c.waiting != 0) drain_idle(c, where.channel, cycle);
  return {where, c, cycle};
}

Time HbmMemory::read(std::uint64_t offset, std::uint32_t bytes, Time at) {
  read_bytes_ += std::uint64_t{bursts(offset, bytes)} * burst_bytes_;
  const auto [where, c, cycle] = arrive(offset, at);
  const HbmChannel::Schedule s = c.channel.schedule(
      timing_, cycle, {where.bank, timing_.train_banks, where.row, bursts(offset, bytes), false});
  return {clock_.start(s.data_end).ps + (controller_latency_.ps - controller_latency_.ps / 2)};
}

Time HbmMemory::write(std::uint64_t offset, std::uint32_t bytes, Time at) {
  written_bytes_ += std::uint64_t{bursts(offset, bytes)} * burst_bytes_;
  const auto [where, c, cycle] = arrive(offset, at);
  Write* queue_of = queue(where.channel);
  if (c.waiting == queue_depth_) {
    for (std::uint32_t i = 0; i < c.waiting; ++i) {
      const std::int64_t column = write_out(c, queue_of[i], cycle);
      if (i == 0) c.drained_from = column;
    }
    c.waiting = 0;
  }
  queue_of[c.waiting++] = {cycle, where.bank, where.row, bursts(offset, bytes)};
  return std::max(at, clock_.start(c.drained_from));
}

HbmChannelStatistics HbmMemory::statistics(std::uint32_t channel) const {
  return controllers_.empty() ? HbmChannelStatistics{} : controllers_[channel].channel.statistics();
}

HbmChannelStatistics HbmMemory::total() const {
  HbmChannelStatistics sum;
  for (const Controller& c : controllers_) {
    const HbmChannelStatistics& s = c.channel.statistics();
    sum.reads += s.reads;
    sum.writes += s.writes;
    sum.row_hits += s.row_hits;
    sum.row_misses += s.row_misses;
    sum.row_conflicts += s.row_conflicts;
    sum.refreshes_met += s.refreshes_met;
    sum.backfills += s.backfills;
    sum.busy_cycles += s.busy_cycles;
  }
  return sum;
}

Time HbmMemory::busy(std::uint32_t channel) const {
  return clock_.start(statistics(channel).busy_cycles);
}

}  // namespace cm384::npu
