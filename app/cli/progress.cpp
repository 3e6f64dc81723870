#include "app/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/text/standard_error.h"

namespace cm384::cli {
namespace {

constexpr double kSilence = 2.0;  // seconds
constexpr double kBarPeriod = 0.2, kProgressLinePeriod = 10.0;
constexpr int kBarWidth = 30;

std::string bar(double fraction) {
  const int full = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * kBarWidth);
  return fmt::format("[{:#<{}}{:.<{}}] {:3.0f} % ", "", full, "", kBarWidth - full, fraction * 100);
}

}  // namespace

std::string seconds_left(double seconds) {
  if (seconds < 100) return fmt::format(", about {:.0f} s left", seconds);
  if (seconds < 6000) return fmt::format(", about {:.0f} min left", seconds / 60);
  return fmt::format(", about {:.0f} h left", seconds / 3600);
}

std::string duration_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string time_left(double fraction, double seconds) {
  constexpr double kLeastFraction = 0.02;
  if (fraction < kLeastFraction || seconds < kSilence) return "";
  return seconds_left(std::max(0.0, seconds / fraction - seconds));
}

ConsoleProgress::ConsoleProgress() : next_(kSilence), terminal_(isatty(STDERR_FILENO) != 0) {}

ConsoleProgress::~ConsoleProgress() {
  clear();
}

void ConsoleProgress::clear() {
  if (!drawn_ || !terminal_) return;
  print_error("\r\033[K");
  drawn_ = false;
}

double ConsoleProgress::seconds() const {
  return std::chrono::duration<double>(Steady::now() - begin_).count();
}

void ConsoleProgress::update(double fraction, Time simulated, std::uint64_t events) {
  const double now = seconds();
  if (now < next_) return;
  next_ = now + (terminal_ ? kBarPeriod : kProgressLinePeriod);
  // Unknown numbers are left out; a service simulates minutes.
  std::string state;
  if (simulated > Time{})
    state += simulated.us() < 1e6 ? fmt::format("{:.1f} us simulated", simulated.us())
                                  : fmt::format("{:.1f} s simulated", simulated.us() * 1e-6);
  if (events > 0) state += fmt::format(", {:.2f} M events/s", static_cast<double>(events) * 1e-6 / now);
  state += time_left(fraction, now);
  if (state.starts_with(", ")) state.erase(0, 2);
  if (terminal_) {
    print_error("\r{}{}\033[K", fraction >= 0 ? bar(fraction) : "", state);
  } else {
    if (fraction >= 0) state.insert(0, fmt::format("{:.0f} %{}", fraction * 100, state.empty() ? "" : ", "));
    print_error("cm384: {}\n", state);
  }
  drawn_ = true;
}

}  // namespace cm384::cli
