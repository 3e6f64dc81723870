#include "lab/sweeps/spool.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "base/text/error.h"
#include "base/text/json.h"
#include "base/text/output_file.h"
#include "lab/sweeps/slurm.h"

namespace cm384::sweeps {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return std::nullopt;
  return text.str();
}

// Nothing: no such file, or no such content.
Json json_in(const fs::path& path) {
  const auto text = content(path);
  return text ? Json::parse(*text, nullptr, false) : Json();
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure))
    paths.push_back(at->path());
  std::ranges::sort(paths);
  return paths;
}

}  // namespace

fs::path Spool::task_file(const std::string& array, int task, const char* extension) const {
  return folder_ / array / fmt::format("task-{}.{}", task, extension);
}

fs::path Spool::outcome_file(const std::string& key) const {
  return folder_ / "results" / (key + ".json");
}

void Spool::open() const {
  std::error_code failure;
  fs::create_directories(folder_ / "results", failure);
  if (access((folder_ / "results").c_str(), W_OK) != 0)
    throw OutputError(
        fmt::format("{}: cannot be written: {}", folder_.string(), std::generic_category().message(errno)));
}

std::vector<std::string> Spool::arrays() const {
  std::vector<std::string> names;
  for (const fs::path& path : entries(folder_)) {
    if (path.filename().string().starts_with(kJobPrefix)) names.push_back(path.filename().string());
  }
  return names;
}

std::string Spool::job_of(const std::string& array) const {
  return content(folder_ / array / "job").value_or("");
}

void Spool::note_job(const std::string& array, const std::string& job) const {
  write_file((folder_ / array / "job").string(), job);
}

void Spool::add(const std::string& array, const std::vector<std::vector<SpooledPoint>>& tasks,
                const std::string& script) const {
  write_file((folder_ / array / "script").string(), script);
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    Json points = Json::array();
    for (const SpooledPoint& point : tasks[task]) {
      points.push_back({{"key", point.job.key},
                        {"study", point.job.study},
                        {"arguments", point.job.arguments},
                        {"settings", point.job.settings},
                        {"losses", point.losses}});
    }
    write_file(task_file(array, static_cast<int>(task), "json").string(), text_of(points));
  }
}

std::vector<int> Spool::tasks(const std::string& array) const {
  std::vector<int> tasks;
  for (const fs::path& path : entries(folder_ / array)) {
    const std::string name = path.filename().string();
    if (name.starts_with("task-") && name.ends_with(".json")) tasks.push_back(std::atoi(name.c_str() + 5));
  }
  std::ranges::sort(tasks);
  return tasks;
}

std::set<std::string> Spool::keys() const {
  std::set<std::string> keys;
  for (const std::string& array : arrays()) {
    for (const int task : tasks(array)) {
      for (const SpooledPoint& point : points(array, task).value_or(std::vector<SpooledPoint>()))
        keys.insert(point.job.key);
    }
  }
  return keys;
}

std::optional<std::vector<SpooledPoint>> Spool::points(const std::string& array, int task) const {
  const Json json = json_in(task_file(array, task, "json"));
  if (!json.is_array()) return std::nullopt;
  std::vector<SpooledPoint> points;
  for (const Json& point : json) {
    points.push_back({.job = {.key = point.at("key"),
                              .study = point.at("study"),
                              .arguments = point.at("arguments"),
                              .settings = point.at("settings")},
                      .losses = point.at("losses")});
  }
  return points;
}

std::vector<std::string> Spool::done(const std::string& array, int task) const {
  std::vector<std::string> keys;
  std::istringstream lines(content(task_file(array, task, "done")).value_or(""));
  for (std::string line; std::getline(lines, line);) keys.push_back(line);
  return keys;
}

void Spool::note_done(const std::string& array, int task, const std::string& key) const {
  // Where the folder is gone, nobody needs it.
  std::ofstream(task_file(array, task, "done"), std::ios::app) << key << '\n' << std::flush;
}

std::string Spool::last_words(const std::string& array, int task) const {
  std::istringstream lines(content(task_file(array, task, "log")).value_or(""));
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

void Spool::revoke(const std::string& array, int task) const {
  std::error_code ignored;
  fs::remove(task_file(array, task, "json"), ignored);
}

void Spool::tidy(const std::string& array) const {
  std::error_code ignored;
  if (tasks(array).empty()) fs::remove_all(folder_ / array, ignored);
}

bool Spool::has_outcome(const std::string& key) const {
  return fs::exists(outcome_file(key));
}

void Spool::write(const SpooledOutcome& point) const {
  const runs::Outcome& outcome = point.outcome;
  write_file(outcome_file(point.key).string(), text_of({{"key", point.key},
                                                        {"study", point.study},
                                                        {"arguments", point.arguments},
                                                        {"exit_code", outcome.exit_code},
                                                        {"reason", outcome.reason},
                                                        {"wall_s", outcome.wall_s},
                                                        {"peak_MB", outcome.peak_MB},
                                                        {"document", outcome.document},
                                                        {"profile", outcome.profile}}));
}

std::vector<std::string> Spool::outcomes() const {
  std::vector<std::string> keys;
  for (const fs::path& path : entries(folder_ / "results")) {
    if (path.extension() == ".json") keys.push_back(path.stem().string());
  }
  return keys;
}

std::optional<SpooledOutcome> Spool::read(const std::string& key) const {
  const Json json = json_in(outcome_file(key));
  if (!json.is_object() || json.value("key", "") != key) return std::nullopt;
  return SpooledOutcome{.key = key,
                        .study = json.value("study", ""),
                        .arguments = json.value("arguments", ""),
                        .outcome = {.exit_code = json.value("exit_code", 0),
                                    .reason = json.value("reason", ""),
                                    .document = json.value("document", ""),
                                    .profile = json.value("profile", ""),
                                    .wall_s = json.value("wall_s", 0.0),
                                    .peak_MB = json.value("peak_MB", 0.0)}};
}

void Spool::remove(const std::string& key) const {
  std::error_code ignored;
  fs::remove(outcome_file(key), ignored);
}

void Spool::close() const {
  std::error_code ignored;
  if (!arrays().empty() || !outcomes().empty()) return;
  fs::remove_all(folder_ / "results", ignored);  // with what killed tasks may have left half written
  fs::remove(folder_, ignored);
}

}  // namespace cm384::sweeps
