// A die's HBM: all pseudo-channels, the address mapping and the controller's write queues.
#pragma once

#include <cstdint>
#include <vector>

#include "base/engine/statistics.h"
#include "hw/parameters/memory.h"
#include "npu_core/memory/address_mapping.h"
#include "npu_core/memory/hbm_channel.h"

namespace cm384::npu {

class HbmMemory {
 public:
  // Throws InputError when the geometry does not fit the capacity. Channel state is made on first access.
  explicit HbmMemory(const hw::Hbm& parameters);

  // `bytes` within one 512 B line, from `offset`; whole bursts are moved. Returns when the data is back at
  // the L2.
  Time read(std::uint64_t offset, std::uint32_t bytes, Time at);
  // Returns when the write queue of the channel takes it; the write itself goes out when the queue is full or
  // the channel idle.
  Time write(std::uint64_t offset, std::uint32_t bytes, Time at);

  std::uint32_t channels() const { return mapping_.channels(); }
  const AddressMapping& mapping() const { return mapping_; }
  // Whole bursts moved, writes counted when they enter a write queue.
  std::uint64_t read_bytes() const { return read_bytes_; }
  std::uint64_t written_bytes() const { return written_bytes_; }
  // Counters of one channel; zero before the first access.
  HbmChannelStatistics statistics(std::uint32_t channel) const;
  // Sum over all channels.
  HbmChannelStatistics total() const;
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const;
  // Time the data bus of a channel moved data.
  Time busy(std::uint32_t channel) const;

 private:
  struct Write {
    std::int64_t at = 0;
    std::uint32_t bank = 0, row = 0, bursts = 0;
  };
  struct Controller {
    HbmChannel channel;
    std::uint32_t waiting = 0;      // writes in the queue
    std::int64_t drained_from = 0;  // first column of the last drain: from then on the queue has room
  };

  Controller& controller(std::uint32_t channel);
  Write* queue(std::uint32_t channel) { return &writes_[std::size_t{channel} * queue_depth_]; }
  std::int64_t write_out(Controller& c, const Write& w, std::int64_t at);
  void drain_idle(Controller& c, std::uint32_t channel, std::int64_t at);
  // A request at its channel, after queued writes have used the time that was idle until then.
  struct Arrived {
    HbmLocation where;
    Controller& controller;
    std::int64_t cycle;
  };
  Arrived arrive(std::uint64_t offset, Time at);
  std::uint32_t bursts(std::uint64_t offset, std::uint32_t bytes) const;

  AddressMapping mapping_;
  HbmTiming timing_;
  Clock clock_;
  Time controller_latency_;
  std::uint32_t burst_bytes_;
  std::uint32_t queue_depth_;
  std::vector<Controller> controllers_;
  std::vector<Write> writes_;
  std::uint64_t read_bytes_ = 0, written_bytes_ = 0;
};

}  // namespace cm384::npu
