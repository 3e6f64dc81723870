// Closed forms of the noise that rounding makes, in dB of signal to noise.
#pragma once

#include <cmath>
#include <initializer_list>

namespace cm384::testing {

// Of noises that add.
inline double added_noises(std::initializer_list<double> ratios) {
  double noise = 0;
  for (const double ratio : ratios) noise += std::pow(10, -ratio / 10);
  return -10 * std::log10(noise);
}

// Of steps of a 127th of the largest value, which is `crest` times the root mean square: INT8.
inline double noise_of_crest(double crest) {
  return 20 * std::log10(127 * std::sqrt(12.0) / crest);
}

}  // namespace cm384::testing
