#include "lab/report/line_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/trim.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <tuple>

#include "base/text/error.h"
#include "lab/report/result_file.h"

namespace cm384::report {
namespace {

constexpr std::size_t kLargestLines = std::size_t{1} << 30;

void require_lines(bool good, const std::string& name, const char* what) {
  if (!good) throw InputError(fmt::format("{}: {}", name, what));
}

bool has_text(const Json& object, const char* name) {
  return object.contains(name) && object[name].is_string();
}

void check_kernel(const Json& kernel, const std::string& name) {
  require_lines(kernel.is_object() && has_text(kernel, "kernel") && kernel.contains("lines") &&
                    kernel["lines"].is_array() && kernel.contains("sources") && kernel["sources"].is_object(),
                name, "has a kernel without `kernel`, `lines` and `sources`");
  for (const Json& line : kernel["lines"]) {
    require_lines(line.is_object() && has_text(line, "path") && has_text(line, "function") &&
                      line.contains("line") && line["line"].is_number_integer() && line.contains("cycles") &&
                      line["cycles"].is_number(),
                  name, "has a line without `path`, `function`, `line` and `cycles`");
  }
  for (const auto& [path, text] : kernel["sources"].items()) {
    require_lines(text.is_array() && std::ranges::all_of(text, &Json::is_string), name,
                  "has a source that is not a list of lines");
  }
}

// Lines of a source without blanks at their ends: two lines that differ in these alone are equal.
std::vector<std::string> source_in(const Json& kernel, const std::string& path) {
  std::vector<std::string> lines;
  if (kernel.is_null() || !kernel["sources"].contains(path)) return lines;
  for (const Json& line : kernel["sources"][path])
    lines.push_back(boost::algorithm::trim_copy(line.get<std::string>()));
  return lines;
}

// Another path, but a file of the same name: an edited copy.
std::string same_file(const Json& kernel, const std::string& path) {
  if (kernel.is_null()) return path;
  if (kernel["sources"].contains(path)) return path;
  const auto name = std::filesystem::path(path).filename();
  std::string found = path;
  for (const auto& [other, text] : kernel["sources"].items()) {
    if (std::filesystem::path(other).filename() == name) found = other;
  }
  return found;
}

struct Both {
  std::string kernel, text, shown;
  double before = 0, after = 0;
};

void compare_kernel(const Json& before, const Json& after, const std::string& kernel,
                    std::vector<Both>& into) {
  // By path and line of the second, or of the first with a mark.
  std::map<std::tuple<std::string, std::int64_t, std::string, bool>, Both> lines;
  std::map<std::pair<std::string, std::int64_t>, std::pair<std::string, std::int64_t>> in_after;
  if (!after.is_null()) {
    for (const auto& [path, text] : after["sources"].items()) {
      const std::string old = same_file(before, path);
      const std::vector<int> same = same_lines(source_in(before, old), source_in(after, path));
      for (std::size_t n = 0; n < same.size(); ++n) {
        if (same[n] >= 0) in_after[{old, same[n] + 1}] = {path, static_cast<std::int64_t>(n) + 1};
      }
    }
  }
  const auto line_at = [&](const Json& line, const Json& of, const std::string& path, std::int64_t number,
                           bool gone) -> Both& {
    const std::string function = line["function"].get<std::string>();
    Both& both = lines[{path, number, number == 0 ? function : "", gone}];
    if (!both.shown.empty()) return both;
    both.kernel = kernel;
    const std::string file = std::filesystem::path(path).filename().string();
    both.shown = number == 0 ? function : fmt::format("{}{}:{}", gone ? "before: " : "", file, number);
    const std::vector<std::string> source = source_in(of, path);
    if (number > 0 && static_cast<std::size_t>(number) <= source.size())
      both.text = source[static_cast<std::size_t>(number) - 1];
    return both;
  };
  if (!after.is_null()) {
    for (const Json& line : after["lines"]) {
      line_at(line, after, line["path"].get<std::string>(), line["line"].get<std::int64_t>(), false).after +=
          line["cycles"].get<double>();
    }
  }
  if (!before.is_null()) {
    for (const Json& line : before["lines"]) {
      const std::string path = line["path"].get<std::string>();
      const auto number = line["line"].get<std::int64_t>();
      const bool known =
          !after.is_null() && after["sources"].contains(path) && !source_in(after, path).empty();
      const auto moved = in_after.find({path, number});
      // Without sources lines are taken to be where they were.
      const bool gone = number > 0 && moved == in_after.end() && (known || after.is_null());
      Both& both = moved != in_after.end()
                       ? line_at(line, after, moved->second.first, moved->second.second, false)
                       : line_at(line, before, path, number, gone);
      both.before += line["cycles"].get<double>();
    }
  }
  for (auto& [at, both] : lines) into.push_back(std::move(both));
}

const Json* kernel_named(const Json& machine, const std::string& name) {
  for (const Json& kernel : machine["kernels"]) {
    if (kernel["kernel"] == name) return &kernel;
  }
  return nullptr;
}

}  // namespace

Json read_lines(const std::string& path) {
  std::string file = path;
  if (std::filesystem::is_directory(path)) {
    file = (std::filesystem::path(path) / "lines.json").string();
    if (!std::filesystem::exists(file)) file = (std::filesystem::path(path) / "result.json").string();
  }
  Json document = parse_json(read_text(file, kLargestLines), file);
  if (document.is_object() && document.contains("lines")) document = Json(document["lines"]);
  if (document.is_object() && document.contains("kernels")) document = Json::array({document});
  require_lines(document.is_array() && !document.empty(), file,
                "has no profile by source line; `cm384 run .. --profile DIR` makes one");
  for (const Json& machine : document) {
    require_lines(machine.is_object() && machine.contains("kernels") && machine["kernels"].is_array(), file,
                  "has a profile without `kernels`");
    for (const Json& kernel : machine["kernels"]) check_kernel(kernel, file);
  }
  return document;
}

std::vector<int> same_lines(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  std::vector<int> same(after.size(), -1);
  std::size_t first = 0, end_before = before.size(), end_after = after.size();
  // What both begin and end with.
  while (first < end_before && first < end_after && before[first] == after[first]) {
    same[first] = static_cast<int>(first);
    ++first;
  }
  while (end_before > first && end_after > first && before[end_before - 1] == after[end_after - 1])
    same[--end_after] = static_cast<int>(--end_before);
  // The longest common sequence of what is between.
  const std::size_t rows = end_before - first, columns = end_after - first;
  std::vector<std::vector<std::uint32_t>> longest(rows + 1, std::vector<std::uint32_t>(columns + 1));
  for (std::size_t i = rows; i-- > 0;) {
    for (std::size_t k = columns; k-- > 0;) {
      longest[i][k] = before[first + i] == after[first + k] ? longest[i + 1][k + 1] + 1
                                                            : std::max(longest[i + 1][k], longest[i][k + 1]);
    }
  }
  for (std::size_t i = 0, k = 0; i < rows && k < columns;) {
    if (before[first + i] == after[first + k]) {
      same[first + k++] = static_cast<int>(first + i++);
    } else {
      longest[i + 1][k] >= longest[i][k + 1] ? ++i : ++k;
    }
  }
  return same;
}

studies::Rows compare_lines(const Json& before, const Json& after) {
  std::vector<Both> all;
  const Json none = nullptr;
  for (std::size_t n = 0; n < std::max(before.size(), after.size()); ++n) {
    std::vector<std::string> names;
    for (const Json* side : {&before, &after}) {
      if (n >= side->size()) continue;
      for (const Json& kernel : (*side)[n]["kernels"]) {
        const auto name = kernel["kernel"].get<std::string>();
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
      }
    }
    for (const std::string& name : names) {
      const Json* a = n < before.size() ? kernel_named(before[n], name) : nullptr;
      const Json* b = n < after.size() ? kernel_named(after[n], name) : nullptr;
      compare_kernel(a == nullptr ? none : *a, b == nullptr ? none : *b, name, all);
    }
  }
  std::ranges::stable_sort(all, [](const Both& a, const Both& b) {
    return std::abs(a.after - a.before) > std::abs(b.after - b.before);
  });
  studies::Rows rows;
  for (const Both& both : all) {
    rows.push_back({{"kernel", both.kernel},
                    {"line", both.shown},
                    {"before", std::round(both.before)},
                    {"after", std::round(both.after)},
                    {"change", std::round(both.after - both.before)},
                    {"text", both.text}});
  }
  return rows;
}

}  // namespace cm384::report
