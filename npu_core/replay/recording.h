// A kernel's transfers and what each of them waited for: what its firmware did once, to be played again
// without instructions (BlockPlayer), in other memory, on other cores, beside other work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/text/units.h"
#include "npu_core/die/launch.h"

namespace cm384::npu {

struct Recording {
  static constexpr std::uint16_t kPrivate = 0xffff;  // region: the core's private memory
  static constexpr std::uint16_t kImage = 0xfffe;    // the instructions that all cores share

  struct Step {
    enum class Kind : std::uint8_t {
      begin,     // of a block
      end,       // of a block
      join,      // a barrier of blocks
      fill,      // a cache line of the scalar unit
      transfer,  // an instruction of an MTE engine or of the fixpipe
    };
    enum class Operation : std::uint8_t { read, write, add };
    Kind kind = Kind::transfer;
    Operation operation = Operation::read;
    std::uint8_t engine = 0;
    std::uint8_t allocate = 1;  // in L2
    std::uint16_t block = 0;    // place of its core among the launch's
    std::uint16_t region = 0;   // of the operator's memory
    std::uint64_t offset = 0;   // in it
    std::uint32_t burst_bytes = 0, bursts = 1;
    std::int64_t stride = 0;  // from burst to burst
    Time recorded;            // when it began
  };
  static_assert(sizeof(Step) == 40);
  // `to` begins no earlier than `delay` after the step that it belongs to got so far.
  struct Edge {
    std::uint32_t to = 0;
    DependencyKind kind = DependencyKind::completion;
    Time delay;
  };

  std::size_t blocks = 0;  // cores of the launch
  Time alone;              // from the first begin of a block to the last end, when it was recorded
  std::vector<Step> steps;
  std::vector<std::uint32_t> waits;  // by step: edges that lead there
  // By step, and one more: where its edges begin in `edges`.
  std::vector<std::uint32_t> first_edge;
  std::vector<Edge> edges;
  // By block and engine, and one more: where its transfers begin in `lane_steps`; in their order.
  std::vector<std::uint32_t> first_of_lane, lane_steps;
  std::vector<std::uint32_t> begin_of;  // by block

  // A wait as it was found: step number `of` waits for `on`, an earlier one.
  struct Wait {
    std::uint32_t of = 0, on = 0;
    DependencyKind kind = DependencyKind::completion;
    Time delay;
  };
  // Steps in the order in which they began, and waits of all of them. A step that waits for nothing follows
  // the begin of its block, as it did.
  static Recording of(std::size_t blocks, std::vector<Step> steps, std::vector<Wait> waits);
  // A launch whose blocks idle for `length`.
  static Recording idle(std::size_t blocks, Time length);
};

class PaceBoard;

// A launch's place among those of other dies with like work.
struct Pacing {
  enum class Role : std::uint8_t { none, sets, follows };
  Role role = Role::none;
  PaceBoard* board = nullptr;  // outlives the run
  std::size_t launch = 0;      // number there
  int kind = 0;                // of the work
};

// A launch that is played: from which recording, and where the operator's memory lies here.
struct PlayedLaunch {
  std::shared_ptr<const Recording> recording;
  std::vector<std::uint64_t> regions;  // offsets in the die's memory
  Pacing pacing;
};

}  // namespace cm384::npu
