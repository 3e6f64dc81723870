// Which engine of its die moves what a record says; for the replay's own sources.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/engine/transaction.h"
#include "npu_core/die/launch.h"
#include "npu_core/pipes/pipe_instruction.h"
#include "traces/traffic.h"

namespace cm384::host {

// Transaction ids of a replay hold 1 + the record's number.
inline constexpr std::uint64_t kReplayNumber = (std::uint64_t{1} << 48) - 1;

// What a core moves of a transfer without one before it is another one's turn: transfers that are ready
// share their die.
inline constexpr std::uint64_t kReplayTurn = 4u << 10;
// Of a die's queues the one that no record of time without traffic waits in: `ready` holds what is or will be
// shared out, `busy` says that several are.
inline constexpr int kSharedOut = 0;

// Bytes of a transfer without a core that one of `cores` cores gets, at least `least`.
inline std::uint64_t share_of_core(std::uint64_t bytes, int cores, std::uint64_t least) {
  const auto count = static_cast<std::uint64_t>(cores);
  const std::uint64_t share = std::max(least, (bytes + count - 1) / count);
  return (share + sim::kRequestBytes - 1) / sim::kRequestBytes * sim::kRequestBytes;
}

inline std::size_t engine_of(const traces::TrafficRecord& r) {
  if (r.engine == traces::TrafficRecord::Engine::fix) return npu::kFixEngine;
  return r.operation == sim::Operation::read ? 0 : 1;
}

inline std::size_t lane_index(int core, std::size_t engine) {
  return static_cast<std::size_t>(core) * npu::kEngines + engine;
}

// Cores of its die share it.
inline bool is_shared_out(const traces::TrafficRecord& r) {
  return r.kind == traces::TrafficRecord::Kind::transfer && r.core == traces::TrafficRecord::kAnyCore &&
         r.engine != traces::TrafficRecord::Engine::sdma;
}

// It takes its turn at an engine of a core.
inline bool in_a_lane(const traces::TrafficRecord& r) {
  return r.kind == traces::TrafficRecord::Kind::transfer && r.core != traces::TrafficRecord::kAnyCore &&
         r.engine != traces::TrafficRecord::Engine::sdma;
}

}  // namespace cm384::host
