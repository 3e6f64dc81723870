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

// A data rate in bytes per second (GB/s is 10^9 bytes per second, as in the papers).
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
constexpr Time operator""_s(unsigned long long v) {
  return {static_cast<std::int64_t>(v) * 1'000'000'000'000};
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
// ceil(n * period); tick_at_or_after(t) is the smallest n with start(n) >= t. Exact for every n >= 0 whose
// start fits a Time: a product beyond 64 bits is formed in 128. Rates must be above 0.
class Clock {
 public:
  constexpr Clock() = default;
  // One tick a cycle of `f`.
  constexpr explicit Clock(Frequency f) : Clock(1, f.hertz) {}
  // One tick for every `unit` bytes at `rate`, for example a 20 B flit at 28 GB/s. A unit has at most 9.2 MB.
  constexpr Clock(Bytes unit, Bandwidth rate) : Clock(unit.count, rate.bytes_per_second) {}

  constexpr Time start(std::int64_t tick) const {
    return {scale(tick, numerator_, denominator_ - 1, denominator_)};
  }
  // Tick n starts after t - 1 ps where n > (t - 1 ps) / period: rounding t / period up would give n + 1 for
  // most of the starts themselves, since they were rounded up.
  constexpr std::int64_t tick_at_or_after(Time t) const {
    return t.ps <= 0 ? 0 : scale(t.ps - 1, denominator_, 0, numerator_) + 1;
  }
  // The fewest whole ticks from time 0 that cover a span.
  constexpr std::int64_t ticks(Time span) const { return tick_at_or_after(span); }
  // The period in ps as a reduced fraction.
  constexpr std::int64_t numerator() const { return numerator_; }
  constexpr std::int64_t denominator() const { return denominator_; }

 private:
  static constexpr std::int64_t kPsPerSecond = 1'000'000'000'000;

  // Period of `units` things at `rate` of them per second.
  constexpr Clock(std::int64_t units, std::int64_t rate) {
    const std::int64_t common = std::gcd(units, rate);
    const std::int64_t rest = std::gcd(kPsPerSecond, rate / common);
    numerator_ = (units / common) * (kPsPerSecond / rest);
    denominator_ = rate / common / rest;
  }

  // (n * by + add) / over, rounded down, formed in 128 bits where 64 are too few.
  static constexpr std::int64_t scale(std::int64_t n, std::int64_t by, std::int64_t add, std::int64_t over) {
    std::int64_t sum = 0;
    if (!__builtin_mul_overflow(n, by, &sum) && !__builtin_add_overflow(sum, add, &sum)) return sum / over;
    __extension__ using Wide = __int128;
    return static_cast<std::int64_t>((static_cast<Wide>(n) * by + add) / over);
  }

  std::int64_t numerator_ = 1000;
  std::int64_t denominator_ = 1;
};

}  // namespace cm384
