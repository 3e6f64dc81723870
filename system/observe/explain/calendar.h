// When a server that serves one after another has time: what came first begins first. Who comes earlier than
// in the order of asking begins in the first idle moment there and takes as much of the idle times from then
// on as its service is long.
//
// The latest idle times are known exactly, older ones as how much there is of them in a microsecond. What is
// older still counts as taken, so no time is ever given twice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cm384::observe {

class Calendar {
 public:
  // Reserves a service of length `service` that may begin at `at`; returns its begin. All in ps.
  double reserve(double at, double service);

 private:
  static constexpr std::size_t kGaps = 64, kBins = 128;
  static constexpr double kBin = 1'000'000;  // ps
  struct Gap {
    double begin = 0, end = 0;
  };

  double reserve_idle_time(double at, double service);
  void add(const Gap& gap);
  void forget(const Gap& gap);
  void move_down();

  double free_ = 0;  // when all that it has taken is served
  std::array<Gap, 2 * kGaps> gaps_{};
  std::size_t first_ = 0, last_ = 0;       // of gaps_, in order of time
  std::array<std::int32_t, kBins> bin_{};  // the number of the microsecond that stands here, from 1
  std::array<float, kBins> idle_{};        // ps
};

}  // namespace cm384::observe
