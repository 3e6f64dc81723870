// What OpenTURNS gives: designs, Sobol indices, surrogates. It stands behind this interface in a library of
// its own, `lib/cm384/libcm384_statistics.so`, that is loaded when one of these is asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "lab/uncertainty/morris.h"

namespace cm384::uncertainty {

// Shares of the output's variance, by factor.
struct SobolIndices {
  Point first;  // by the factor alone
  Point total;  // with all its interactions
};

// A function that stands for a model, made from some of its values.
class Surrogate {
 public:
  Surrogate() = default;
  Surrogate(const Surrogate&) = delete;
  Surrogate& operator=(const Surrogate&) = delete;
  virtual ~Surrogate() = default;

  struct Estimate {
    double mean = 0;
    double variance = 0;  // of what is not known of the model there
  };
  virtual Estimate at(const Point& point) const = 0;
};

// Points lie in the unit cube. The same arguments give the same results.
class Statistics {
 public:
  Statistics() = default;
  Statistics(const Statistics&) = delete;
  Statistics& operator=(const Statistics&) = delete;
  virtual ~Statistics() = default;

  // `count` points, each factor's range cut into as many strata.
  virtual Points latin_hypercube(std::size_t factors, std::size_t count, std::uint64_t seed) = 0;
  // `size` x (`factors` + 2) points, and the indices that a model's values at these give. At least two
  // factors.
  virtual Points sobol_experiment(std::size_t factors, std::size_t size) = 0;
  virtual SobolIndices sobol_indices(const Points& experiment, const Point& values, std::size_t size) = 0;
  // A Gaussian process with a Matern covariance through the values.
  virtual std::unique_ptr<Surrogate> kriging(const Points& points, const Point& values) = 0;
};

// Loads the library. Throws InputError, saying what builds it.
Statistics& statistics();

}  // namespace cm384::uncertainty

// What the library has: its interface's version, and the one object. The host and the library come from one
// tree.
extern "C" {
const char* cm384_statistics_abi();
cm384::uncertainty::Statistics* cm384_statistics();
}

namespace cm384::uncertainty {
inline constexpr std::string_view kStatisticsAbi = "cm384-statistics-1";
}  // namespace cm384::uncertainty
