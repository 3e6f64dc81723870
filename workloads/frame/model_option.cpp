#include "workloads/frame/model_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/text/error.h"

namespace cm384::studies {

models::Model model_of_experts(const std::string& name_or_path) {
  models::Model model = models::load_model(name_or_path);
  if (!model.has_experts())
    throw InputError(fmt::format("--model {}: is dense; allowed: a model with experts", name_or_path));
  if (model.experts().zero > 0)
    throw InputError(
        fmt::format("--model {}: has {} experts that return their input, which are not modelled "
                    "here; allowed: a model without",
                    name_or_path, model.experts().zero));
  return model;
}

void follow_model(const std::vector<hw::Parameter>& options, const Given& given, const std::string& model,
                  const OptionValues& values) {
  follow_values(options, given, "--model " + model, values);
}

void follow_values(const std::vector<hw::Parameter>& options, const Given& given, const std::string& from,
                   const OptionValues& values) {
  for (const auto& [name, value] : values) {
    if (given.contains(name)) continue;
    const auto option = std::ranges::find(options, name, &hw::Parameter::key);
    if (option == options.end())
      throw std::logic_error(fmt::format("--{} follows {}, but is not declared", name, from));
    try {
      hw::assign(*option, value);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: --{}: {}", from, name, error.what()));
    }
  }
}

void check_trace_of_model(const std::string& model, int experts, int experts_per_token) {
  if (model.empty()) return;
  const models::Experts of = models::load_model(model).experts();
  if (of.routed != experts || of.chosen != experts_per_token)
    throw InputError(
        fmt::format("--model {}: {} of {} experts, and the trace of --routing has {} of {}; allowed: "
                    "a trace of this model",
                    model, of.chosen, of.routed, experts_per_token, experts));
}

std::vector<std::string> model_files(const std::string& name_or_path) {
  if (name_or_path.empty()) return {};
  const std::string file = models::load_model(name_or_path).file;
  return file.empty() ? std::vector<std::string>{} : std::vector<std::string>{file};
}

}  // namespace cm384::studies
