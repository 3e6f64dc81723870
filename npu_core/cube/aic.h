// One cube core (AIC) without its scalar unit: L1, L0A, L0B, L0C, bias table and fixpipe buffer, the pipes M,
// MTE1, MTE2, FIX and MTE3, flags and barriers. It exchanges data with vector cores through L2 and HBM alone.
#pragma once

#include <array>

#include "hw/parameters/cube_core.h"
#include "hw/parameters/vector_core.h"
#include "npu_core/core_socket.h"
#include "npu_core/cube/cube_buffers.h"
#include "npu_core/pipes/mte_engine.h"
#include "npu_core/pipes/pipe_set.h"

namespace cm384::npu {

// The pipes of a cube core, numbered from 0 without gaps.
enum CubePipe : std::uint8_t {
  kCubeM = 1,
  kCubeMte1 = 2,
  kCubeMte2 = 3,
  kCubeFix = 4,
  kCubeMte3 = 5,
  kCubePipes = 6
};

// Counters of one cube core since construction. Cycles are core cycles.
struct AicStatistics : PipeStatistics {
  std::uint64_t mmads = 0, multiply_adds = 0, mmad_cycles = 0;
  std::uint64_t int8_multiply_adds = 0, fp32_multiply_adds = 0;  // of them
  std::uint64_t loads = 0, load_cycles = 0;                      // MTE1
  std::uint64_t mte2_instructions = 0, fix_instructions = 0, mte3_instructions = 0;
  std::uint64_t mte2_busy_ps = 0, fix_busy_ps = 0, mte3_busy_ps = 0;
  std::uint64_t local_requests = 0, remote_requests = 0;
  std::uint64_t read_bytes = 0, fix_bytes = 0, mte3_bytes = 0;
  std::array<std::uint64_t, kCubePipes> wait_cycles{};  // of each pipe at wait_flags whose flag was not set
  std::array<PipeWaits, kCubePipes> waits{};            // idle cycles of those, by the pipe waited for
};

// Missing flags are always reported: what a cube core computes without one would be right here and wrong on
// the part.
class Aic final : public PipeSet {
 public:
  Aic(std::uint16_t core_number, const hw::CubeCore& cube, const hw::Mte& mte, const Clock& core_clock,
      CoreSocket& die, bool elides_polls);

  // Instructions of class SYNC, MTE or CUBE.
  IssueAnswer issue(const PipeInstruction& instruction, std::int64_t cycle) override;
  void forget_values() override;
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const override;

  CubeBuffers& buffers() { return buffers_; }
  const AicStatistics& statistics() const { return statistics_; }

 private:
  bool copies(const PipeInstruction& in) const override;
  void start_work(int pipe, QueuedInstruction& entry) override;
  MteCopy prepare_copy(int pipe, const QueuedInstruction& entry) override;
  MteCopy l1_copy(int pipe, const QueuedInstruction& entry);
  MteCopy fixpipe_copy(const QueuedInstruction& entry);
  std::int64_t start_load(const PipeInstruction& in, int pipe);
  std::int64_t start_fractals(const PipeInstruction& in);
  std::int64_t start_image(const QueuedInstruction& entry);
  std::int64_t start_fill(const PipeInstruction& in);
  std::int64_t start_fixpipe_to_l1(const QueuedInstruction& entry);
  // Performs an instruction that does not copy to or from memory; returns the cycles that it takes.
  std::int64_t start_unit(int pipe, const QueuedInstruction& entry);
  std::int64_t load_cycles(std::uint32_t bytes, int rate);
  std::int64_t start_mmad(const PipeInstruction& in);
  std::int64_t macs_per_cycle(std::uint8_t type) const;
  PipeInstruction with_mode(const PipeInstruction& in) const;
  void touch(int pipe, std::uint32_t offset, std::uint32_t bytes, bool write, std::uint64_t pc) {
    hazards->access(pipe, offset, bytes, write, pc);
  }

  const hw::CubeCore parameters_;
  AicStatistics statistics_;
  const MteTiming read_timing_, write_timing_;
  MteTiming fix_timing_;
  CubeBuffers buffers_;
  LocalBuffer fix_result_{kL0cBytes};  // rows on their way through the fixpipe
  MteEngine mte2_, mte3_, fix_;
};

}  // namespace cm384::npu
