// One cube core (AIC) without its scalar unit: L1, L0A, L0B, L0C, bias table and fixpipe buffer, the pipes M,
// MTE1, MTE2, FIX and MTE3, flags and barriers. It meets vector cores through L2 and HBM alone.
#pragma once

#include <array>
#include <memory>

#include "hw/parameters/cube_core.h"
#include "hw/parameters/vector_core.h"
#include "npu_core/core_socket.h"
#include "npu_core/cube/cube_buffers.h"
#include "npu_core/pipes/core_pipes.h"
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
  std::uint64_t loads = 0, load_cycles = 0;  // MTE1
  std::uint64_t mte2_instructions = 0, fix_instructions = 0, mte3_instructions = 0;
  std::uint64_t mte2_busy_ps = 0, fix_busy_ps = 0, mte3_busy_ps = 0;
  std::uint64_t local_requests = 0, remote_requests = 0;
  std::uint64_t read_bytes = 0, fix_bytes = 0, mte3_bytes = 0;
  std::array<std::uint64_t, kCubePipes> wait_cycles{};  // of each pipe at wait_flags whose flag was not set
  std::array<PipeWaits, kCubePipes> waits{};            // idle cycles of those, by the pipe waited for
};

class Aic final : public CorePipes {
 public:
  Aic(std::uint16_t core, const hw::CubeCore& cube, const hw::Mte& mte, const Clock& core_clock,
      CoreSocket& socket, bool elide_polls);
  ~Aic() override;

  // Instructions of class SYNC, MTE or CUBE.
  IssueAnswer issue(const PipeInstruction& instruction, std::int64_t cycle) override;
  IssueAnswer drain(std::int64_t cycle) override;
  void handle(std::uint32_t what, std::uint64_t argument, Time now) override;
  void completed(const sim::Completion& completion, Time now) override;
  void watched_write(Time at) override;
  void cross_core_flag(std::uint32_t flag, int count, Time at) override;
  void reset() override;
  void add_observer(PipeObserver& observer) override;
  void mark_phase(std::uint32_t phase, std::int64_t cycle) const override;
  void copy(int pipe, const MteCopy& copy, Time ready) override;
  void forget_values() override;
  std::string waiting_for(const PlaceText& place) const override;
  Standstill standstill() const override;
  Places places() const override;
  void prefetch(int stage) const override;
  void prefetch_engine(std::uint32_t which, int stage) const override;
  void prefetch_completion(std::uint32_t tag) const override;
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const override;

  CubeBuffers& buffers();
  const AicStatistics& statistics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cm384::npu
