// Runs of studies as points of a library: how a recorded command is run again, and what a run's row says.
#pragma once

#include <string>
#include <vector>

#include "app/cli/study_settings.h"
#include "base/text/json.h"
#include "lab/runs/runs.h"
#include "workloads/service/library.h"

namespace cm384::cli {

// "cm384 run mla --batch 2" as a study with settings. Throws InputError for anything else.
runs::Runs::Request request_of(const std::string& command);
// The other way.
std::string command_of(const runs::Runs::Request& request);

// Adds what the run of a request gave, by its result.json. `metric`: of a study that is neither decode, mla
// nor prefill, the value that curves are of. Throws InputError where the row has no such values.
void add_point(service::Library& library, const runs::Runs::Request& request, const std::string& metric,
               const Json& document);

// Studies whose rows the service reads; of the others a library keeps all numbers.
bool has_points_of_its_own(std::string_view study);

// What a point stands on beside its options and machine: the kernels, and the fingerprint of the golden
// results.
std::string model_and_kernels();

}  // namespace cm384::cli
