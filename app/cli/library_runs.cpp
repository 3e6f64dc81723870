#include "app/cli/library_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text/content_hash.h"
#include "base/text/error.h"
#include "firmware/embedded.h"
#include "workloads/frame/build_info.h"
#include "workloads/frame/result_json.h"

namespace cm384::cli {
namespace {

using service::Library;

service::DecodePoint decode_point(const Json& row, const Json& parameters) {
  service::DecodePoint point;
  point.ranks = row.at("ranks").get<int>();
  point.batch = row.at("batch").get<int>();
  point.kv = row.at("kv").get<int>();
  point.mtp = row.at("mtp").get<int>();
  point.microbatches = row.at("microbatches").get<int>();
  // The first layer of its kind and those that predict tokens have nothing to overlap with.
  const int moe = parameters.at("moe-layers").get<int>(), dense = parameters.at("dense-layers").get<int>();
  point.layers_alike = (moe > 0 ? moe : dense) - 1;
  point.layers_alone = (moe > 0 ? dense : 0) + 1 + point.mtp;
  point.network = parameters.value("model", std::string());
  point.weights_gb = row.at("weights_GB").get<double>();
  point.context_bytes = row.at("context_bytes").get<double>();
  point.step_ms = row.at("step_ms").get<double>();
  point.layer_us = row.at("layer_us").get<double>();
  point.attention_half_us = row.at("attention_half_us").get<double>();
  point.experts_half_us = row.at("experts_half_us").get<double>();
  return point;
}

service::AttentionPoint attention_point(const Json& row) {
  service::AttentionPoint point;
  if (row.at("stage") != "attention") throw InputError("gave no row of attention");
  point.sequences = row.at("batch").get<int>();
  point.kv = row.at("kv_len").get<int>();
  point.mtp = row.at("mtp").get<int>();
  point.us = row.at("task_us").get<double>();
  return point;
}

service::PrefillPoint prefill_point(const Json& row, const Json& parameters) {
  service::PrefillPoint point;
  point.ranks = row.at("ranks").get<int>();
  point.tokens = row.at("tokens").get<int>();
  point.prompt = row.at("prompt").get<int>();
  point.cached = row.at("cached").get<int>();
  point.microbatches = row.at("microbatches").get<int>();
  const auto option = [&](const char* name) { return parameters.at(name).get<std::string>(); };
  point.way = option("attention") + ", " + option("path");
  if (option("attention") == "sp-tp-sp") point.way += ", " + option("latents");
  point.network = parameters.value("model", std::string());
  point.latency_ms = row.at("latency_ms").get<double>();
  // Parts of two microbatches overlap: attention is then its share of all of them.
  double attention = 0, context = 0, read = 0, all = 0;
  for (const Json& part : row.at("parts")) {
    const double ms = part.at("ms").get<double>();
    all += ms;
    context += ms * part.at("context").get<double>();
    if (part.at("name") == "attention") attention += ms;
    if (part.at("of") == "cache") read += ms;
  }
  if (all <= 0) return point;
  point.attention_ms = point.latency_ms * attention / all;
  point.context_ms = point.latency_ms * context / all;
  point.read_ms = point.latency_ms * read / all;
  return point;
}

// Numbers of the row and of its summaries, but for what the options say; lists of parts stay out.
service::OperatorPoint operator_point(const Json& row, const runs::Runs::Request& request,
                                      const std::string& metric) {
  service::OperatorPoint point{request.study, metric, request.settings, {}, {}, {}};
  const auto add = [&](const std::string& name, const Json& value) {
    if (value.is_number() && std::isfinite(value.get<double>()))
      point.values.emplace_back(name, value.get<double>());
  };
  for (const auto& [name, value] : row.items()) {
    if (std::ranges::find(request.settings, name, &runs::Setting::first) != request.settings.end()) continue;
    add(name, value);
    if (!value.is_object()) continue;
    for (const auto& [part, number] : value.items()) add(name + "." + part, number);
  }
  if (std::ranges::find(point.values, metric, &std::pair<std::string, double>::first) == point.values.end())
    throw InputError(fmt::format("gave no number {}", metric));
  return point;
}

}  // namespace

bool has_points_of_its_own(std::string_view study) {
  return study == "decode" || study == "mla" || study == "prefill";
}

runs::Runs::Request request_of(const std::string& command) {
  const std::vector<std::string> words = studies::shell_words(command);
  const auto refuse = [&] {
    throw InputError(fmt::format(
        "'{}': is not the command of a point; allowed: cm384 run STUDY --OPTION VALUE ..", command));
  };
  if (words.size() < 3 || words[0] != "cm384" || words[1] != "run") refuse();
  runs::Runs::Request request{words[2], {}};
  for (std::size_t k = 3; k < words.size(); ++k) {
    if (!words[k].starts_with("--") || words[k].size() < 3) refuse();
    const std::string option = words[k].substr(2);
    if (option == "set" && k + 1 < words.size()) {  // of the machine
      const std::string& change = words[++k];
      const std::size_t equals = change.find('=');
      if (equals == std::string::npos) refuse();
      request.settings.emplace_back(change.substr(0, equals), change.substr(equals + 1));
      continue;
    }
    if (const std::size_t equals = option.find('='); equals != std::string::npos) {
      request.settings.emplace_back(option.substr(0, equals), option.substr(equals + 1));
    } else if (k + 1 < words.size() && !words[k + 1].starts_with("--")) {
      request.settings.emplace_back(option, words[++k]);
    } else {
      request.settings.emplace_back(option, "true");
    }
  }
  return request;
}

std::string command_of(const runs::Runs::Request& request) {
  std::vector<std::string> words{"cm384", "run", request.study};
  for (const auto& [key, value] : request.settings) {
    if (key.find('.') != std::string::npos) {
      words.insert(words.end(), {"--set", fmt::format("{}={}", key, value)});
    } else if (value.starts_with("-") || value == "true" || value == "false") {
      words.push_back(fmt::format("--{}={}", key, value));
    } else {
      words.insert(words.end(), {"--" + key, value});
    }
  }
  return studies::shell_command(words);
}

void add_point(Library& library, const runs::Runs::Request& request, const std::string& metric,
               const Json& document) {
  const auto add = [&](auto point) {
    point.command = command_of(request);
    point.model = studies::build_info().model;
    point.seconds = document.at("simulator").at("wall_s").get<double>();
    if (document.contains("invocation"))
      point.date = document["invocation"].at("date").get<std::string>().substr(0, 10);  // ISO 8601
    library.add(std::move(point));
  };
  try {
    const Json& rows = document.at("rows");
    if (rows.size() != 1)
      throw InputError(fmt::format("gave {} rows; allowed: options that give one", rows.size()));
    if (request.study == "decode") {
      add(decode_point(rows[0], document.at("parameters")));
    } else if (request.study == "mla") {
      add(attention_point(rows[0]));
    } else if (request.study == "prefill") {
      add(prefill_point(rows[0], document.at("parameters")));
    } else {
      add(operator_point(rows[0], request, metric));
    }
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", command_of(request), error.what()));
  } catch (const Json::exception& error) {
    throw InputError(
        fmt::format("{}: its result is of another version: {}", command_of(request), error.what()));
  }
}

std::string model_and_kernels() {
  std::string text(studies::build_info().model);
  for (const std::string_view name : firmware::kernel_names()) {
    const auto image = firmware::kernel_image(name);
    text += hash_of({reinterpret_cast<const char*>(image.data()), image.size()});
  }
  return hash_of(text);
}

}  // namespace cm384::cli
