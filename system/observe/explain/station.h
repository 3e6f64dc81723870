// An HBM channel, as paths meet it: it serves one after another, but how long depends on rows and banks,
// which the log does not have.
//
// At half its own service time what it serves keeps its order. Where something else is twice as fast, cores
// come in another order: a request then waits as long as it did, longer where the server is busier then, and
// where it has no time left, until it has. Its time is counted in short bins.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "system/observe/explain/path.h"

namespace cm384::observe {

class Station {
 public:
  // A path comes; in the run it was served from `start` (ps) on, for `service`. What of its wait is not that
  // for those before it is `otherwise`, and `slowed_by`'s.
  void pass(Path& path, double start, double service, Part part, Resource resource, Part otherwise,
            Resource slowed_by = Resource::none);
  double busy() const { return busy_; }
  void forget_busy() { busy_ = 0; }

 private:
  static constexpr std::size_t kBins = 64;
  static constexpr double kBin = 500'000;  // ps
  struct Bins {
    std::array<std::int32_t, kBins> number{};  // of the bin that stands here, from 1
    std::array<float, kBins> used{};           // ps
    double latest = 0, recent = 0;             // ps: of the services before, fading
    // How long one waits about then, relative to other times; one comes.
    double load(double at, double service);
    // When a service that could begin at `at` does.
    double reserve(double at, double service);
  };

  Path free_;
  bool used_ = false;
  double busy_ = 0;
  Bins load_;  // of the run
  std::unique_ptr<std::array<Bins, kResources>> bins_;
};

}  // namespace cm384::observe
