#include "workloads/fabric/switch_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/text/error.h"
#include "ub_fabric/routing.h"

namespace cm384::studies {
namespace {

constexpr std::uint64_t kHotOneIn = 5;

// A random cycle through all ports (Sattolo's shuffle): nobody sends to itself.
std::vector<unsigned> random_cycle(unsigned ports, std::uint64_t seed) {
  std::vector<unsigned> to(ports);
  std::iota(to.begin(), to.end(), 0u);
  for (unsigned i = ports - 1; i > 0; --i) std::swap(to[i], to[ub::mix(seed + i) % i]);
  return to;
}

[[noreturn]] void refuse_pattern(std::string_view name, unsigned ports, std::string_view allowed) {
  throw InputError(
      fmt::format("--pattern {}: is not defined for {} senders; allowed: {} of them", name, ports, allowed));
}

unsigned transposed(unsigned input, unsigned ports) {
  const auto side = static_cast<unsigned>(std::lround(std::sqrt(static_cast<double>(ports))));
  if (side * side != ports) refuse_pattern("transpose", ports, "a square number");
  return input % side * side + input / side;
}

unsigned bits_reversed(unsigned input, unsigned ports) {
  if (!std::has_single_bit(ports)) refuse_pattern("bitrev", ports, "a power of two");
  unsigned output = 0;
  for (unsigned bit = 1; bit < ports; bit *= 2) output = output * 2 + (input & bit ? 1 : 0);
  return output;
}

unsigned shuffled(unsigned input, unsigned ports) {
  if (ports % 2 != 0) refuse_pattern("shuffle", ports, "an even number");
  return input + 1 == ports ? input : static_cast<unsigned>(std::uint64_t{2} * input % (ports - 1));
}

// Every dimension's place moved on by `step(k)` of its k places.
template <class Step>
std::vector<unsigned> moved(const PatternPorts& of, Step&& step) {
  std::vector<unsigned> lengths = of.lengths;
  if (lengths.empty()) lengths.push_back(of.ports);
  const unsigned places = std::accumulate(lengths.begin(), lengths.end(), 1u, std::multiplies<>());
  const unsigned per_place = of.ports / places;
  std::vector<unsigned> to(of.ports);
  for (unsigned input = 0; input < of.ports; ++input) {
    unsigned output = 0, stride = 1;
    for (const unsigned length : lengths) {
      output += (input / per_place / stride % length + step(length)) % length * stride;
      stride *= length;
    }
    to[input] = output * per_place + input % per_place;
  }
  return to;
}

unsigned half_way(unsigned length) {
  return (length + 1) / 2 - 1;
}

std::vector<unsigned> tornado(const PatternPorts& of) {
  // Where no dimension has three places, half way is nowhere: to the next one.
  const bool still = of.lengths.empty()
                         ? half_way(of.ports) == 0
                         : std::ranges::all_of(of.lengths, [](unsigned k) { return half_way(k) == 0; });
  return moved(of, [still](unsigned length) { return still ? 1u : half_way(length); });
}

std::vector<unsigned> one_each(Pattern pattern, const PatternPorts& of) {
  switch (pattern) {
    case Pattern::permutation:
      return random_cycle(of.ports, of.seed);
    case Pattern::tornado:
      return tornado(of);
    case Pattern::neighbor:
      return moved(of, [](unsigned) { return 1u; });
    case Pattern::transpose:
    case Pattern::bitcomp:
    case Pattern::bitrev:
    case Pattern::shuffle: {
      std::vector<unsigned> to;
      for (unsigned input = 0; input < of.ports; ++input)
        to.push_back(pattern == Pattern::transpose ? transposed(input, of.ports)
                     : pattern == Pattern::bitrev  ? bits_reversed(input, of.ports)
                     : pattern == Pattern::shuffle ? shuffled(input, of.ports)
                                                   : of.ports - 1 - input);
      return to;
    }
    case Pattern::uniform:
    case Pattern::hotspot:
    case Pattern::incast:
    case Pattern::all_to_all:
      return {};
  }
  return {};
}

}  // namespace

const std::vector<std::string>& pattern_names() {
  static const std::vector<std::string> names{"uniform",    "randperm",   "hotspot", "incast", "tornado",
                                              "neighbor",   "transpose",  "bitcomp", "bitrev", "shuffle",
                                              "all-to-all", "permutation"};  // randperm
  return names;
}

Pattern pattern(const std::string& name) {
  if (name == "permutation") return Pattern::permutation;
  const auto& names = pattern_names();
  return static_cast<Pattern>(std::find(names.begin(), names.end(), name) - names.begin());
}

Destinations::Destinations(Pattern pattern, const PatternPorts& ports)
    : pattern_(pattern), ports_(ports.ports), hot_(ports.hot), fixed_(one_each(pattern, ports)) {
  if (hot_ < 1 || hot_ >= ports_)
    throw InputError(
        fmt::format("--hotspots: {} of {} do not stand out; allowed: 1 to {}", hot_, ports_, ports_ - 1));
}

bool Destinations::sends(unsigned input) const {
  if (pattern_ == Pattern::incast) return input != 0;
  return fixed_.empty() || fixed_[input] != input;
}

unsigned Destinations::other(unsigned input, std::uint64_t random) const {
  const auto k = static_cast<unsigned>(random % (ports_ - 1));
  return k < input ? k : k + 1;
}

double Destinations::share(unsigned input, unsigned output) const {
  if (input == output || !sends(input)) return 0;
  if (!fixed_.empty()) return fixed_[input] == output ? 1 : 0;
  const double even = 1.0 / (ports_ - 1);
  if (pattern_ == Pattern::incast) return output == 0 ? 1 : 0;
  if (pattern_ != Pattern::hotspot || is_hot(input)) return even;
  return (1 - 1.0 / kHotOneIn) * even + (is_hot(output) ? 1.0 / kHotOneIn / hot_ : 0);
}

unsigned Destinations::pick(unsigned input, std::uint64_t number, std::uint64_t random) const {
  if (!fixed_.empty()) return fixed_[input];
  switch (pattern_) {
    case Pattern::incast:
      return 0;
    case Pattern::all_to_all:
      return static_cast<unsigned>((input + 1 + number % (ports_ - 1)) % ports_);
    case Pattern::hotspot:
      if (random % kHotOneIn == 0 && !is_hot(input)) return hot(random / kHotOneIn % hot_);
      return other(input, random / kHotOneIn);
    default:
      return other(input, random);
  }
}

}  // namespace cm384::studies
