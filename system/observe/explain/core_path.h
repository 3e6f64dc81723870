// The paths of one core, vector or cube: of its scalar unit, its pipes, and the requests of its copies.
// npu_core/causality/core_causality.h follows the same events for what each copy waited for.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "hw/machine.h"
#include "npu_core/causality/core_causality.h"
#include "npu_core/pipes/pipe_observer.h"
#include "system/observe/explain/fifo.h"
#include "system/observe/explain/path.h"

namespace cm384::observe {

// What is the same for all cores of a kind.
struct CoreKind {
  npu::PipeShape shape;
  struct Engine {
    double overhead = 0, interval = 0, sector = 0;  // ps
    std::int64_t local_window = 0;                  // B
    std::size_t remote_window = 0;
  };
  std::array<Engine, npu::PipeShape::kMostEngines> engines;
  struct Unit {
    Part part = Part::other;
    Resource resource = Resource::none;
  };
  std::array<Unit, npu::kMostPipes> units{};  // by pipe

  CoreKind(const hw::Machine& machine, bool cube);
};

class CorePath final : public npu::PipeObserver {
 public:
  CorePath(const Clock& clock, const CoreKind& kind);

  void begin(const Path& start);
  const Path& scalar() const { return scalar_; }
  // The scalar unit has a line from `cycle` on until `end` (ps); `unloaded` of that an idle L2 takes.
  void filled(bool instruction, std::int64_t cycle, double end, double unloaded);

  // A request of an engine leaves at `at` (ps): its path. `remote`: to memory outside; `merges`: it is read
  // to be written whole.
  const Path& request(std::size_t engine, std::uint32_t units, bool remote, bool merges, double at);
  // The copy in hand.
  std::uint64_t copy(std::size_t engine) const { return engine_[engine].taken; }
  // The engine that a request to the own die's memory is of.
  std::size_t engine_of(bool write) const;
  bool reads(std::size_t engine) const { return engine == 0; }
  void local_done(std::size_t engine, std::uint32_t units, const Path& done);
  void remote_done(std::size_t engine, std::uint64_t copy, bool merged, const Path& done);
  const Path& leaving(bool write) const { return engine_[engine_of(write)].cursor; }

  Path take_cross_core_set(std::uint32_t flag);
  void cross_core_flag(std::uint32_t flag, const Path& path) { arrived_[flag].push_back(path); }
  // A write has touched what the scalar unit polls.
  void polled_write(const Path& path) {
    polled_ ? written_.join(path) : void(written_ = path);
    polled_ = true;
  }
  // The next copy reads what a loop polls for the first time; it finds what came by `path`.
  bool polls_first() { return std::exchange(polls_first_, false); }
  void finds(const Path& path) { engine_[0].ready.join(path); }
  double busy(int pipe) const { return busy_[static_cast<std::size_t>(pipe)]; }
  void forget_busy() { busy_.fill(0); }

  void scalar_parked(std::int64_t cycle) override;
  void pushed(int pipe, std::int64_t from, std::int64_t place, std::int64_t arrival) override;
  void left(const npu::PipeStep& step) override;
  void issued(int pipe, std::int64_t cycle) override;
  void flag_set(int pipe, std::uint32_t flag, std::int64_t cycle) override;
  void cross_core_set(int pipe, std::uint32_t mode, std::uint32_t flag, std::int64_t cycle) override;
  void scalar_waited_for_flag(std::uint32_t flag, std::int64_t from, std::int64_t to) override;
  void scalar_waited_for_cross_core(std::uint32_t flag, std::int64_t from, std::int64_t to) override;
  void scalar_waited_for_all(std::int64_t from, std::int64_t to) override;
  void scalar_polled(std::int64_t from, std::int64_t to) override;
  void poll_turn(bool first, std::int64_t cycle) override;

 private:
  static constexpr std::size_t kFlags = 16;
  struct Copy {
    std::uint64_t number = 0;
    Path complete;  // of its requests answered so far
  };
  struct Mark {
    Path path;
    std::uint64_t copies = 0;
  };
  struct Local {
    Path freed;
    std::uint32_t units = 0;
  };
  struct Engine {
    std::uint64_t taken = 0;
    Fifo<Copy> copies;
    Fifo<Mark> marks;
    Path complete;      // of the copies before the mark looked at last
    Path cursor;        // the next request may leave
    Path ready;         // of the copy in hand
    Path last_request;  // of the copy before
    bool begins = false, any_issued = false;
    Fifo<Local> window;
    std::int64_t window_bytes = 0;
    Path freed;
    Fifo<Path> answered;          // of remote requests, in the order of their answers
    std::uint64_t submitted = 0;  // remote requests
    Path merged;                  // the write before that was merged
    bool any_merged = false;
  };
  struct Queue {
    std::vector<Path> arrivals, places;
    std::size_t head = 0, tail = 0;
  };

  double start(std::int64_t cycle) const { return static_cast<double>(clock_.start(cycle).ps); }
  std::size_t next(std::size_t slot) const { return slot + 1 == kind_.shape.depth ? 0 : slot + 1; }
  Engine* engine(int pipe) {
    const std::int8_t n = number_of_engine_[static_cast<std::size_t>(pipe)];
    return n < 0 ? nullptr : &engine_[static_cast<std::size_t>(n)];
  }
  const CoreKind::Unit& unit(int pipe) const { return kind_.units[static_cast<std::size_t>(pipe)]; }
  void meet(Path& path, std::int64_t cycle, int pipe) const {
    path.meet(start(cycle), unit(pipe).part, unit(pipe).resource);
  }
  // No later than now; a path that has come further stays.
  void advance(Path& path, std::int64_t cycle, int pipe) const {
    if (start(cycle) > path.at) meet(path, cycle, pipe);
  }
  void reaches(std::int64_t cycle);
  void fold(Engine& engine, std::uint64_t copies);
  Path fired(int pipe, std::int64_t cycle);

  Clock clock_;
  const CoreKind& kind_;
  std::array<std::int8_t, npu::kMostPipes> number_of_engine_;
  Path scalar_;
  bool parked_ = false;
  // The polling loop under way: where it began, and what has been written to what it polls.
  Path before_polling_, written_;
  bool polled_ = false, polls_first_ = false;
  std::array<Path, npu::kMostPipes> pipe_;
  std::array<Queue, npu::kMostPipes> queue_;
  std::array<Engine, npu::PipeShape::kMostEngines> engine_;
  std::array<double, npu::kMostPipes> busy_{};
  std::array<std::int64_t, npu::kMostPipes> ends_{};  // of the last work, cycles
  std::vector<Fifo<Path>> flags_;
  std::array<Fifo<Path>, kFlags> set_, arrived_;
};

}  // namespace cm384::observe
