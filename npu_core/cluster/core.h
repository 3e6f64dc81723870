// A whole AI core, vector (AIV) or cube (AIC): the scalar unit, its pipes, and their connection to the die.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "npu_core/cluster/poll_finder.h"
#include "npu_core/cube/aic.h"
#include "npu_core/die/launch.h"
#include "npu_core/scalar/environment.h"
#include "npu_core/scalar/scalar_core.h"
#include "npu_core/vector/aiv.h"

namespace cm384::npu {

class Die;
class GdbStub;

// What a block of a launch knows about itself (the custom CSRs).
struct BlockIdentity {
  std::uint32_t index = 0;
  std::uint32_t count = 0;
  std::uint64_t arguments = 0;
  std::uint32_t sub_block = 0;  // of an AIV in its group
};

class Core final : public ScalarEnvironment {
 public:
  Core(std::uint16_t number, Die& die, std::unique_ptr<CorePipes> pipes);
  Core(Core&&) = delete;

  // Starts the program as a block of a launch; the first instruction issues at `at`. Caches keep the
  // program's lines where it ran on this core before.
  // `preloaded`: bytes of its code, from the first on, that the instruction cache holds at the start.
  void start_block(const std::shared_ptr<Program>& program, const BlockIdentity& block, Time at,
                   std::uint64_t preloaded);
  // Runs the scalar unit from event time on until it parks, ends or has run its quantum.
  void run_scalar();
  void wake(std::int64_t cycle);
  // From the next block on the scalar unit runs under the debugger. The stub must outlive the run.
  void attach_debugger(GdbStub& stub) { debugger_ = &stub; }

  // Asks the host's cache for what the core's next events will touch beyond its state, in stages
  // (CorePipes::prefetch).
  void prefetch(int stage) const {
    scalar_.prefetch(stage);
    pipes_->prefetch(stage);
  }

  // How many bytes of this object, from its beginning, are touched by its events.
  std::size_t touched_bytes() const {
    return static_cast<std::size_t>(reinterpret_cast<const char*>(&phases_) -
                                    reinterpret_cast<const char*>(this));
  }

  std::uint16_t number() const { return number_; }
  bool busy() const { return busy_; }
  std::uint32_t launch() const { return launch_; }
  void set_launch(std::uint32_t launch) { launch_ = launch; }
  CorePipes& pipes() { return *pipes_; }
  // The pipes of a vector core; of a cube core. Requires a core of that kind.
  Aiv& aiv() { return static_cast<Aiv&>(*pipes_); }
  const Aiv& aiv() const { return static_cast<const Aiv&>(*pipes_); }
  Aic& aic() { return static_cast<Aic&>(*pipes_); }
  ScalarCore& scalar() { return scalar_; }
  const ScalarCore& scalar() const { return scalar_; }
  // Instructions retired in all launches.
  std::uint64_t instructions() const { return earlier_instructions_ + scalar_.instructions(); }
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const;
  const std::array<Time, kPhases>& phase_totals() const { return phases_; }
  // Time for which the scalar unit of the present block has waited for instruction fetches.
  Time fetch_stall() const;
  Time first_instruction() const { return started_; }
  Time last_retired() const { return ended_; }
  // One line: where the scalar unit stands and what each part waits for.
  std::string report() const;
  // Throws MachineError: the fault with die, core and the places of the program.
  [[noreturn]] void rethrow(const PipeFault& fault);

  IssueAnswer pipe(const PipeInstruction& instruction, std::int64_t cycle) override;
  IssueAnswer host_call(std::uint32_t number, std::uint64_t a, std::uint64_t b, std::int64_t cycle,
                        std::uint64_t& result) override;
  IssueAnswer fill(std::uint64_t address, FillKind kind, std::int64_t cycle, std::byte* line,
                   std::uint32_t bytes, sim::TagMask& tags) override;
  IssueAnswer atomic(std::uint64_t address, const AtomicUpdate& update, std::int64_t cycle,
                     std::uint64_t& old, bool& payload) override;
  IssueAnswer ubuffer_order(std::uint32_t offset, std::uint32_t bytes, bool write,
                            std::int64_t cycle) override;
  bool ubuffer_load(std::uint32_t offset, std::uint32_t bytes, std::int64_t cycle, std::byte* to) override;
  void ubuffer_store(std::uint32_t offset, std::uint32_t bytes, std::int64_t cycle, const std::byte* from,
                     bool payload) override;
  std::uint64_t csr(std::uint32_t number, std::int64_t cycle) override;
  void page_allocated() override;
  bool peek(std::uint64_t address, std::byte& to) const override;
  bool poke(std::uint64_t address, std::byte from) override;

 private:
  LocalBuffer& scalar_buffer();
  std::uint64_t local_offset(std::uint64_t address) const;
  template <class Action>
  IssueAnswer act(const LocalAccess& access, bool atomic, std::int64_t cycle, const Action& action);
  void mark_phase(std::uint32_t phase, Time at);
  std::string text_at(std::uint64_t address, std::uint64_t bytes) const;
  std::string place_text(std::uint64_t pc) const;
  void run_until_it_stops();

  std::uint16_t number_;
  Die& die_;
  ScalarCore scalar_;
  std::unique_ptr<CorePipes> pipes_;
  std::unique_ptr<PollFinder> finder_;  // of a vector core
  GdbStub* debugger_ = nullptr;
  BlockIdentity block_;
  std::shared_ptr<Program> program_;
  std::uint32_t launch_ = 0;
  std::optional<Time> acts_at_;  // the write to GM or AMO that the scalar unit waits for
  // Sums over earlier launches: the scalar unit counts from the start of this one.
  std::uint64_t earlier_instructions_ = 0;
  ScalarCore::Counters earlier_;
  bool busy_ = false;
  bool waiting_ = false;  // parked: the scalar unit runs on when woken
  Time started_, ended_;
  std::int32_t phase_ = -1;
  Time phase_since_;
  std::array<Time, kPhases> phases_{};
};

}  // namespace cm384::npu
