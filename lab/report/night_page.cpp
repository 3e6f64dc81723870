#include "lab/report/night_page.h"

#include <filesystem>

#include "base/text/embedded_text.h"
#include "lab/report/page.h"
#include "workloads/frame/result_json.h"

namespace cm384::report {
namespace {

std::string_view part(std::string_view name) {
  for (const hw::EmbeddedText& text : hw::embedded_night_page()) {
    if (text.name == name) return text.text;
  }
  return {};
}

void fill(std::string& page, std::string_view place, std::string_view text) {
  page.replace(page.find(place), place.size(), text);
}

Json onsets_of(const RunVerdict& run) {
  Json list = Json::array();
  for (const Onset& onset : run.onsets) {
    list.push_back({{"row", onset.row},
                    {"field", onset.field},
                    {"commit", onset.commit},
                    {"subject", onset.subject},
                    {"date", onset.date},
                    {"good_commit", onset.good_commit},
                    {"between", onset.between},
                    {"drift", onset.drift ? Json(*onset.drift) : Json()},
                    {"before", onset.before},
                    {"after", onset.after},
                    {"nights", onset.nights}});
  }
  return list;
}

}  // namespace

Json night_data(const Night& night, const std::vector<RunVerdict>& verdicts, const Baseline& baseline) {
  Json runs = Json::array();
  for (const RunVerdict& run : verdicts) {
    Json one = {{"name", run.name},
                {"verdict", word_of(run.verdict)},
                {"severity", static_cast<int>(run.verdict)},
                {"passes", run.passes(baseline)},
                {"reason", run.reason},
                {"report", run.report},
                {"command", run.command},
                {"folder", run.folder.empty() ? "" : std::filesystem::path(run.folder).filename().string()},
                {"files", Json::array()},
                {"wall_s", run.wall_s},
                {"peak_MB", run.peak_MB},
                {"simulated_us", run.simulated_us},
                {"changes", run.comparison ? studies::to_json(change_rows(*run.comparison)) : Json::array()},
                {"fields", run.comparison ? run.comparison->fields() : 0},
                {"onsets", onsets_of(run)}};
    std::error_code ignored;
    if (!run.folder.empty()) {
      for (const char* name : {"errors", "output", "result.json", "profile.json"}) {
        if (std::filesystem::exists(std::filesystem::path(run.folder) / name, ignored))
          one["files"].push_back(name);
      }
    }
    runs.push_back(std::move(one));
  }
  return {{"night",
           {{"date", night.date},
            {"commit", night.commit},
            {"subject", night.subject},
            {"build", night.build},
            {"folder", night.folder},
            {"wall_s", night.wall_s}}},
          {"runs", std::move(runs)},
          {"history", nullptr}};
}

std::string to_night_page(const Json& data) {
  std::string page(part("night"));
  fill(page, "{{STYLE}}", part("style"));
  fill(page, "{{SCRIPT}}", part("script"));
  fill(page, "{{DATA}}", script_text(data));
  return page;
}

}  // namespace cm384::report
