#include "studies/switch_pattern.h"

#include <algorithm>
#include <numeric>

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

}  // namespace

const std::vector<std::string>& pattern_names() {
  static const std::vector<std::string> names{"uniform", "permutation", "hotspot", "incast", "tornado"};
  return names;
}

Pattern pattern(const std::string& name) {
  const auto& names = pattern_names();
  return static_cast<Pattern>(std::find(names.begin(), names.end(), name) - names.begin());
}

Destinations::Destinations(Pattern pattern, unsigned ports, std::uint64_t seed)
    : pattern_(pattern), ports_(ports) {
  if (pattern == Pattern::permutation) fixed_ = random_cycle(ports, seed);
  if (pattern == Pattern::tornado) {
    for (unsigned i = 0; i < ports; ++i) fixed_.push_back((i + std::max(1u, (ports + 1) / 2 - 1)) % ports);
  }
}

unsigned Destinations::other(unsigned input, std::uint64_t random) const {
  const auto k = static_cast<unsigned>(random % (ports_ - 1));
  return k < input ? k : k + 1;
}

double Destinations::share(unsigned input, unsigned output) const {
  if (input == output || !sends(input)) return 0;
  const double even = 1.0 / (ports_ - 1);
  switch (pattern_) {
    case Pattern::uniform:
      return even;
    case Pattern::permutation:
    case Pattern::tornado:
      return fixed_[input] == output ? 1 : 0;
    case Pattern::hotspot:
      if (input == 0) return even;
      return (1 - 1.0 / kHotOneIn) * even + (output == 0 ? 1.0 / kHotOneIn : 0);
    case Pattern::incast:
      return output == 0 ? 1 : 0;
  }
  return 0;
}

unsigned Destinations::pick(unsigned input, std::uint64_t random) const {
  switch (pattern_) {
    case Pattern::uniform:
      return other(input, random);
    case Pattern::permutation:
    case Pattern::tornado:
      return fixed_[input];
    case Pattern::hotspot:
      if (random % kHotOneIn == 0 && input != 0) return 0;
      return other(input, random / kHotOneIn);
    case Pattern::incast:
      return 0;
  }
  return 0;
}

}  // namespace cm384::studies
