// --model: a language model whose shape gives options their values, where the command line does not.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hw/models/model.h"
#include "workloads/frame/options.h"

namespace cm384::studies {

// Its name. It acts through other options alone, which is why figures hold with it as well (published.h).
inline constexpr std::string_view kModelOption = "model";

// The model of experts that a study with --model NAME|FILE is of. Throws InputError where it has none, or has
// experts that the study does not know.
models::Model model_of_experts(const std::string& name_or_path);

// Options and their values, as the command line would have them.
using OptionValues = std::vector<std::pair<std::string, std::string>>;
// Gives `options` these values, but for those that are given. Throws InputError: `from` where they come, the
// option, what is allowed.
void follow_values(const std::vector<hw::Parameter>& options, const Given& given, const std::string& from,
                   const OptionValues& values);
// Sets the options that a model decides, except those that were given.
void follow_model(const std::vector<hw::Parameter>& options, const Given& given, const std::string& model,
                  const OptionValues& values);

// A routing trace is of this model: as many experts, and as many of a token; of none (empty), of any. Throws
// InputError.
void check_trace_of_model(const std::string& model, int experts, int experts_per_token);

// What it reads: the file that --model names, if it is one.
std::vector<std::string> model_files(const std::string& name_or_path);

}  // namespace cm384::studies
