// Traces made of traces: ranks on other dies, times and sizes scaled, ranks cut out, repeated, and several
// jobs put side by side on one machine.
//
// The host does not survive: its threads, streams and kernels are bound to their dies' memory. What it began
// waits instead for all that was under way before the machine's last pause, or for the kernel before it on
// its die, as long as it did when recorded.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/traffic.h"

namespace cm384::traces {

struct ShapeOptions {
  std::string name;        // of the trace, for errors
  std::vector<int> dies;   // of ranks 0, 1, ...; a rank is a die of the trace, in the order of their numbers
  std::vector<int> ranks;  // that are kept, by number; empty: all
  double compute = 1;      // factor of durations without traffic and of delays after what was waited for
  double bytes = 1;        // factor of a transfer's bytes, at least one is left
  double rate = 1;         // of what begins at its recorded time
  int repeat = 1;          // each begins when the one before has ended
  Time offset{};           // all begins so much later
  int level = -1;          // service level of its transfers, in TrafficRecord::lane; -1: as it is
};

// One job: a trace, shaped. Records are numbered by themselves.
class ShapedTrace final : public TrafficSource {
 public:
  using Open = std::function<std::unique_ptr<TrafficSource>()>;
  // `rank_of`: rank of each die of the trace. `open` is called for each repetition.
  ShapedTrace(Open open, std::map<int, int> rank_of, ShapeOptions options);

  const TrafficHeader& header() const override { return source_->header(); }
  bool next(TrafficRecord& record) override;
  // Of the record given last: it is one of the trace, not a point that joins others.
  bool from_source() const { return from_source_; }
  // Waits for records that were left out.
  std::uint64_t forgotten() const { return forgotten_; }

 private:
  struct Joint {  // a point that others wait for
    std::uint64_t number = 0;
    Time at;
    bool there = false;
  };
  void shape(TrafficRecord& record);
  bool keeps(const TrafficRecord& record) const;
  void pause(Time at, bool rests);
  void emit(TrafficRecord record, bool from_source);
  Joint join(const std::vector<std::uint64_t>& on, Time delay, Time at, Unit unit);
  void begin_by_itself(TrafficRecord& record);
  Time scaled(Time time) const;
  std::uint16_t die_of(std::uint16_t old) const;
  std::uint64_t bytes_of(const TrafficRecord& record) const;

  Open open_;
  std::map<int, int> rank_of_;
  ShapeOptions options_;
  std::vector<bool> kept_ranks_;
  std::unique_ptr<TrafficSource> source_;
  int pass_ = 0;
  Time shift_{}, last_end_{};
  std::uint64_t read_ = 0, written_ = 0, forgotten_ = 0;
  std::vector<std::uint64_t> number_;  // ring over kReach: 1 + number here, 0: left out
  struct Ready {
    TrafficRecord record;
    bool from_source = false;
  };
  std::deque<Ready> ready_;
  bool from_source_ = false;
  std::unordered_map<std::uint64_t, Time> last_ones_;  // that nothing waits for yet, with their ends
  Joint pause_;                                        // all before it has ended
  struct Kernels {                                     // of a die
    std::uint64_t launch = ~std::uint64_t{0};
    std::vector<std::uint64_t> ended;
    Time at;
    Joint before;
  };
  std::map<std::uint16_t, Kernels> kernels_;
};

// Several jobs, in the order in which their records begin. Throws InputError where a wait would reach back
// too far.
class MergedTraces final : public TrafficSource {
 public:
  explicit MergedTraces(std::vector<std::unique_ptr<TrafficSource>> jobs);
  const TrafficHeader& header() const override { return jobs_.front().source->header(); }
  bool next(TrafficRecord& record) override;

 private:
  struct Job {
    std::unique_ptr<TrafficSource> source;
    TrafficRecord record;
    bool there = false;
    std::uint64_t read = 0;
    std::vector<std::uint64_t> number;  // ring over kReach
  };
  std::vector<Job> jobs_;
  std::uint64_t written_ = 0;
};

}  // namespace cm384::traces
