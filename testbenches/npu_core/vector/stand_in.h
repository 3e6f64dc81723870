// A stand-in for the die around one core, a vector core unless told otherwise: memory of fixed latency, a
// scalar unit that issues a list of instructions, and the event queue.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/engine/event_queue.h"
#include "firmware/abi/isa.h"
#include "firmware/abi/memory_map.h"
#include "npu_core/vector/aiv.h"

namespace cm384::npu::testing {

hw::VectorCore vector_parameters();
hw::Mte mte_parameters();

inline constexpr std::uint64_t kLocal = 0;  // die numbers
inline constexpr std::uint64_t kRemote = 7;

// Instructions.
PipeInstruction sync(int operation, std::uint64_t a = 0, std::uint64_t b = 0);
PipeInstruction set_flag(int source, int destination, int id = 0);
PipeInstruction wait_flag(int source, int destination, int id = 0);
PipeInstruction barrier(int pipe);
PipeInstruction copy_in(std::uint32_t ub, std::uint64_t gm, std::uint32_t bytes, std::uint32_t bursts = 1);
PipeInstruction copy_out(std::uint64_t gm, std::uint32_t ub, std::uint32_t bytes, std::uint32_t bursts = 1);

struct Strides {
  std::uint64_t destination_block = 1, block0 = 1, block1 = 1;
  std::uint64_t destination_repeat = 8, repeat0 = 8, repeat1 = 8;
};
PipeInstruction vector(int instruction_class, int operation, int type, std::uint32_t destination,
                       std::uint32_t source0, std::uint64_t rs2, std::uint32_t repeats, Strides strides = {});

class StandIn : public CoreSocket {
 public:
  explicit StandIn(const hw::Mte& mte = mte_parameters(), const hw::VectorCore& vector = vector_parameters(),
                   const AivOptions& options = {});

  // Issues the program from `cycle` on; runs until nothing is left to do. False when something still waits.
  bool run(const std::vector<PipeInstruction>& program, std::int64_t cycle = 0);
  // Cycle at which the scalar unit went on after instruction i; -1 when it never did.
  std::int64_t released(std::size_t i) const { return released_[i]; }
  // Cycle when all is complete.
  std::int64_t drained() const { return drained_; }
  // Calls back at a time, as a write of somebody else would.
  void at(Time time, std::function<void()> what);

  Aiv aiv;
  CorePipes* pipes = &aiv;  // what run() drives; a test may put another kind of core here
  Clock clock{Frequency{1'850'000'000}};
  Time read_latency{500'000}, write_latency{250'000}, remote_latency{1'000'000};
  std::vector<std::byte> memory;  // of the own die
  std::vector<bool> tagged;       // its 32 B blocks
  std::vector<std::byte> remote_memory;
  std::vector<bool> remote_tagged;
  std::vector<LocalAccess> accesses;  // all there were
  std::vector<sim::Request> requests;
  std::vector<std::pair<std::uint32_t, Time>> cross_core_sets;
  std::uint64_t watched_bytes = 0, watched_offset = 0;
  std::uint64_t wakes = 0;
  bool record = true;

  // CoreSocket
  Time now() const override { return events_.now(); }
  void schedule(std::uint16_t core, Time at, std::uint32_t what, std::uint64_t argument) override;
  bool is_local(std::uint64_t address) const override { return cm384_gm_unit(address) == kLocal; }
  Time access(const LocalAccess& access, std::byte* bytes, sim::TagMask& tags) override;
  Time atomic_add(const LocalAccess& access, const std::byte* bytes, sim::Operation operation) override;
  void submit(const sim::Request& request) override;
  sim::PayloadPool& payloads() override { return pool_; }
  sim::TransactionId new_transaction(std::uint16_t, const TransactionStart&) override {
    return ++transactions_;
  }
  void transaction_completed(std::uint16_t, sim::TransactionId, Time) override {}
  void wake_scalar(std::uint16_t core, std::int64_t cycle) override;
  void cross_core_set(std::uint16_t core, std::uint32_t mode, std::uint32_t flag) override;
  void watch(std::uint16_t core, std::uint64_t offset, std::uint64_t bytes) override;

 private:
  enum Unit : std::uint32_t { kCore, kScalar, kCompletion, kCallback };
  void step(std::int64_t cycle);

  sim::EventQueue events_{1};
  sim::PayloadPool pool_;
  std::uint64_t transactions_ = 0;
  std::vector<PipeInstruction> program_;
  std::size_t next_ = 0;
  std::int64_t drained_ = -1;
  std::vector<std::int64_t> released_;
  std::vector<sim::Completion> completions_;
  std::vector<std::uint64_t> free_completions_;
  std::vector<std::function<void()>> callbacks_;
};

}  // namespace cm384::npu::testing
