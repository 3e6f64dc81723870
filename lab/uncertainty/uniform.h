// Draws that are the same with every standard library.
#pragma once

#include <random>

namespace cm384::uncertainty {

// A number drawn evenly from [0, 1).
inline double uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

}  // namespace cm384::uncertainty
