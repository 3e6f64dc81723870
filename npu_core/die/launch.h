// A kernel launch as a die sees it: which program on which cores, and its times.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/engine/dependency.h"
#include "base/engine/transaction.h"
#include "base/text/units.h"

namespace cm384::npu {

class ElfImage;
class Program;
struct PlayedLaunch;
struct TaskRecord;

inline constexpr int kPhases = 32;

// The cores that a block runs on, as CANN's kernel types: an AIV, an AIC, or a group (MIX) of an AIC and its
// two AIVs, which all run the same program.
enum class KernelType : std::uint8_t { aiv, aic, mix };

struct LaunchRequest {
  std::shared_ptr<Program> program;
  std::uint64_t arguments = 0;       // GM address that the kernel gets
  std::vector<std::uint16_t> cores;  // of block 0, 1, ...: number of its AIV, of its AIC, of its group
  KernelType type = KernelType::aiv;
  std::shared_ptr<const PlayedLaunch> played = nullptr;  // in the program's place
  bool graph = false;  // part of a captured graph: set up while the task before runs
  // 0: one block on each core. With more blocks than cores each further block goes to the first of these
  // cores (or whole groups) that becomes free.
  std::uint32_t blocks = 0;

  // As a stream's entry counts them: one for each core of a group.
  std::uint32_t entry_blocks() const { return type == KernelType::mix ? 3 * blocks : blocks; }
};

// Times of one finished launch on one die.
struct LaunchRecord {
  std::uint32_t launch = 0;  // number of the launch on this die
  // The program's image, and the GM address of the kernel's arguments.
  std::shared_ptr<const ElfImage> image;
  std::uint64_t arguments = 0;
  Time task_start;         // the launch had its turn at the head of its stream
  Time first_instruction;  // of the first block
  Time last_retired;       // of the last block
  Time task_end;           // completed: the next task of the stream may start
  // Time between a core's phase marks, summed over cores: entry p runs from mark p to the core's next mark or
  // end.
  std::array<Time, kPhases> phase_total{};
  Time fetch_stall;  // scalar units waited for instructions, summed over cores
  std::uint32_t blocks = 0;
};

// `core` of a transaction of the die's SDMA engine.
inline constexpr std::uint16_t kSdmaCore = 0xff00;

using sim::DependencyKind;

// Not before `delay` after `on` reached the point `kind`. A delay may be negative.
struct Dependency {
  sim::TransactionId on = 0;
  DependencyKind kind = DependencyKind::completion;
  Time delay;
};

// An MTE instruction or a copy of the SDMA engine, and what it waited for. Reported when its first request
// leaves.
struct TransactionBegun {
  sim::TransactionId id = 0;
  std::uint64_t address = 0;  // global, of the first byte
  std::uint64_t bytes = 0;    // of the instruction
  int die = 0;
  std::uint16_t core = 0;
  sim::Operation operation = sim::Operation::read;
  Time at;
  // How its bursts lie, and all it waited for. Only where a log is kept (Die::keep_log).
  std::uint32_t burst_bytes = 0, bursts = 1;
  std::int64_t stride = 0;
  bool allocate = true;
  bool fill = false;        // a cache line of the scalar unit, filled or written back
  std::uint8_t engine = 0;  // of the core that moves it, by the number of its events
  std::span<const Dependency> dependencies;
  // For a copy that a stream's entry asked for: the stream, and its number of earlier copies.
  static constexpr std::uint32_t kNoStream = 0xffffffff;
  std::uint32_t stream = kNoStream, copy_of_stream = 0;
};

// A point in a die's time that joins several causes: a barrier of all blocks, or begin and end of a block.
struct JoinedAt {
  enum class Kind : std::uint8_t { barrier, launch, end };
  sim::TransactionId id = 0;
  int die = 0;
  Kind kind = Kind::barrier;
  std::uint32_t launch = 0, block = 0;  // number of the launch on the die, of the last two kinds
  Time at;
  std::span<const Dependency> dependencies;
};

// What arrives for a die's streams from outside, and the calls of its host thread.
struct HostPoint {
  enum class Kind : std::uint8_t {
    idle,    // nothing is under way on the whole machine; what is given next is given from here on
    stream,  // made: number, offsets of its entries and of its completions, depth
    kernel,  // known to the scheduler: number, KernelType, core of block 0, 1, ...
    given,   // an entry comes to a stream at `start`, without the host's calls: stream, 8 words of the entry
    call,    // of the host thread, as HostThread says
  };
  int die = 0;
  Kind kind = Kind::idle;
  Time start, end;
  std::span<const std::uint64_t> words;
};

class BackingStore;

struct TransactionCompleted {
  sim::TransactionId id = 0;
  int die = 0;
  std::uint16_t core = 0;
  Time at;  // may lie ahead: memory of the own die knows it when the last request leaves
};

// Kernel output and the end of launches, reported at event time.
class DieListener {
 public:
  virtual void launch_started(int /*die*/, const LaunchRecord& /*record*/) {}
  virtual void launch_finished(int die, const LaunchRecord& record) = 0;
  // Only where the die reports transactions (Accelerator::follow).
  virtual void transaction_begun(const TransactionBegun&) {}
  virtual void transaction_completed(const TransactionCompleted&) {}
  // An entry of a stream has completed.
  virtual void task_finished(int /*die*/, const TaskRecord& /*record*/) {}
  // A write or atomic request of a transaction has reached die `target`.
  virtual void transaction_arrived(sim::TransactionId, int /*target*/, std::uint32_t /*bytes*/, Time /*at*/) {
  }
  // For a debugger: the store that holds a global address; nullptr where no unit that takes part has it.
  virtual BackingStore* memory_of(std::uint64_t /*address*/) { return nullptr; }
  // Text that a kernel printed.
  virtual void kernel_output(int die, int core, std::string_view text) = 0;

 protected:
  ~DieListener() = default;
};

}  // namespace cm384::npu
