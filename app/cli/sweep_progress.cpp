#include "app/cli/sweep_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "app/cli/progress.h"
#include "base/text/standard_error.h"

namespace cm384::cli {
namespace {

constexpr double kTerminalPeriod = 0.5, kSweepProgressLinePeriod = 30;  // s

std::string points_left(std::size_t points, std::size_t at_a_time, double each_s) {
  if (each_s == 0 || at_a_time == 0) return "";
  const double left = static_cast<double>(points) * each_s / static_cast<double>(at_a_time);
  return seconds_left(left);
}

}  // namespace

SweepProgress::SweepProgress(bool shown) : shown_(shown), terminal_(isatty(STDERR_FILENO) != 0) {}

double SweepProgress::seconds() const {
  return std::chrono::duration<double>(Steady::now() - begin_).count();
}

void SweepProgress::clear() {
  if (!drawn_ || !terminal_) return;
  print_error("\r\033[K");
  drawn_ = false;
}

void SweepProgress::update(std::size_t done, std::size_t known, std::size_t running, double each_s) {
  const double now = seconds();
  if (!shown_ || now < next_) return;
  next_ = now + (terminal_ ? kTerminalPeriod : kSweepProgressLinePeriod);
  const std::string state = fmt::format("{} of {} points, {} running{}", done, known, running,
                                        points_left(known - done, running, each_s));
  if (terminal_) {
    print_error("\r{}\033[K", state);
  } else {
    print_error("cm384: {}\n", state);
  }
  drawn_ = true;
}

}  // namespace cm384::cli
