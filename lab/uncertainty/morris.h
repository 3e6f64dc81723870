// Screening by elementary effects (Morris 1991; Campolongo, Cariboni, Saltelli 2007 for the mean of absolute
// values): few runs per factor say which factors matter, and which do so by interaction or curvature.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cm384::uncertainty {

using Point = std::vector<double>;
using Points = std::vector<Point>;

// `trajectories` x (`factors` + 1) points of the unit cube on a grid of four levels. Of a trajectory each
// point differs from the one before in one factor, by 2/3, and each factor changes once.
Points morris_design(std::size_t factors, std::size_t trajectories, std::uint64_t seed);

// Of one factor, in the output's unit per whole range of the factor.
struct Effect {
  double mean = 0;           // mu
  double mean_absolute = 0;  // mu*
  double spread = 0;         // sigma, the standard deviation
  std::size_t count = 0;     // effects that they are made from
};

// By factor. `outputs` belong to the points of a Morris design; an output that is not finite has no effects.
std::vector<Effect> elementary_effects(const Points& design, std::span<const double> outputs);

}  // namespace cm384::uncertainty
