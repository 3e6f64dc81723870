// The task scheduler of a die (STARS on the part): streams are queues of entries in memory, executed in
// order; entries of different streams run concurrently. An entry is fetched, decoded, executed and
// completed. A kernel's blocks are dispatched to cores one after another; a copy is handed to the SDMA
// engine; events and notifies are words in memory, of this die or another one.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "firmware/abi/queue.h"
#include "hw/parameters/scheduler.h"
#include "npu_core/devices/device_socket.h"
#include "npu_core/devices/scheduler/task_record.h"
#include "npu_core/devices/sdma/queue_ring.h"
#include "npu_core/devices/sdma/sdma_engine.h"
#include "npu_core/die/launch.h"

namespace cm384::npu {

// A block that starts now.
struct BlockStart {
  std::uint16_t core = 0;
  std::uint32_t launch = 0;
  std::uint32_t index = 0, count = 0;
  std::uint64_t arguments = 0;
  std::shared_ptr<Program> program;
  KernelType type = KernelType::aiv;
  std::shared_ptr<const PlayedLaunch> played;  // null: the program runs
  std::uint64_t preloaded = 0;                 // bytes of its code that are in the instruction cache
};

// The cores as the scheduler sees them; also notified of its tasks.
class CoreArray {
 public:
  virtual std::size_t count() const = 0;  // vector cores
  virtual std::size_t all() const = 0;    // with cube cores, which are numbered behind them
  virtual void start_block(const BlockStart& block) = 0;
  virtual void kernel_started(const LaunchRecord& record) = 0;
  virtual void kernel_finished(const LaunchRecord& record) = 0;
  // An entry of a stream was decoded: its type, number and turn are known.
  virtual void task_decoded(const TaskRecord& /*record*/) {}
  virtual void task_finished(const TaskRecord& record) = 0;
  // A stream was created; a kernel was registered under its number.
  virtual void stream_made(std::uint32_t /*number*/, const QueueRing& /*ring*/) {}
  virtual void kernel_registered(std::uint32_t /*number*/, const LaunchRequest& /*kernel*/) {}

 protected:
  ~CoreArray() = default;
};

struct SchedulerStatistics {
  std::uint64_t tasks = 0, kernels = 0, copies = 0, errors = 0;
  std::uint64_t blocks = 0;
  std::uint64_t block_waits = 0;  // dispatches that waited for a core
  std::uint64_t slot_waits = 0;   // entries that waited for a free slot (scheduler.slots)
};

class TaskScheduler final : public SdmaClient {
 public:
  static constexpr int kFlags = 16;
  // Depth of each of the scheduler's SDMA queues, in entries.
  static constexpr std::uint32_t kSdmaDepth = 64;

  // A kernel under way.
  struct Kernel {
    LaunchRecord record;
    LaunchRequest request;
    bool graph = false;
    std::uint32_t blocks = 0, dispatched = 0, begun = 0, running = 0;
    std::vector<std::uint16_t> cores;  // of the blocks dispatched
    // At barriers: sets of each cross-core flag, by vector and by cube cores.
    std::array<std::array<std::uint32_t, kFlags>, 2> arrivals{};
  };

  // `sdma_first`: the first of the SDMA queues that are the scheduler's; the others are the cores'.
  TaskScheduler(const hw::Scheduler& parameters, DeviceSocket& socket, CoreArray& cores, SdmaEngine& sdma,
                std::size_t sdma_first);

  // Number of the new stream: 0, 1, ...
  std::uint32_t create_stream(const QueueRing& ring);
  // Number that an entry names it by. `cores`: of block 0, 1, ..., then the first of them that is free;
  // empty: any that is free, the lowest first.
  std::uint32_t register_kernel(std::shared_ptr<Program> program, std::vector<std::uint16_t> cores,
                                KernelType type = KernelType::aiv,
                                std::shared_ptr<const PlayedLaunch> played = nullptr);

  std::size_t streams() const { return streams_.size(); }
  // Notifies the cores of all existing streams and kernels.
  void notify_all() const;

  // The host's writes of an entry and of the doorbell arrive, at the event time. Where the stream's ring is
  // full the entry waits until it has room. Requires that the stream exists.
  void submit(std::uint32_t stream, const cm384_task& task);
  // As submit(), at a later time.
  void submit_at(std::uint32_t stream, const cm384_task& task, Time at);
  // Entries submitted and not completed.
  std::size_t pending(std::uint32_t stream) const;
  const QueueRing& ring(std::uint32_t stream) const { return streams_[stream].ring; }
  // Whoever reads the stream's completions has consumed `count` of them since the stream was created.
  void completions_taken(std::uint32_t stream, std::uint32_t count);

  // The kernel whose block a core runs.
  Kernel& kernel_on(std::uint16_t core) { return streams_[running_on_[core]].kernel; }
  // Whether all blocks of that kernel have started on their cores: none is still being dispatched.
  bool all_begun(std::uint16_t core) const {
    const Kernel& kernel = streams_[running_on_[core]].kernel;
    return kernel.begun == kernel.blocks;
  }
  // A block's last instruction has retired, at `retired` (not before now()).
  void block_ended(std::uint16_t core, Time retired, const std::array<Time, kPhases>& phases,
                   Time fetch_stall = {});
  // The die's own memory was written, at the event time.
  void written(std::uint64_t offset, std::uint64_t bytes) {
    if (offset < watched_.high && offset + bytes > watched_.low) wake(offset, bytes);
  }

