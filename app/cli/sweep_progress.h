// How far a sweep is, on standard error: a line that moves where that is a terminal, a line now and then
// otherwise.
#pragma once

#include <chrono>
#include <cstddef>

namespace cm384::cli {

class SweepProgress {
 public:
  explicit SweepProgress(bool shown);
  ~SweepProgress() { clear(); }
  SweepProgress(const SweepProgress&) = delete;
  SweepProgress& operator=(const SweepProgress&) = delete;

  // `each_s`: mean time of a run, 0 if not known.
  void update(std::size_t done, std::size_t known, std::size_t running, double each_s);
  void clear();
  double seconds() const;

 private:
  using Steady = std::chrono::steady_clock;
  Steady::time_point begin_ = Steady::now();
  double next_ = 2;
  bool shown_, terminal_, drawn_ = false;
};

}  // namespace cm384::cli
