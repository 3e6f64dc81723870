#include "lab/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text/error.h"
#include "base/text/installation.h"
#include "base/text/lines.h"
#include "base/text/quantity.h"
#include "lab/report/comparison.h"
#include "lab/report/published.h"

namespace cm384::report {
namespace {

constexpr std::size_t kLargestPart = std::size_t{1} << 30;

void check_profile(const Json& profile, const std::string& name) {
  // Schema 1 did not say which kernel a launch was of.
  if (!profile.is_object() || profile.value("schema", Json()) != 2 || !profile.contains("runs") ||
      !profile["runs"].is_array() || !profile.contains("machine"))
    throw InputError(
        fmt::format("{}: is not a profile of a run (schema 2); `cm384 run ... --out` makes one", name));
}

std::filesystem::path folder_of(const std::string& path) {
  return std::filesystem::is_directory(path) ? std::filesystem::path(path)
                                             : std::filesystem::path(path).parent_path();
}

Json read_profile(const std::string& path) {
  const std::string file = (folder_of(path) / "profile.json").string();
  if (!std::filesystem::exists(file)) return nullptr;
  Json profile = parse_json(read_text(file, kLargestPart), file);
  check_profile(profile, file);
  return profile;
}

// Samples of a service, by column: occupancy.csv that stands beside result.json, of a further row with its
// number.
Json read_occupancy(const std::string& path) {
  if (!std::filesystem::exists(path)) return nullptr;
  LineReader lines(path);
  std::string line;
  if (!lines.next(line)) lines.fail("is empty");
  std::vector<std::string> names;
  for (const std::string_view name : split_fields(line)) names.emplace_back(name);
  Json columns = Json::object();
  while (lines.next(line)) {
    const auto fields = split_fields(line);
    if (fields.size() != names.size())
      lines.fail(fmt::format("has {} fields; allowed: {}", fields.size(), names.size()));
    for (std::size_t k = 0; k < names.size(); ++k) {
      try {
        columns[names[k]].push_back(hw::parse_real(fields[k]));
      } catch (const InputError&) {
        lines.fail(fmt::format("{}: '{}'; allowed: a number", names[k], fields[k]));
      }
    }
  }
  for (const char* name : {"at_s", "waiting", "prefill_busy", "transferring", "waiting_decode", "decoding",
                           "kv_share", "dram_blocks", "evs_blocks"})
    if (!columns.contains(name)) lines.fail(fmt::format("{}: is missing", name));
  return columns;
}

// A file that the result does not name is of another run in the same folder; results of before name none.
Json occupancies(const std::string& path, const Json& result) {
  const auto is_own = [&](const std::string& name) {
    return !result.contains("files") ||
           std::ranges::find(result["files"], Json(name)) != result["files"].end();
  };
  const std::size_t rows = result["rows"].size();
  const std::filesystem::path folder = folder_of(path);
  Json all = Json::array();
  bool any = false;
  for (std::size_t k = 0; k < rows; ++k) {
    const std::string name = k == 0 ? "occupancy.csv" : fmt::format("occupancy-{}.csv", k + 1);
    all.push_back(is_own(name) ? read_occupancy((folder / name).string()) : Json());
    any = any || !all.back().is_null();
  }
  return any ? all : Json::array();
}

Json run_data(const std::string& name, Json result, Json profile, std::span<const studies::Study> studies) {
  Json conditions = Json::array();
  for (Json& of_row : row_conditions(result)) conditions.push_back(std::move(of_row));
  Json keys = row_keys(result);
  Json published = published_points(result, studies);
  return {{"name", name},
          {"result", std::move(result)},
          {"keys", std::move(keys)},
          {"conditions", std::move(conditions)},
          {"published", std::move(published)},
          {"profile", std::move(profile)}};
}

}  // namespace

std::string page_part(std::string_view name) {
  const auto path = find_installed("share/cm384/page/" + std::string(name));
  if (!path)
    throw InputError(
        fmt::format("report: share/cm384/page/{} is not there; in the source tree `./dev build release "
                    "cm384_page` makes it",
                    name));
  return *path;
}

Json page_data(const std::vector<std::string>& paths, std::span<const studies::Study> studies) {
  Json runs = Json::array();
  for (const std::string& path : paths) {
    Json result = read_result(path), profile = read_profile(path);
    // Of another run in the same folder: not this one's.
    if (!profile.is_null() && profile.value("study", Json()) != result["study"]) profile = nullptr;
    runs.push_back(run_data(std::filesystem::path(path).lexically_normal().generic_string(),
                            std::move(result), std::move(profile), studies));
    if (runs.back()["result"]["study"] == "serve")
      runs.back()["occupancy"] = occupancies(path, runs.back()["result"]);
    const Json &first = runs.front()["result"]["study"], &other = runs.back()["result"]["study"];
    if (other != first)
      throw InputError(fmt::format("{}: is a result of `{}`; allowed: runs of one study, `{}` as {}", path,
                                   other.get<std::string>(), first.get<std::string>(), paths.front()));
  }
  return {{"runs", std::move(runs)}};
}

Json page_data(const std::string& name, Json result, Json profile, std::span<const studies::Study> studies) {
  if (!profile.is_null()) check_profile(profile, name);
  return {{"runs", Json::array({run_data(name, std::move(result), std::move(profile), studies)})}};
}

std::string to_page(const Json& data, std::string_view part) {
  constexpr std::string_view kPlace = "{{DATA}}";
  std::string page = read_text(page_part(part), kLargestPart);
  page.replace(page.find(kPlace), kPlace.size(), script_text(data));
  return page;
}

}  // namespace cm384::report
