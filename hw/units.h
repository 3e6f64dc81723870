// Strong unit types of cm384. One place for literals and for conversions between cycles, bytes and time.
//
// Simulated time is an integer number of picoseconds from the start of the run. A core cycle (540.54 ps) and
// a flit (714.29 ps) are no whole numbers of picoseconds: count them as integers with Clock, which converts
// from a fixed origin (time 0) by rational arithmetic and rounds up once.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <numeric>

namespace cm384 {

// A point in, or a span of, simulated time. Resolution 1 ps; range about 106 days.
struct Time {
  std::int64_t ps = 0;

  constexpr auto operator<=>(const Time&) const = default;
  constexpr Time operator+(Time o) const { return {ps + o.ps}; }
  constexpr Time operator-(Time o) const { return {ps - o.ps}; }
  constexpr Time operator*(std::int64_t k) const { return {ps * k}; }
  constexpr Time& operator+=(Time o) {
    ps += o.ps;
    return *this;
  }
  constexpr Time& operator-=(Time o) {
    ps -= o.ps;
    return *this;
  }
  constexpr double ns() const { return static_cast<double>(ps) * 1e-3; }
  constexpr double us() const { return static_cast<double>(ps) * 1e-6; }
  static constexpr Time never() { return {std::numeric_limits<std::int64_t>::max()}; }
};

struct Frequency {
  std::int64_t hertz = 0;
  constexpr auto operator<=>(const Frequency&) const = default;
};

// A size in bytes.
struct Bytes {
  std::int64_t count = 0;
  constexpr auto operator<=>(const Bytes&) const = default;
};

// A data rate in bytes a second (GB/s is 10^9 bytes a second, as in the papers).
struct Bandwidth {
  std::int64_t bytes_per_second = 0;
  constexpr auto operator<=>(const Bandwidth&) const = default;
};

inline namespace literals {
constexpr Time operator""_ps(unsigned long long v) {
  return {static_cast<std::int64_t>(v)};
}
constexpr Time operator""_ns(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 1000};
}
constexpr Time operator""_us(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 1'000'000};
}
constexpr Time operator""_ms(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 1'000'000'000};
}
constexpr Bytes operator""_B(unsigned long long v) {
  return {static_cast<std::int64_t>(v)};
}
constexpr Bytes operator""_KiB(unsigned long long v) {
  return {static_cast<std::int64_t>(v) << 10};
}
constexpr Bytes operator""_MiB(unsigned long long v) {
  return {static_cast<std::int64_t>(v) << 20};
}
constexpr Bytes operator""_GiB(unsigned long long v) {
  return {static_cast<std::int64_t>(v) << 30};
}
constexpr Frequency operator""_MHz(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 1'000'000};
}
constexpr Frequency operator""_GHz(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 1'000'000'000};
}
constexpr Bandwidth operator""_GBps(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 1'000'000'000};
}
}  // namespace literals

// Ticks of a periodic event (a core cycle, a flit on a link) counted from time 0. Tick n starts at
// ceil(n * period); tick_at_or_after(t) is the smallest n with start(n) >= t. Exact for n below 2^40 and
// periods whose reduced numerator and denominator are below 2^22 (checked where a machine is read).
class Clock {
 public:
  constexpr Clock() = default;
  // One tick a cycle of `f`.
  constexpr explicit Clock(Frequency f) : Clock(1'000'000'000'000, f.hertz) {}
  // One tick for every `unit` bytes at `rate`, for example a 20 B flit at 28 GB/s.
  constexpr Clock(Bytes unit, Bandwidth rate)
      : Clock(unit.count * 1'000'000'000'000, rate.bytes_per_second) {}

  constexpr Time start(std::int64_t tick) const {
    return {(tick * numerator_ + denominator_ - 1) / denominator_};
  }
  constexpr std::int64_t tick_at_or_after(Time t) const {
    return (t.ps * denominator_ + numerator_ - 1) / numerator_;
  }
  // Whole ticks that fit a span, rounded up.
  constexpr std::int64_t ticks(Time span) const { return tick_at_or_after(span); }
  constexpr std::int64_t numerator() const { return numerator_; }
  constexpr std::int64_t denominator() const { return denominator_; }

 private:
  constexpr Clock(std::int64_t numerator, std::int64_t denominator)
      : numerator_(numerator / std::gcd(numerator, denominator)),
        denominator_(denominator / std::gcd(numerator, denominator)) {}

  std::int64_t numerator_ = 1000;  // period in ps = numerator / denominator
  std::int64_t denominator_ = 1;
};

}  // namespace cm384
