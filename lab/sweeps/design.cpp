// Points of a plan: grids, zipped axes, Latin hypercubes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text/error.h"
#include "lab/sweeps/plan.h"
#include "traces/random.h"

namespace cm384::sweeps {
namespace {

constexpr std::size_t kMostPoints = 1'000'000;

// Axes that advance together.
using Group = std::vector<const Axis*>;

std::vector<Group> groups_of(const Plan& plan) {
  std::vector<Group> groups;
  for (const Axis& axis : plan.axes) {
    if (plan.find && axis.key == plan.find->axis) continue;
    const auto same = std::ranges::find_if(
        groups, [&](const Group& group) { return !axis.zip.empty() && group.front()->zip == axis.zip; });
    if (same == groups.end()) {
      groups.push_back({&axis});
    } else {
      same->push_back(&axis);
    }
  }
  return groups;
}

std::vector<std::vector<Setting>> grid(const Plan& plan) {
  const std::vector<Group> groups = groups_of(plan);
  std::size_t count = 1;
  for (const Group& group : groups) {
    count *= group.front()->values.size();
    if (count > kMostPoints) throw InputError(fmt::format("{}: more than {} points", plan.name, kMostPoints));
  }
  std::vector<std::vector<Setting>> points;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Setting> point;
    std::size_t block = count, rest = i;
    for (const Group& group : groups) {
      block /= group.front()->values.size();
      const std::size_t at = rest / block;
      rest %= block;
      for (const Axis* axis : group) point.emplace_back(axis->key, axis->values[at]);
    }
    points.push_back(std::move(point));
  }
  return points;
}

// A value of each axis from each of `count` strata, in an order that is drawn for each group.
std::vector<std::vector<Setting>> latin_hypercube(const Plan& plan) {
  traces::Random random(static_cast<std::uint64_t>(plan.seed));
  const auto count = static_cast<std::size_t>(plan.points);
  std::vector<std::vector<Setting>> points(count);
  for (const Group& group : groups_of(plan)) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (std::size_t i = 0; i < count; ++i) {
      const double place = (static_cast<double>(order[i]) + random.real()) / static_cast<double>(count);
      for (const Axis* axis : group) {
        std::string value;
        if (axis->range) {
          const auto [from, to] = *axis->range;
          value = axis->scale.text(axis->logarithmic ? from * std::pow(to / from, place)
                                                     : from + (to - from) * place);
        } else {
          const auto size = axis->values.size();
          value =
              axis->values[std::min(size - 1, static_cast<std::size_t>(place * static_cast<double>(size)))];
        }
        points[i].emplace_back(axis->key, value);
      }
    }
  }
  return points;
}

}  // namespace

std::vector<std::vector<Setting>> points_of(const Plan& plan, Subject& subject) {
  std::vector<std::vector<Setting>> points = plan.design == Design::grid ? grid(plan) : latin_hypercube(plan);
  std::erase_if(points, [&](const std::vector<Setting>& point) {
    const std::vector<Setting> settings = plan.settings(point);
    const auto meaning = [&](const std::string& key) {
      const std::string text = subject.value(settings, key);
      return Expression::Meaning{subject.name_scale(key).number(text), text};
    };
    return !std::ranges::all_of(plan.conditions,
                                [&](const Expression& holds) { return holds.value(meaning) != 0; });
  });
  if (points.empty()) throw InputError(fmt::format("{}: no point is left by its conditions", plan.name));
  return points;
}

}  // namespace cm384::sweeps
