// What the model is off by whatever its parameters, learnt from calibration figures alone: by family, a
// factor that nine in ten of such figures stay within. Figures of validation have no part in it
// (docs/uncertainty.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/uncertainty/interval.h"

namespace cm384::uncertainty {

// One calibration figure and what the members give of it.
struct Evidence {
  std::string id, family;
  double published = 0;
  Interval members;  // the middle 90 % of them
};

struct FamilyDiscrepancy {
  std::string family;    // empty: of figures whose family has no calibration figure
  std::size_t rows = 0;  // calibration figures that it was learnt from
  // Of these, inside intervals where the share was learnt from all others: of the empty family, where it was
  // learnt from other families.
  std::size_t held = 0;
  double share = 0;  // a figure is at most 1 + share times, and at least 1 / (1 + share) of, the prediction
};

// In the order of families' names, the empty one first. Logarithms of published over predicted are taken as
// normal with a variance that is the members' and the family's own together. The family's own is its mean
// square beyond the members', drawn towards the mean of the other families by the weight of one row; the
// factor is that of Student's t, with a degree of freedom for each row and one. Without evidence: none.
std::vector<FamilyDiscrepancy> learn(const std::vector<Evidence>& evidence);

// Of this family, or what is said where it has none. At least one of `all`.
const FamilyDiscrepancy& discrepancy_of(const std::vector<FamilyDiscrepancy>& all, std::string_view family);

// Of what consists of parts, each off by its own family's share whatever the others are: variances of
// logarithms, weighted by the squares of the parts' shares of the time. A part that comes again is one part.
struct Part {
  std::string family;
  double time = 0;
};
double share_of_parts(const std::vector<FamilyDiscrepancy>& all, const std::vector<Part>& parts);

// Independent of what the members differ in: logarithms of the two half widths are added as squares.
Interval widened(const Interval& members, double share);

}  // namespace cm384::uncertainty
