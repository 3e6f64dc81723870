#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace cm384::cli {
namespace {

constexpr double kSilence = 2.0;  // seconds
constexpr double kBarPeriod = 0.2, kProgressLinePeriod = 10.0;
constexpr int kBarWidth = 30;

std::string time_left(double fraction, double seconds) {
  if (fraction <= 0) return "";
  return fmt::format(", {:.0f} s left", std::max(0.0, seconds / fraction - seconds));
}

std::string bar(double fraction) {
  const int full = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * kBarWidth);
  return fmt::format("[{:#<{}}{:.<{}}] {:3.0f} % ", "", full, "", kBarWidth - full, fraction * 100);
}

}  // namespace

ConsoleProgress::ConsoleProgress() : next_(kSilence), terminal_(isatty(STDERR_FILENO) != 0) {}

ConsoleProgress::~ConsoleProgress() {
  clear();
}

void ConsoleProgress::clear() {
  if (!drawn_ || !terminal_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

double ConsoleProgress::seconds() const {
  return std::chrono::duration<double>(Steady::now() - begin_).count();
}

void ConsoleProgress::update(double fraction, Time simulated, std::uint64_t events) {
  const double now = seconds();
  if (now < next_) return;
  next_ = now + (terminal_ ? kBarPeriod : kProgressLinePeriod);
  const std::string state = fmt::format("{:.1f} us simulated, {:.2f} M events/s{}", simulated.us(),
                                        static_cast<double>(events) * 1e-6 / now, time_left(fraction, now));
  if (terminal_) {
    fmt::print(stderr, "\r{}{}\033[K", fraction >= 0 ? bar(fraction) : "", state);
    std::fflush(stderr);
  } else {
    fmt::print(stderr, "cm384: {}{}\n", fraction >= 0 ? fmt::format("{:.0f} %, ", fraction * 100) : "",
               state);
  }
  drawn_ = true;
}

}  // namespace cm384::cli
