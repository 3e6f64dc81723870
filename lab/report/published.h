// Rows of a result beside the published figures they predict.
#pragma once

#include <span>

#include "lab/report/result_file.h"
#include "workloads/frame/study.h"

namespace cm384::report {

// [{ "id", "name", "row", "field", "predicted", "published", "unit", "error", "bound", "source" }] of the
// figures whose conditions all hold for this run (workloads/frame/published.h); `row` is its number, `error`
// is predicted / published - 1, `bound`: published as "below".
Json published_points(const Json& document, std::span<const studies::Study> studies);

}  // namespace cm384::report
