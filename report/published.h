// Rows of a result beside the published figures they predict.
#pragma once

#include "report/result_file.h"

namespace cm384::report {

// [{ "name", "predicted", "published", "unit", "error", "source" }]; `error` is predicted / published - 1. A
// row that says what was published (`published_us` beside `latency_us`) is taken at its word; rows of `p2p`
// are looked up in the published table by operation, target and distance. Meant for the machine that was
// published: what the options and the machine of the run changed is for the reader to judge.
Json published_points(const Json& document);

}  // namespace cm384::report
