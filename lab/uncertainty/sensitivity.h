// Which unknown parameters move a result: groups without any effect are found first, elementary effects rank
// the rest, and Sobol indices share the variance out among the few that matter.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/uncertainty/morris.h"
#include "lab/uncertainty/statistics.h"
#include "lab/uncertainty/unknowns.h"

namespace cm384::uncertainty {

// The metric at points of the unit cube, a dimension per unknown; NaN where a run failed.
using Model = std::function<Point(const Points& points)>;

struct SensitivityOptions {
  std::size_t trajectories = 8;  // of the screening
  std::size_t keep = 8;          // parameters with Sobol indices; fewer than two: none
  std::size_t samples = 96;      // runs for these
  std::uint64_t seed = 1;
};

struct Sensitivity {
  double own = 0;  // the metric at the machine's own values
  struct Parameter {
    std::size_t unknown;  // index
    Effect effect;
    std::optional<double> first, total;  // Sobol indices
  };
  std::vector<Parameter> ranked;     // largest mean absolute effect first
  std::vector<std::size_t> inert;    // of groups without effect, in the order of the unknowns
  std::vector<std::size_t> refused;  // that this machine or study does not take
  std::size_t runs = 0, failed = 0;
  // Share of the variance that the surrogate predicts at runs that it was not made from; near 1 is good.
  std::optional<double> surrogate_quality;
};

// `cancelled` is asked between stages; nothing then. Throws InputError if the machine's own values give no
// number.
std::optional<Sensitivity> analyse(const std::vector<Unknown>& unknowns, const Model& model,
                                   const SensitivityOptions& options, const std::function<bool()>& cancelled);

}  // namespace cm384::uncertainty
