// A page for each point of a sweep, beside the sweep's own.
#pragma once

#include <filesystem>
#include <span>

#include "base/text/json.h"
#include "workloads/frame/study.h"

namespace cm384::cli {

// Whether this data is of a sweep whose result says which runs its rows are of.
bool is_sweep(const Json& data);

// Writes points/0001.html and so on beside `page`, from the store that the sweep in `folder` names, and
// enters them into `data` (as report::page_data gives it) as "pages": { "0001": "points/0001.html" }; if the
// store or a result is gone, "without_pages" says why. Throws InputError, OutputError.
void write_point_pages(Json& data, const std::filesystem::path& folder, const std::filesystem::path& page,
                       std::span<const studies::Study> studies);

}  // namespace cm384::cli
