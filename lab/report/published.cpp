#include "lab/report/published.h"

#include <fmt/format.h>

#include <algorithm>

#include "workloads/frame/published.h"
#include "workloads/frame/result_json.h"

namespace cm384::report {
namespace {

// Empty where anything was changed, or the file does not say.
std::string unchanged_machine(const Json& document) {
  const auto overrides = document.find("machine_overrides");
  const auto machine = document.find("machine");
  if (overrides == document.end() || !overrides->empty() || machine == document.end() ||
      !machine->is_string())
    return "";
  return machine->get<std::string>();
}

}  // namespace

Json published_points(const Json& document, std::span<const studies::Study> studies) {
  Json points = Json::array();
  const auto study = std::ranges::find(studies, document["study"].get<std::string>(), &studies::Study::name);
  const auto parameters = document.find("parameters");
  if (study == studies.end() || parameters == document.end()) return points;
  const studies::PublishedFigures figures(*study, *parameters, unchanged_machine(document));
  int number = 0;
  for (const Json& row : document["rows"]) {
    for (const studies::Prediction& prediction : figures.of(studies::row_of(row))) {
      const studies::Figure& figure = *prediction.figure;
      points.push_back({{"id", figure.id},
                        {"name", fmt::format("{} ({})", figure.metric, figure.stated)},
                        {"row", number},
                        {"field", prediction.field},
                        {"predicted", prediction.value},
                        {"published", figure.value},
                        {"unit", figure.unit},
                        {"error", prediction.value / figure.value - 1},
                        {"bound", figure.role == studies::Role::bound},
                        {"source", figure.source}});
    }
    ++number;
  }
  return points;
}

}  // namespace cm384::report