  void handle(std::uint32_t what, std::uint64_t argument);
  void completed(const sim::Completion& completion);
  void copy_ended(const SdmaRecord& record) override;

  const SchedulerStatistics& statistics() const { return statistics_; }
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const;
  // For hang reports: one line for each stream with an entry in flight.
  std::string report() const;

 private:
  enum What : std::uint32_t {
    kSubmit,
    kPosted,
    kFetched,
    kDecoded,
    kDispatchable,
    kDispatch,
    kBlockStart,
    kCoreFree,
    kHandOver,
    kRead,
    kDone,
    kCompleted,
    kAheadFetched,
    kAheadDecoded,
    kAheadReady
  };
  static constexpr std::uint32_t kFree = 0xffffffff;

  enum class State : std::uint8_t { idle, ready, fetching, working, waiting, completing, stalled, preparing };
  // Look-ahead: kernels of a captured graph behind the entry at the head, set up while that one runs.
  struct Ahead {
    struct Entry {
      cm384_task task{};
      Time fetched, decoded;
    };
    std::deque<Entry> entries;  // fetched; in order
    std::uint32_t ready = 0;    // of them, set up
    bool plain = true;
    bool fetching = false;
    bool stopped = false;  // the entry behind them is not one of a graph
  };
  struct Stream {
    QueueRing ring;
    std::deque<cm384_task> waiting_for_room;  // entries for which the ring has no room
    std::uint32_t posted = 0;                 // tail in memory, of which the doorbell may not have come yet
    State state = State::idle;
    bool plain = true;
    bool reading = false, touched = false;  // of a wait: the word is being read, was written since
    bool holds_slot = false;
    cm384_task entry{};
    TaskRecord record;
    std::uint64_t word = 0;  // of a wait: what was read
    Kernel kernel;
    Ahead ahead;
  };
  struct Registered {
    std::shared_ptr<Program> program;
    std::vector<std::uint16_t> cores;
    KernelType type = KernelType::aiv;
    std::shared_ptr<const PlayedLaunch> played;
  };
  struct Submission {
    std::uint32_t stream = 0;
    cm384_task task{};
  };
  // The SDMA queues that are the scheduler's.
  struct SdmaQueues {
    std::size_t first = 0;
    std::vector<std::uint32_t> tail, rung;  // by queue from there on
    std::deque<std::uint32_t> waiting;      // streams whose copy waits for room in one
  };
  struct Watched {  // the bytes that streams wait for lie in [low, high)
    std::uint64_t low = UINT64_MAX, high = 0;
  };

  // task_scheduler.cpp: streams and entries
  void post(std::uint32_t stream);
  void make_ready(std::uint32_t stream);
  void fetch_ready();
  void decoded(std::uint32_t stream);
  void done_at(std::uint32_t stream, Time at, std::uint32_t status = CM384_STATUS_DONE,
               std::uint64_t fault = 0);
  void release_slot(Stream& stream);
  void complete(std::uint32_t stream);
  // graph.cpp: kernels of captured graphs
  void look_ahead(std::uint32_t stream);
  void handle_ahead(std::uint32_t stream, std::uint32_t what);
  bool begin_next_ahead(std::uint32_t stream);
  void begin_ready(std::uint32_t stream);
  // words.cpp: events and notifies
  void record_word(std::uint32_t stream);
  void wait_word(std::uint32_t stream);
  void word_read(std::uint32_t stream);
  void park(std::uint32_t stream);
  void watch_again();
  void wake(std::uint64_t offset, std::uint64_t bytes);
  // blocks.cpp: kernels and copies
  // False where it cannot start: the entry then ends with an error.
  bool start_kernel(std::uint32_t stream);
  void dispatchable(std::uint32_t stream);
  void arm_dispatch();
  void dispatch();
  std::uint32_t core_for(const Kernel& kernel) const;
  void core_free(std::uint16_t core);
  void kernel_completed(Stream& stream);
  void hand_over(std::uint32_t stream);

  hw::Scheduler parameters_;
  DeviceSocket& socket_;
  CoreArray& cores_;
  SdmaEngine& sdma_;
  std::deque<Stream> streams_;  // stay where they are: a new one may come while one is worked at
  std::vector<Registered> kernels_;
  std::deque<Submission> submissions_;  // of submit_at(), by number
  std::uint64_t first_submission_ = 0;
  std::deque<std::uint32_t> ready_;        // streams whose entry waits for a slot
  std::deque<std::uint32_t> dispatching_;  // streams whose kernel has blocks left
  std::vector<std::uint32_t> running_on_;  // stream, by core; kFree
  std::vector<std::uint32_t> block_of_;    // block that the core was given
  SdmaQueues copies_;
  std::vector<std::uint32_t> parked_;  // streams that wait for a word
  Watched watched_;
  int under_way_ = 0;
  Time next_decode_, next_block_;
  bool dispatch_armed_ = false;
  SchedulerStatistics statistics_;
};

}  // namespace cm384::npu
