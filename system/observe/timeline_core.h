// The lanes of one core in a timeline.
#pragma once

#include <array>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "npu_core/cluster/core.h"
#include "npu_core/pipes/pipe_observer.h"
#include "npu_core/pipes/pipe_queue.h"
#include "system/observe/timeline.h"

namespace cm384::observe {

class CoreLanes final : public npu::PipeObserver {
 public:
  // A cube core's is numbered behind the vector cores.
  CoreLanes(Timeline& out, int die, const npu::Core& core, bool cube, const Clock& clock);

  // The block has ended.
  void end();
  int die() const { return die_; }

  void scalar_parked(std::int64_t cycle) override;
  void pushed(int pipe, std::int64_t from, std::int64_t place, std::int64_t arrival) override;
  void left(const npu::PipeStep& step) override;
  void issued(int pipe, std::int64_t cycle) override;
  void flag_set(int pipe, std::uint32_t flag, std::int64_t cycle) override;
  void scalar_waited_for_flag(std::uint32_t flag, std::int64_t from, std::int64_t to) override;
  void scalar_waited_for_cross_core(std::uint32_t flag, std::int64_t from, std::int64_t to) override;
  void scalar_waited_for_all(std::int64_t from, std::int64_t to) override;
  void scalar_waited_for_pipe(int pipe, std::int64_t from, std::int64_t to) override;
  void scalar_polled(std::int64_t from, std::int64_t to) override;
  void phase(std::uint32_t number, std::int64_t cycle) override;

 private:
  enum Lane : int { kScalar, kVector, kCube, kMte1, kMte2, kMte3, kFixp, kPhase };
  struct ArrowEnd {
    int lane = 0;
    Time at;  // within a slice of the lane
  };
  struct Pipe {
    std::int64_t begin = 0, end = 0;  // of the last slice
    bool any = false;
    // That end in the next slice, from a cycle on.
    std::vector<std::pair<ArrowEnd, std::int64_t>> arrows;
    std::string name, arguments;  // of the copy in hand
    std::int64_t ready = 0;
  };

  int lane_of(int pipe) const;
  int lane(int of) const;
  void show(int pipe, std::string_view name, std::int64_t begin, std::int64_t end,
            std::string_view arguments = {});
  void scalar_waits(std::string_view name, std::int64_t from, std::int64_t to);
  std::string place_of(std::uint64_t pc) { return out_.place_of(die_, watched_.launch(), pc); }
  void arrow(const ArrowEnd& from, const ArrowEnd& to);
  void end_arrow(int pipe, std::uint32_t flag, std::int64_t cycle);

  Timeline& out_;
  int die_, core_;
  const npu::Core& watched_;
  bool cube_;
  Clock clock_;
  std::array<Pipe, npu::kMostPipes> pipes_;
  std::vector<std::deque<ArrowEnd>> flags_;  // where arrows begin that have not ended
  std::int64_t scalar_since_ = -1, parked_ = -1, last_ = 0;
  std::int64_t phase_since_ = 0;
  int phase_ = -1;
};

}  // namespace cm384::observe
