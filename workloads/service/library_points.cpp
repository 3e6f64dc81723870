#include "workloads/service/library_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text/number.h"
#include "workloads/service/monotone.h"

namespace cm384::service {
namespace {

Coordinates coordinates(const std::vector<std::pair<std::string, int>>& numbers) {
  Coordinates at;
  for (const auto& [name, number] : numbers) at.emplace_back(name, std::to_string(number));
  return at;
}

LibraryPoint general(const DecodePoint& p) {
  LibraryPoint point{"decode",
                     coordinates({{"ranks", p.ranks}, {"kv", p.kv}, {"mtp", p.mtp}, {"batch", p.batch}}),
                     {{"step_ms", p.step_ms},
                      {"attention_half_us", p.attention_half_us},
                      {"experts_half_us", p.experts_half_us}},
                     p.command,
                     p.model,
                     p.seconds,
                     p.date,
                     p.from,
                     p.error};
  if (p.layer_us > 0) point.values.emplace_back("layer_us", p.layer_us);
  return point;
}
LibraryPoint general(const AttentionPoint& p) {
  return {"attention",    coordinates({{"mtp", p.mtp}, {"sequences", p.sequences}, {"kv", p.kv}}),
          {{"us", p.us}}, p.command,
          p.model,        p.seconds,
          p.date,         p.from,
          p.error};
}
LibraryPoint general(const PrefillPoint& p) {
  LibraryPoint point{
      "prefill",
      coordinates({{"ranks", p.ranks}, {"microbatches", p.microbatches}, {"prompt", p.prompt}}),
      {{"latency_ms", p.latency_ms}},
      p.command,
      p.model,
      p.seconds,
      p.date,
      p.from,
      p.error};
  if (!p.way.empty()) point.at.insert(point.at.begin() + 1, {"way", p.way});
  if (p.cached > 0) point.at.emplace_back("cached", std::to_string(p.cached));
  point.at.emplace_back("tokens", std::to_string(p.tokens));
  for (const auto& [name, ms] : {std::pair{"attention_ms", p.attention_ms},
                                 std::pair{"context_ms", p.context_ms}, std::pair{"read_ms", p.read_ms}}) {
    if (ms > 0) point.values.emplace_back(name, ms);
  }
  return point;
}
LibraryPoint general(const OperatorPoint& p) {
  LibraryPoint point{p.study, p.at, p.values, p.command, p.model, p.seconds, p.date, p.from, p.error};
  const auto first = std::ranges::find(point.values, p.metric, &std::pair<std::string, double>::first);
  if (first != point.values.end()) std::rotate(point.values.begin(), first, first + 1);
  return point;
}

// The curve through `points` that a point's coordinate `k` moves along.
LibraryCurve curve_through(const std::vector<LibraryPoint>& points, const LibraryPoint& point,
                           std::size_t k) {
  LibraryCurve curve{point.kind, point.values.front().first, point.at, point.at[k].first, {}};
  curve.at.erase(curve.at.begin() + static_cast<std::ptrdiff_t>(k));
  for (const LibraryPoint& other : points) {
    if (other.kind != point.kind || other.at.size() != point.at.size() || other.at[k].first != curve.over)
      continue;
    Coordinates rest = other.at;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(k));
    const auto x = hw::number_of<double>(other.at[k].second);
    if (rest == curve.at && x && !other.values.empty())
      curve.points.emplace_back(*x, other.values.front().second);
  }
  std::ranges::stable_sort(curve.points, {}, &std::pair<double, double>::first);
  const auto same = [](const auto& one, const auto& other) { return one.first == other.first; };
  curve.points.erase(std::unique(curve.points.begin(), curve.points.end(), same), curve.points.end());
  return curve;
}

}  // namespace

std::string text_of(const Coordinates& at) {
  std::string text;
  for (const auto& [name, value] : at) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  return text;
}

std::vector<LibraryPoint> points_of(const Library& library) {
  std::vector<LibraryPoint> points;
  const auto take = [&](const auto& list) {
    for (const auto& point : list) points.push_back(general(point));
  };
  take(library.decode());
  take(library.attention());
  take(library.prefill());
  take(library.operators());
  return points;
}

std::pair<std::string, std::string> dates_of(const std::vector<LibraryPoint>& points) {
  std::pair<std::string, std::string> dates;
  for (const LibraryPoint& point : points) {
    if (point.date.empty()) return {};
    if (dates.first.empty() || point.date < dates.first) dates.first = point.date;
    dates.second = std::max(dates.second, point.date);
  }
  return dates;
}

double LibraryCurve::leave_one_out() const {
  return leave_one_out_error(points);
}

std::vector<LibraryCurve> curves_of(const std::vector<LibraryPoint>& points) {
  std::vector<LibraryCurve> curves;
  for (const LibraryPoint& point : points) {
    if (point.values.empty()) continue;
    for (std::size_t k = point.at.size(); k-- > 0;) {
      LibraryCurve curve = curve_through(points, point, k);
      const bool known = std::ranges::any_of(curves, [&](const LibraryCurve& other) {
        return other.kind == curve.kind && other.over == curve.over && other.at == curve.at;
      });
      if (!known && curve.points.size() > 1) curves.push_back(std::move(curve));
    }
  }
  return curves;
}

}  // namespace cm384::service
