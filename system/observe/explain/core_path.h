// The paths of one core, vector or cube: the rules of its pipes over paths, and the requests of its copies.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "hw/machine.h"
#include "npu_core/pipes/pipe_automaton.h"
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

// A copy, and of its requests those answered so far.
struct CopyPath {
  std::uint64_t number = 0;
  Path complete;
};

class CorePath final : public npu::PipeAutomaton<CorePath, Path, CopyPath> {
 public:
  CorePath(const Clock& clock, const CoreKind& kind);

  void begin(const Path& start);
  // The scalar unit has a line from `cycle` on until `end` (ps); `unloaded` of that an idle L2 takes.
  void filled(bool instruction, std::int64_t cycle, double end, double unloaded);

  // A request of an engine leaves at `at` (ps): its path. `remote`: to memory outside; `merges`: it is read
  // to be written whole.
  const Path& request(std::size_t engine, std::uint32_t units, bool remote, bool merges, double at);
  // The engine that a request to the own die's memory is of.
  std::size_t engine_of(bool write) const;
  bool reads(std::size_t engine) const { return engine == 0; }
  void local_done(std::size_t engine, std::uint32_t units, const Path& done);
  void remote_done(std::size_t engine, std::uint64_t copy, bool merged, const Path& done);
  // Where the request stands that leaves now, before request() is told of it.
  Path leaving(bool write) const;

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

  void issued(int pipe, std::int64_t cycle) override;
  void scalar_polled(std::int64_t from, std::int64_t to) override;
  void poll_turn(bool first, std::int64_t cycle) override;

 private:
  friend PipeAutomaton;

  struct Local {
    Path freed;
    std::uint32_t units = 0;
  };
  // What an engine asks for.
  struct Requests {
    Path cursor;  // the next may leave, if it waits for no answer
    Path leaves;  // the last one
    bool begins = false;
    bool waited = false;  // for an answer, the last one
    npu::Fifo<Local> window;
    std::int64_t window_bytes = 0;
    Path freed;
    npu::Fifo<Path> answered;     // of remote requests, in the order of their answers
    std::uint64_t submitted = 0;  // remote requests
    Path merged;                  // the write before that was merged
    bool any_merged = false;
  };

  double start(std::int64_t cycle) const { return static_cast<double>(clock_.start(cycle).ps); }
  const CoreKind::Unit& unit(int pipe) const { return kind_.units[static_cast<std::size_t>(pipe)]; }
  void advance(Path& path, std::int64_t cycle, int pipe) const {
    if (start(cycle) > path.at) path.meet(start(cycle), unit(pipe).part, unit(pipe).resource);
  }
  Path nothing() const { return scalar_; }
  CopyPath copy_of(std::uint64_t number, const Path& own) const { return {number, own}; }
  bool complete(const CopyPath&) const { return true; }
  const Path& completion(const CopyPath& copy) const { return copy.complete; }
  void join_idle(Path& scalar, int pipe, std::int64_t to) const;
  void copy_taken(std::size_t engine, const npu::PipeStep& step);
  void worked(const npu::PipeStep& step);

  Clock clock_;
  const CoreKind& kind_;
  // The polling loop under way: where it began, and what has been written to what it polls.
  Path before_polling_, written_;
  bool polled_ = false, polls_first_ = false;
  std::array<Requests, npu::PipeShape::kMostEngines> requests_;
  std::array<double, npu::kMostPipes> busy_{};
  std::array<std::int64_t, npu::kMostPipes> ends_{};  // of the last work, cycles
};

}  // namespace cm384::observe
