#include "app/cli/report_points.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "base/text/output_file.h"
#include "lab/report/page.h"
#include "lab/runs/store.h"

namespace cm384::cli {
namespace {

namespace fs = std::filesystem;

// One point's page, with the way back and to its neighbours.
std::string page_of_point(const Json& point, const runs::Outcome& outcome, const Json& links,
                          std::span<const studies::Study> studies) {
  const std::string name = "point " + point["name"].get<std::string>();
  Json profile =
      outcome.profile.empty() ? Json() : report::parse_json(outcome.profile, name + ": profile.json");
  Json data = report::page_data(name, report::parse_result(outcome.document, name + ": result.json"),
                                std::move(profile), studies);
  data["links"] = links;
  return report::to_page(data, "part.html");
}

// Names become names of files.
void check_points(const Json& sweep) {
  const auto text = [](const Json& object, const char* name) {
    return object.contains(name) && object[name].is_string();
  };
  const auto good = [&](const Json& point) {
    return point.is_object() && text(point, "name") && text(point, "key") &&
           point["name"].get_ref<const std::string&>().find_first_not_of("0123456789") == std::string::npos;
  };
  if (!sweep.is_object() || !text(sweep, "name") || !sweep.contains("points") ||
      !sweep["points"].is_array() || !std::ranges::all_of(sweep["points"], good) ||
      (sweep.contains("store") && !text(sweep, "store")))
    throw InputError("result.json: `sweep` is not what `cm384 sweep` writes");
}

}  // namespace

bool is_sweep(const Json& data) {
  if (data["runs"].size() != 1) return false;
  const Json& result = data["runs"][0]["result"];
  return result["study"] == "sweep" && result.contains("sweep");
}

void write_point_pages(Json& data, const fs::path& folder, const fs::path& page,
                       std::span<const studies::Study> studies) {
  Json& run = data["runs"][0];
  const Json& sweep = run["result"]["sweep"];
  check_points(sweep);
  run["pages"] = Json::object();
  const std::string path = (folder / sweep.value("store", "store.sqlite")).lexically_normal().string();
  if (!fs::exists(path)) {
    run["without_pages"] = fmt::format("The store {} is not there.", path);
    return;
  }
  runs::Store store(path);
  std::vector<const Json*> known;  // points that have a result
  for (const Json& point : sweep["points"]) {
    const auto outcome = store.find(point["key"]);
    if (outcome && !outcome->document.empty()) known.push_back(&point);
  }
  const fs::path place = page.parent_path() / "points";
  if (!known.empty())
    write_file((place / "page.js").string(),
               report::read_text(report::page_part("page.js"), std::size_t{1} << 30));
  const auto link = [](const Json& point, std::string_view text) -> Json {
    return {{"href", point["name"].get<std::string>() + ".html"}, {"text", text}};
  };
  for (std::size_t i = 0; i < known.size(); ++i) {
    const Json& point = *known[i];
    const std::string file = point["name"].get<std::string>() + ".html";
    Json links = Json::array({{{"href", "../" + page.filename().string()},
                               {"text", "sweep " + sweep["name"].get<std::string>()}}});
    if (i > 0) links.push_back(link(*known[i - 1], "previous point"));
    if (i + 1 < known.size()) links.push_back(link(*known[i + 1], "next point"));
    write_file((place / file).string(), page_of_point(point, *store.find(point["key"]), links, studies));
    run["pages"][point["name"].get<std::string>()] = "points/" + file;
  }
  if (known.size() < sweep["points"].size())
    run["without_pages"] = fmt::format("The store {} has no rows of the others.", path);
}

}  // namespace cm384::cli
