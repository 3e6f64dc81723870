#include "lab/report/result_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/text/error.h"
#include "base/text/input_file.h"

namespace cm384::report {
namespace {

constexpr int kDeepest = 32;
constexpr std::size_t kMostFields = 4096;
constexpr std::size_t kLargestFile = std::size_t{1} << 30;

// "line 3, column 7" is in nlohmann's message, behind its own number and before what it read.
std::string parse_message(const std::string& what) {
  const std::size_t bracket = what.find("] ");
  return bracket == std::string::npos ? what : what.substr(bracket + 2);
}

void require(bool good, const std::string& name, std::string_view what) {
  if (!good) throw InputError(fmt::format("{}: {}", name, what));
}

}  // namespace

std::string read_text(const std::string& path, std::size_t limit) {
  return read_input(path, limit);
}

Json parse_json(std::string_view text, const std::string& name) {
  std::vector<std::size_t> fields;  // of each open object
  const auto watch = [&](int depth, Json::parse_event_t event, Json&) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start) fields.push_back(0);
    if (event == Event::object_end) fields.pop_back();
    if (event == Event::key)
      require(++fields.back() <= kMostFields, name, "has an object of too many fields");
    require(depth <= kDeepest, name, fmt::format("is nested more than {} levels deep", kDeepest));
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::exception& error) {
    throw InputError(fmt::format("{}: not valid JSON: {}", name, parse_message(error.what())));
  }
}

Json parse_result(std::string_view text, const std::string& name) {
  Json document = parse_json(text, name);
  require(document.is_object() && document.contains("schema") && document.contains("rows"), name,
          "is not a result of a run: has no `schema` and `rows`");
  require(document["schema"] == 1, name,
          fmt::format("has schema {}; this program reads schema 1", document["schema"].dump()));
  require(document.contains("study") && document["study"].is_string(), name, "has no `study` (a string)");
  require(document["rows"].is_array(), name, "`rows` is not a list");
  for (const Json& row : document["rows"])
    require(row.is_object(), name, "`rows` has an entry that is not an object");
  return document;
}

Json read_result(const std::string& path) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path, error);
  const std::string file = folder ? (std::filesystem::path(path) / "result.json").string() : path;
  return parse_result(read_text(file, kLargestFile), file);
}

}  // namespace cm384::report
