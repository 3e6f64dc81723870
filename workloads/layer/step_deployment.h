// How a model is spread for decode steps, as data: a TOML whose values say where they come from, or one that
// comes with cm384.
#pragma once

#include <string>
#include <vector>

#include "workloads/frame/model_option.h"

namespace cm384::studies {

// Names of the deployments in workloads/layer/deployments, sorted.
std::vector<std::string> step_deployment_names();

// Options of `run decode` and their values, in the order of the file's declaration. Throws InputError: one
// line.
OptionValues load_step_deployment(const std::string& name_or_path);
// Those of its options that nobody published.
std::vector<Alternatives> alternatives_of_step_deployment(const std::string& name_or_path);
// The file that it reads, if it is one.
std::vector<std::string> step_deployment_files(const std::string& name_or_path);

}  // namespace cm384::studies
