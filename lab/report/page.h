// `cm384 report`: one HTML page of a finished run, of several side by side, or of a sweep, whole in itself,
// and its figures as files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/report/result_file.h"
#include "workloads/frame/study.h"

namespace cm384::report {

// What the page shows: { "runs": [ { "name", "result", "keys" and "conditions" of its rows,
// "published", "profile" or null } ] }, each from a run's folder or a result.json. Throws InputError; also
// where several runs are of different studies.
Json page_data(const std::vector<std::string>& paths, std::span<const studies::Study> studies);

// The data of one run from its files: result.json and profile.json (null: none). Throws InputError,
// which says `name`.
Json page_data(const std::string& name, Json result, Json profile, std::span<const studies::Study> studies);

// Path of a file that the page is made from: page.html, the template with its script; part.html, the template
// without, for pages that share page.js; figures.cjs, which draws figures into files. Throws InputError where
// it is not built.
std::string page_part(std::string_view name);

// Data as it stands inside a script element: nothing in it looks like markup.
inline std::string script_text(const Json& data) {
  std::string text = data.dump(-1, ' ', true, Json::error_handler_t::replace);
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at))
    text.replace(at, 1, "\\u003c");
  return text;
}

// The page: template, script and data in one text. From part.html it needs page.js beside it.
std::string to_page(const Json& data, std::string_view part = "page.html");

// Draws every figure into `folder`, as SVG, and with `png` as PNG too; gives the names of the files. Needs
// node, for PNG also rsvg-convert: throws InputError that says so where they are missing.
std::vector<std::string> write_figures(const Json& data, const std::string& folder, bool png);

}  // namespace cm384::report
