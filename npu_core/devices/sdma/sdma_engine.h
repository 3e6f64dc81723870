// The SDMA engine of a die: copies between memories without a core, from queues of descriptors in memory.
//
// A queue's doorbell makes it ready; a free channel takes ready queues in turn, one descriptor at a time:
// fetch, parse, translate, then the copy, then the completion, then a gap. Channels take turns request by
// request at one data path, which sends a request of at most 512 B every interval. Data wait in the engine's
// buffer from the read to the write's acknowledgement; reads without data and writes without acknowledgement
// are bounded. Errors end a descriptor with a completion; the queue goes on.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/engine/probe.h"
#include "base/engine/statistics.h"
#include "firmware/abi/queue.h"
#include "hw/parameters/sdma.h"
#include "npu_core/devices/device_socket.h"
#include "npu_core/devices/sdma/queue_ring.h"

namespace cm384::npu {

// One descriptor and when it passed the stages.
struct SdmaRecord {
  std::uint16_t queue = 0;
  std::uint16_t channel = 0;
  std::uint32_t number = 0;  // the submitter's
  std::uint32_t status = 0;  // enum cm384_task_status
  std::uint64_t fault = 0;
  std::uint64_t source = 0, destination = 0, bytes = 0;
  Time rung;        // the queue's last doorbell before a channel took it
  Time taken;       // by a channel: its fetch begins
  Time fetched;     // here and parsed
  Time translated;  // both addresses; requests may leave
  Time first_data;  // of a read is in the engine: its write leaves, if the path is free
  Time last_data;   // of the last read
  Time last_ack;    // of the last write
  Time ended;       // the completion is in memory
};

class SdmaClient {
 public:
  virtual void copy_ended(const SdmaRecord& record) = 0;

 protected:
  ~SdmaClient() = default;
};

struct SdmaStatistics {
  std::uint64_t descriptors = 0, errors = 0, refused_doorbells = 0;
  std::uint64_t bytes = 0;
  std::uint64_t local_reads = 0, remote_reads = 0, local_writes = 0, remote_writes = 0;
  std::uint64_t buffer_full = 0;  // times the data path stalled because a bound was reached
  std::uint64_t channel_busy_ps = 0;
};

class SdmaEngine {
 public:
  // `request_bytes`: of a request at most, a power of two up to 512.
  SdmaEngine(const hw::Sdma& parameters, std::size_t queues, DeviceSocket& socket,
             std::uint32_t request_bytes = sim::kRequestBytes);

  std::size_t queues() const { return queues_.size(); }
  // Sets up a queue. Requires that none of its descriptors is in flight.
  void set_up(std::size_t queue, const QueueRing& ring);
  const QueueRing& ring(std::size_t queue) const { return queues_[queue].ring; }
  // Writes to a queue's doorbell, at the event time at which they arrive. Any value, any queue.
  void doorbell(std::size_t queue, std::uint32_t tail);
  void completions_taken(std::size_t queue, std::uint32_t count);
  // `client` is notified of the end of every descriptor of queues `first` and above.
  void set_client(SdmaClient& client, std::size_t first) {
    client_ = &client;
    first_client_queue_ = first;
  }

  // For replay, in place of descriptors: copies whose first request may leave now, in the order of the calls,
  // one per free channel. `issued` is called when the last request has left.
  void copy(std::uint64_t source, std::uint64_t destination, std::uint64_t bytes,
            sim::TransactionId transaction) {
    copy(source, destination, bytes, transaction, {request_bytes_, request_bytes_});
  }
  // How a copy takes its turns: requests of at most `request` bytes, of which `turn` bytes leave one behind
  // the other before another channel is served.
  struct Turns {
    std::uint32_t request = 0, turn = 0;
  };
  void copy(std::uint64_t source, std::uint64_t destination, std::uint64_t bytes,
            sim::TransactionId transaction, Turns turns);
  sim::Probe<sim::TransactionId> issued;

