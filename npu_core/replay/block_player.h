// Plays recorded launches on a die: blocks that move what they moved in the recording, each transfer once all
// that it waited for has happened here and the recorded delay has passed. The die's memory is the model
// itself; engines issue as MteEngine does: an instruction's overhead, an interval between requests, a window
// of bytes.
//
// An event issues an engine's requests of the next 40 ns in one go: the order of two engines' requests may
// be off by so much.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/engine/event_queue.h"
#include "npu_core/devices/scheduler/task_scheduler.h"
#include "npu_core/pipes/mte_engine.h"
#include "npu_core/pipes/pipe_instruction.h"
#include "npu_core/pipes/request_window.h"
#include "npu_core/replay/pace.h"
#include "npu_core/replay/recording.h"

namespace cm384::npu {

class Die;

class BlockPlayer final : public PaceFollower {
 public:
  // `unit`: of its events in the die's queue.
  BlockPlayer(Die& die, std::uint32_t unit);
  ~BlockPlayer();

  // Starts a block of a launch that has a recording, at the event time.
  void start_block(const BlockStart& block);
  // While the die does not run.
  void ends_at(std::uint32_t launch, Time at) override;
  void handle(const sim::Event& event);

 private:
  enum What : std::uint32_t { kLane, kFill, kFollowed };

  // An engine of a core.
  struct Lane {
    const MteTiming* timing = nullptr;
    const std::uint32_t* next = nullptr;  // its transfers
    const std::uint32_t* last = nullptr;
    std::uint16_t core = 0;
    bool busy = false, armed = false;
    std::uint32_t done = 0, bursts = 0;  // of the one in hand
    std::uint64_t burst = 0;             // where its burst begins
    std::int64_t cursor_ps = 0;          // the next request may leave
    std::int64_t complete_ps = 0;
    RequestWindow window;
    std::int64_t issued_ps = 0;  // the last request left
  };
  struct Play;
  // A launch whose blocks last as long as those of another die.
  struct Following {
    std::vector<std::uint16_t> cores;  // of blocks that have begun
    std::size_t left = 0;              // blocks that have not ended
    bool ended = false;
  };

  void follow(const BlockStart& block);
  void followed(std::uint32_t launch);
  void finish(std::uint32_t launch);
  void happened(Play& play, std::uint32_t step, DependencyKind kind, Time at);
  void settle(Play& play);
  void resolved(Play& play, std::uint32_t step);
  void finished(Play& play, std::uint32_t step, Time issued, Time completed);
  void arm(Play& play, std::size_t lane, Time at);
  void run(Play& play, std::size_t lane);
  bool request(Lane& lane, const Recording::Step& step, std::int64_t until);
  void fill(Play& play, std::uint32_t step);
  std::uint64_t offset_of(const Play& play, const Recording::Step& step) const;
  void start(Play& play, Lane& lane, std::uint32_t step) const;

  Die& die_;
  std::uint32_t unit_;
  MteTiming timing_[2][kEngines];                         // of vector and cube cores
  std::map<std::uint32_t, std::unique_ptr<Play>> plays_;  // by launch
  std::map<std::uint32_t, Following> following_;          // by launch
};

}  // namespace cm384::npu
