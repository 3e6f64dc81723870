#include "workloads/service/deployment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "base/text/embedded_text.h"
#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/nearest_name.h"
#include "base/text/toml_file.h"
#include "workloads/service/library.h"
#include "workloads/service/prefill_times.h"

namespace cm384::service {
namespace {

// `comes_with_us`: all values say where they come from.
void read(Deployment& deployment, std::string_view text, const std::string& name, bool comes_with_us) {
  const hw::TomlFile file(text, name);
  const auto take = [&](const hw::Parameter& parameter, const toml::node& node) {
    const hw::TomlEntry entry = file.entry_of(parameter.key, node, comes_with_us);
    file.assign(parameter, *entry.value);
    deployment.sources[parameter.key] = {entry.from.empty() ? "user file" : entry.from, entry.source};
    deployment.own.insert(parameter.key);
  };
  file.read(deployment, {.take = take});
}

void check_scale(const Deployment& deployment) {
  const ScaleSpec& scale = deployment.scale;
  if (scale.acts() && deployment.mixed())
    throw InputError(
        fmt::format("deployment: scale.{}: has no effect with prefill.pool = decode; allowed: own",
                    scale.most > 0          ? "most"
                    : scale.decode_most > 0 ? "decode_most"
                                            : "move"));
  const auto check_most = [](const char* key, int most, const char* own, int instances) {
    if (most > 0 && most <= instances)
      throw InputError(fmt::format("deployment: scale.{}: {}; allowed: more than {}.instances, {}, or 0", key,
                                   most, own, instances));
  };
  check_most("most", scale.most, "prefill", deployment.prefill.instances);
  check_most("decode_most", scale.decode_most, "decode", deployment.decode.instances);
  if (scale.move && scale.adds())
    throw InputError(
        "deployment: scale.move: with scale.most or scale.decode_most; allowed: instances that are started, "
        "or that change their pool");
  if (scale.move) {
    const int ratio = deployment.decode.npus / deployment.prefill.npus;
    if (ratio * deployment.prefill.npus != deployment.decode.npus)
      throw InputError(
          fmt::format("deployment: scale.move: decode.npus is {}; allowed: multiples of prefill.npus, {}",
                      deployment.decode.npus, deployment.prefill.npus));
    if (deployment.decode.instances == 1 && deployment.prefill.instances <= ratio)
      throw InputError(
          fmt::format("deployment: scale.move: has no effect with one instance of decode and {} of prefill; "
                      "allowed: 2 or "
                      "more of decode, or {} or more of prefill",
                      deployment.prefill.instances, ratio + 1));
  }
  const auto needs = [&](bool held, std::initializer_list<const char*> keys, const char* allowed) {
    for (const char* key : keys)
      if (deployment.is_changed(key) && !held)
        throw InputError(fmt::format("deployment: {}: has no effect; allowed: with {}", key, allowed));
  };
  needs(scale.acts(), {"scale.interval"}, "scale.most, scale.decode_most or scale.move");
  needs(scale.most > 0 || scale.move, {"scale.up_tokens"}, "scale.most or scale.move");
  needs(scale.decode_most > 0 || scale.move, {"scale.up_use", "scale.down_use"},
        "scale.decode_most or scale.move");
  needs(scale.adds(), {"scale.start"}, "scale.most or scale.decode_most");
}

}  // namespace

std::vector<std::string> deployment_names() {
  std::vector<std::string> names;
  for (const hw::EmbeddedText& known : hw::embedded_deployments()) names.emplace_back(known.name);
  return names;
}

Deployment load_deployment(const std::string& name_or_path, const std::vector<std::string>& changes) {
  Deployment deployment;
  bool named = false;
  for (const hw::EmbeddedText& known : hw::embedded_deployments()) {
    // A file stands on the published one, whose values are not its own.
    deployment.own.clear();
    if (known.name == name_or_path || known.name == kPublishedDeployment)
      read(deployment, known.text, std::string(known.name) + ".toml", true);
    named = named || known.name == name_or_path;
  }
  if (!named) {
    if (name_or_path.find('/') == std::string::npos && !name_or_path.ends_with(".toml"))
      throw InputError(fmt::format(
          "deployment {}: no such deployment; allowed: {}, or a file (with '/' or ending in .toml)",
          name_or_path, fmt::join(deployment_names(), ", ")));
    deployment.own.clear();
    read(deployment, read_input(name_or_path, kLargestText), name_or_path, false);
  }
  deployment.name = name_or_path;
  std::vector<hw::Parameter> parameters = hw::list_parameters(deployment);
  for (const std::string& change : changes) {
    const std::size_t equals = change.find('=');
    const std::string key = change.substr(0, equals);
    const auto found = std::ranges::find(parameters, key, &hw::Parameter::key);
    if (equals == std::string::npos || found == parameters.end())
      throw InputError(
          fmt::format("--deploy {}: no such parameter{}; allowed: KEY=VALUE such as decode.batch=64", change,
                      hw::suggestion(key, hw::keys_of(parameters))));
    try {
      hw::assign(*found, change.substr(equals + 1));
    } catch (const InputError& error) {
      throw InputError(fmt::format("--deploy {}: {}", key, error.what()));
    }
    deployment.sources[key] = {"command line", change};
    deployment.own.insert(key);
  }
  if (deployment.prefill.least_time > deployment.prefill.batch_time)
    throw InputError("deployment: prefill.least_time is more than prefill.batch_time");
  if (deployment.prefill.ageing > Time{} && deployment.prefill.order != "priority")
    throw InputError(
        fmt::format("deployment: prefill.ageing: has no effect with prefill.order = {}; allowed: priority",
                    deployment.prefill.order));
  if (!deployment.prefill.shares.empty() && deployment.prefill.order != "fair" &&
      deployment.decode.order != "fair" && deployment.quota.tokens_s == 0)
    throw InputError(
        fmt::format("deployment: prefill.shares: has no effect with prefill.order = {}; allowed: fair, or "
                    "with decode.order = fair or quota.tokens_s",
                    deployment.prefill.order));
  if (deployment.decode.order == "fair" && deployment.mixed())
    throw InputError("deployment: decode.order: has no effect with prefill.pool = decode; allowed: own");
  if (deployment.is_changed("quota.period") && deployment.quota.tokens_s == 0)
    throw InputError("deployment: quota.period: has no effect; allowed: with quota.tokens_s");
  if (deployment.prefill.chunk > deployment.prefill.batch_tokens)
    throw InputError(fmt::format("deployment: prefill.chunk: {}; allowed: at most prefill.batch_tokens, {}",
                                 deployment.prefill.chunk, deployment.prefill.batch_tokens));
  const std::size_t drafts = deployment.decode.draft_acceptance.size();
  if (drafts > 0 && drafts != static_cast<std::size_t>(deployment.decode.mtp))
    throw InputError(fmt::format(
        "deployment: decode.draft_acceptance: {} numbers; allowed: one for each of decode.mtp, {}", drafts,
        deployment.decode.mtp));
  if (drafts > 0 && deployment.is_changed("decode.acceptance"))
    throw InputError("deployment: decode.acceptance: has no effect with decode.draft_acceptance");
  if (deployment.is_changed("decode.block") && deployment.decode.reserve != "growing")
    throw InputError("deployment: decode.block: has no effect with decode.reserve = whole; allowed: growing");
  check_scale(deployment);
  if (deployment.mixed()) {
    if (deployment.is_changed("prefill.instances"))
      throw InputError(
          "deployment: prefill.instances: has no effect with prefill.pool = decode; allowed: own");
    if (deployment.groups() * deployment.prefill.npus != deployment.decode.npus)
      throw InputError(fmt::format(
          "deployment: prefill.pool = decode: decode.npus is {}; allowed: multiples of prefill.npus, {}",
          deployment.decode.npus, deployment.prefill.npus));
  }
  for (const char* key :
       {"decode.preempt", "decode.swap_room", "decode.swap_out_rate", "decode.swap_in_rate"}) {
    if (!deployment.is_changed(key)) continue;
    if (deployment.decode.reserve != "growing")
      throw InputError(
          fmt::format("deployment: {}: has no effect with decode.reserve = whole; allowed: growing", key));
    if (deployment.decode.preempt != "swap")
      throw InputError(
          fmt::format("deployment: {}: has no effect with decode.preempt = recompute; allowed: swap", key));
  }
  return deployment;
}

std::string fit_to(const Library& library, Bytes memory, Deployment& deployment) {
  constexpr double kBuffersGb = 5;  // activations and buffers: assumed, as of the published deployment
  const DecodePoint* step = nullptr;
  for (const DecodePoint& point : library.decode()) {
    if (point.network.empty() || point.ranks != deployment.decode_dies()) continue;
    if (step != nullptr && step->network != point.network)
      throw InputError(
          fmt::format("library of {}: steps of {} dies are of {} and of {}; allowed: of one model",
                      library.machine(), point.ranks, step->network, point.network));
    step = &point;
  }
  if (step == nullptr || step->network == deployment.decode.model) return {};
  DecodeSpec& decode = deployment.decode;
  const auto is_own = [&](const char* key) { return deployment.own.contains(key); };
  const double room_gb = static_cast<double>(memory.count) / 1e9 - step->weights_gb - kBuffersGb;
  if (!is_own("decode.token") && step->context_bytes < 1)
    throw InputError(
        fmt::format("the library's steps do not say what a token of {} takes in the cache; allowed: "
                    "--deploy decode.token=SIZE",
                    step->network));
  if (!is_own("decode.kv_room") && room_gb <= 0)
    throw InputError(
        fmt::format("weights of {}, {:.1f} GB, leave no room for contexts on a die of {:.1f} GB; "
                    "allowed: --deploy decode.kv_room=SIZE",
                    step->network, step->weights_gb, static_cast<double>(memory.count) / 1e9));
  if (!is_own("prefill.batch_time") && !PrefillTimes(deployment, library).measured())
    throw InputError(fmt::format(
        "the library has no batches of prompts of {} on {} dies, and prefill.batch_time is of {}; "
        "allowed: a library with them, or --deploy prefill.batch_time=TIME",
        step->network, deployment.prefill_dies(), decode.model));
  if (!is_own("decode.token")) decode.token = Bytes{std::llround(step->context_bytes)};
  if (!is_own("decode.kv_room")) decode.kv_room = Bytes{std::llround(room_gb * 1e9)};
  decode.model = step->network;
  return fmt::format(
      "contexts are those of {}: {} B per token; a die has {:.1f} GB for them beside {:.1f} GB of "
      "weights and {:.0f} GB assumed for activations and buffers",
      decode.model, decode.token.count, static_cast<double>(decode.kv_room.count) / 1e9, step->weights_gb,
      kBuffersGb);
}

}  // namespace cm384::service
