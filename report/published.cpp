#include "report/published.h"

#include <fmt/format.h>

#include <optional>

#include "report/comparison.h"
#include "studies/validation.h"

namespace cm384::report {
namespace {

Json point(const std::string& name, double predicted, double published, std::string_view unit,
           std::string_view source) {
  return {{"name", name},
          {"predicted", predicted},
          {"published", published},
          {"unit", unit},
          {"error", predicted / published - 1},
          {"source", source}};
}

std::optional<double> number(const Json& row, const char* field) {
  const auto value = row.find(field);
  if (value == row.end() || !value->is_number()) return {};
  return value->get<double>();
}

std::string text(const Json& row, const char* field) {
  const auto value = row.find(field);
  return value != row.end() && value->is_string() ? value->get<std::string>() : std::string();
}

void take_latency(const Json& row, Json& points) {
  const auto published = number(row, "published_us");
  const auto latency = row.find("latency_us");
  if (!published || *published == 0 || latency == row.end() || !latency->is_object()) return;
  if (const auto mean = number(*latency, "mean"))
    points.push_back(point(row_key(row), *mean, *published, "us", "the row's published_us"));
}

// Table 1 of the paper: `t1-nn-read-bw-inter`.
void take_table_1(const Json& row, const std::vector<studies::Figure>& figures, Json& points) {
  const std::string target = text(row, "target"), distance = text(row, "distance");
  if (text(row, "path") != "aiv-direct" || (target != "npu" && target != "cpu")) return;
  const std::string_view ends = target == "npu" ? "nn" : "nc";
  const std::string_view far = distance == "inter-node" ? "inter" : "intra";
  for (const auto& [field, tag] : {std::pair{"latency_us", "lat"}, std::pair{"bandwidth_GBps", "bw"}}) {
    const auto predicted = number(row, field);
    const bool latency = std::string_view(tag) == "lat";
    if (!predicted || (latency && row.value("bytes", Json()) != 512)) continue;
    const std::string id = fmt::format("t1-{}-{}-{}-{}", ends, text(row, "op"), tag, far);
    for (const studies::Figure& figure : figures) {
      if (figure.id == id)
        points.push_back(point(fmt::format("{}, {}", figure.metric, far), *predicted, figure.value,
                               figure.unit, figure.source));
    }
  }
}

}  // namespace

Json published_points(const Json& document) {
  Json points = Json::array();
  const bool p2p = document["study"] == "p2p";
  const std::vector<studies::Figure> figures =
      p2p ? studies::published_figures() : std::vector<studies::Figure>();
  for (const Json& row : document["rows"]) {
    take_latency(row, points);
    if (p2p) take_table_1(row, figures, points);
  }
  return points;
}

}  // namespace cm384::report
