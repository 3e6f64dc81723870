// The random numbers of traces and test inputs: the same on every machine, unlike the standard distributions.
#pragma once

#include <cstdint>

namespace cm384::traces {

// SplitMix64 (Steele, Lea, Flood 2014): one 64-bit state, passes BigCrush; also turns a seed and stream
// numbers into well mixed seeds.
constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_(seed) {}
  // Stream `stream` of a seed; streams do not overlap in practice.
  constexpr Random(std::uint64_t seed, std::uint64_t stream)
      : state_(mix(seed + 0x9e3779b97f4a7c15u) ^ mix(stream * 0xd1342543de82ef95u + 1)) {}

  constexpr std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }
  // 0 .. bound - 1, every value equally likely. `bound` is at least 1.
  constexpr std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t reject = (0 - bound) % bound;  // 2^64 mod bound
    for (;;) {
      const std::uint64_t value = next();
      if (value >= reject) return value % bound;
    }
  }
  // [0, 1), 53 bits.
  constexpr double real() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace cm384::traces
