#include "lab/uncertainty/discrepancy.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <map>
#include <numeric>

namespace cm384::uncertainty {
namespace {

constexpr double kNormal =
    1.6448536269514722;           // nine in ten of a normal distribution lie within so many sigma
constexpr double kPriorRows = 1;  // what the other families weigh against a family's own rows

// Of a family's own variances, as logarithms.
using Squares = std::map<std::string, std::vector<double>>;

// What is left of a figure's squared error once the members' own variance is taken off; may be negative.
double square_beyond(const Evidence& one) {
  const double middle = (std::log(one.members.low) + std::log(one.members.high)) / 2;
  const double spread = (std::log(one.members.high) - std::log(one.members.low)) / 2 / kNormal;
  return std::pow(std::log(one.published) - middle, 2) - spread * spread;
}

double average_of(const std::vector<double>& values) {
  return values.empty()
             ? 0
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The mean over families, each as much as another.
double pooled(const Squares& squares, const std::string& without) {
  std::vector<double> variances;
  for (const auto& [family, own] : squares) {
    if (family != without && !own.empty()) variances.push_back(std::max(0.0, average_of(own)));
  }
  return average_of(variances);
}

double factor_of(double variance, double degrees) {
  const boost::math::students_t_distribution<double> distribution(degrees);
  return std::exp(boost::math::quantile(distribution, 0.95) * std::sqrt(variance)) - 1;
}

double share_in(const Squares& squares, const std::string& family) {
  const auto own = squares.find(family);
  if (own == squares.end() || own->second.empty()) {
    const auto families = static_cast<double>(
        std::ranges::count_if(squares, [](const auto& one) { return !one.second.empty(); }));
    return factor_of(pooled(squares, family), std::max(1.0, families));
  }
  const auto rows = static_cast<double>(own->second.size());
  // Where there is no other family, its own rows say all.
  const double others = squares.size() > 1 ? pooled(squares, family) : std::max(0.0, average_of(own->second));
  const double variance =
      (rows * std::max(0.0, average_of(own->second)) + kPriorRows * others) / (rows + kPriorRows);
  return factor_of(variance, rows + kPriorRows);
}

bool holds(const Evidence& one, double share) {
  const Interval wide = widened(one.members, share);
  return one.published >= wide.low && one.published <= wide.high;
}

}  // namespace

std::vector<FamilyDiscrepancy> learn(const std::vector<Evidence>& evidence) {
  Squares squares;
  for (const Evidence& one : evidence) squares[one.family].push_back(square_beyond(one));
  if (evidence.empty()) return {};
  std::vector<FamilyDiscrepancy> all{{"", evidence.size(), 0, share_in(squares, "")}};
  for (const auto& [family, own] : squares) all.push_back({family, own.size(), 0, share_in(squares, family)});
  for (const Evidence& one : evidence) {
    Squares others = squares;
    std::vector<double>& own = others[one.family];
    own.erase(std::ranges::find(own, square_beyond(one)));
    const auto of = std::ranges::find(all, one.family, &FamilyDiscrepancy::family);
    if (evidence.size() > 1 && holds(one, share_in(others, one.family))) ++of->held;
    others.erase(one.family);
    if (!others.empty() && holds(one, share_in(others, ""))) ++all.front().held;
  }
  return all;
}

const FamilyDiscrepancy& discrepancy_of(const std::vector<FamilyDiscrepancy>& all, std::string_view family) {
  const auto found = std::ranges::find(all, family, &FamilyDiscrepancy::family);
  return found != all.end() ? *found : all.front();
}

double share_of_parts(const std::vector<FamilyDiscrepancy>& all, const std::vector<Part>& parts) {
  double time = 0, squares = 0;
  for (const Part& part : parts) {
    time += part.time;
    squares += std::pow(part.time * std::log1p(discrepancy_of(all, part.family).share), 2);
  }
  return time > 0 ? std::expm1(std::sqrt(squares) / time) : 0;
}

Interval widened(const Interval& members, double share) {
  if (members.low <= 0) {  // no logarithm: a share of each end
    return {members.low - share * std::abs(members.low), members.high + share * std::abs(members.high)};
  }
  const double middle = std::sqrt(members.low * members.high);
  const double half = std::hypot(std::log(members.high / members.low) / 2, std::log1p(share));
  return {middle * std::exp(-half), middle * std::exp(half)};
}

}  // namespace cm384::uncertainty
