// How far a run is, on standard error: a bar where that is a terminal, plain lines otherwise, nothing for
// runs of less than two seconds.
#pragma once

#include <chrono>
#include <string>

#include "workloads/frame/study.h"

namespace cm384::cli {

// ", about 40 s left" of work of which `fraction` was done in so many seconds, for the end of a line. Empty
// while that is too little to tell: less than a fiftieth, or less than two seconds.
std::string time_left(double fraction, double seconds);
// The text for a number of seconds.
std::string seconds_left(double seconds);
// "40 s", "20 min", "1.5 h".
std::string duration_text(double seconds);

class ConsoleProgress final : public studies::Progress {
 public:
  ConsoleProgress();
  ~ConsoleProgress() override;
  ConsoleProgress(const ConsoleProgress&) = delete;
  ConsoleProgress& operator=(const ConsoleProgress&) = delete;

  void update(double fraction, Time simulated, std::uint64_t events) override;
  // Takes the bar off the terminal, before other lines are printed; the next update draws it again.
  void clear();
  double seconds() const;  // since construction

 private:
  using Steady = std::chrono::steady_clock;
  Steady::time_point begin_ = Steady::now();
  double next_;  // seconds at which something is drawn again
  bool terminal_;
  bool drawn_ = false;
};

}  // namespace cm384::cli