  void handle(std::uint32_t what, std::uint64_t argument);
  void completed(const sim::Completion& completion);

  // A descriptor has ended.
  sim::Probe<const SdmaRecord&> ended;

  const SdmaStatistics& statistics() const { return statistics_; }
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const;
  // For hang reports: one line for each descriptor in flight.
  std::string report() const;

 private:
  enum What : std::uint32_t { kFetched, kTranslated, kIssue, kData, kAcknowledged, kEnded, kFree };
  static constexpr std::uint32_t kWriteTag = 0x80000000;

  struct Queue {
    QueueRing ring;
    Time rung;
    bool active = false;  // a channel has it
  };
  struct Channel {
    bool busy = false, copying = false, stalled = false;  // stalled: for room among the completions
    bool plain = true;
    cm384_task entry{};
    SdmaRecord record;
    std::uint64_t issued = 0;       // bytes
    std::uint32_t outstanding = 0;  // requests read or to be written
    sim::TransactionId transaction = 0;
    bool replayed = false;  // has no descriptor
    Turns turns;
    bool wants_issue() const { return copying && record.status == 0 && issued < record.bytes; }
  };
  struct Replayed {
    std::uint64_t source = 0, destination = 0, bytes = 0;
    sim::TransactionId transaction = 0;
    Turns turns;
  };
  struct Piece {
    std::uint16_t channel = 0;
    std::uint16_t bytes = 0;
    std::uint64_t source = 0, destination = 0;
    sim::Payload payload;
  };
  // Pieces between the issue of their read and the acknowledgement of their write, by slot.
  class Pieces {
   public:
    Piece& operator[](std::uint32_t slot) { return pieces_[slot]; }
    int in_use() const { return static_cast<int>(pieces_.size() - free_.size()); }
    std::uint32_t add(const Piece& piece);
    void release(std::uint32_t slot) { free_.push_back(slot); }

   private:
    std::vector<Piece> pieces_;
    std::vector<std::uint32_t> free_;
  };
  struct DataPath {
    Time next_issue;
    bool armed = false;  // an event for the next issue is under way
    bool full = false;   // it has found no place when it was last asked
  };

  void arbitrate();
  void start_replayed();
  Time interval_of(std::uint32_t request_bytes) const;
  // Recomputes whether a channel is eligible to issue a request.
  void update_eligible(std::size_t number);
  std::size_t next_eligible() const;
  void fetch_entry(std::size_t channel, std::size_t queue);
  void fetched(std::size_t channel);
  void translated(std::size_t channel);
  bool unmapped(std::uint64_t address, std::uint64_t bytes) const;
  void fail(Channel& channel, std::uint32_t status, std::uint64_t address);
  void arm();
  void issue();
  void submit(std::uint32_t tag, std::uint64_t address, sim::Operation operation,
              const sim::Payload& payload);
  void read(std::uint32_t slot);
  void data(std::uint32_t slot);
  void write(std::uint32_t slot);
  void acknowledged(std::uint32_t slot);
  void finish_if_done(std::size_t channel);
  void complete(std::size_t channel);
  void end(std::size_t channel);

  hw::Sdma parameters_;
  std::uint32_t request_bytes_;
  DeviceSocket& socket_;
  SdmaClient* client_ = nullptr;
  std::size_t first_client_queue_ = 0;
  std::vector<Queue> queues_;
  std::vector<Channel> channels_;
  std::vector<std::uint64_t> eligible_;            // a bit for each channel that wants to issue
  std::deque<Replayed> replayed_;                  // that wait for a channel
  std::size_t last_queue_ = 0, last_channel_ = 0;  // that had its turn
  Pieces pieces_;
  std::deque<std::uint32_t> unwritten_;  // pieces whose data wait for a place among the writes
  int reads_ = 0, writes_ = 0;
  DataPath path_;
  SdmaStatistics statistics_;
};

}  // namespace cm384::npu
