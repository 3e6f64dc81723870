#include "workloads/service/deployment.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/text/embedded_text.h"
#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/nearest_name.h"
#include "base/text/toml_file.h"

namespace cm384::service {
namespace {

std::vector<hw::Parameter> parameters_of(Deployment& deployment) {
  std::vector<hw::Parameter> list;
  Deployment::describe(deployment, hw::detail::Lister(list));
  return list;
}

// A TOML value as hw::assign takes it.
std::string text_of(const hw::TomlFile& file, const toml::node& node, const std::string& key) {
  if (node.is_string()) return node.as_string()->get();
  if (node.is_integer()) return fmt::format("{}", node.as_integer()->get());
  if (node.is_floating_point()) return fmt::format("{}", node.as_floating_point()->get());
  if (node.is_boolean()) return node.as_boolean()->get() ? "true" : "false";
  file.refuse(node, key, "allowed: a number, a text, or { value, from, source }");
}

void read(Deployment& deployment, std::string_view text, const std::string& name) {
  const hw::TomlFile file(text, name);
  std::vector<hw::Parameter> parameters = parameters_of(deployment);
  const std::vector<std::string> keys = hw::keys_of(parameters);
  for (const auto& [section, node] : file.root()) {
    if (!node.is_table())
      file.refuse(node, section.str(),
                  "allowed: sections [prefill], [decode], [cache], [recovery], [prices]");
    for (const auto& [short_key, entry] : *node.as_table()) {
      const std::string key = fmt::format("{}.{}", section.str(), short_key.str());
      const auto found = std::ranges::find(parameters, key, &hw::Parameter::key);
      if (found == parameters.end()) file.refuse(entry, key, "no such parameter" + hw::suggestion(key, keys));
      const toml::node* value = &entry;
      Deployment::Source source{"user file", fmt::format("{}:{}", name, entry.source().begin.line)};
      if (const toml::table* table = entry.as_table()) {
        file.check_keys(*table, {"value", "from", "source"});
        value = table->get("value");
        if (value == nullptr) file.refuse(entry, key, "has no `value`");
        source = {file.text(*table, "from"), file.text(*table, "source")};
      }
      try {
        hw::assign(*found, text_of(file, *value, key));
      } catch (const InputError& error) {
        file.refuse(*value, key, error.what());
      }
      deployment.sources[key] = source;
    }
  }
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
    // A file stands on the published one.
    if (known.name == name_or_path || known.name == kPublishedDeployment)
      read(deployment, known.text, std::string(known.name) + ".toml");
    named = named || known.name == name_or_path;
  }
  if (!named) {
    if (name_or_path.find('/') == std::string::npos && !name_or_path.ends_with(".toml"))
      throw InputError(fmt::format(
          "deployment {}: no such deployment; allowed: {}, or a file (with '/' or ending in .toml)",
          name_or_path, fmt::join(deployment_names(), ", ")));
    read(deployment, read_input(name_or_path, kLargestText), name_or_path);
  }
  deployment.name = name_or_path;
  std::vector<hw::Parameter> parameters = parameters_of(deployment);
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
  }
  if (deployment.prefill.least_time > deployment.prefill.batch_time)
    throw InputError("deployment: prefill.least_time is more than prefill.batch_time");
  return deployment;
}

}  // namespace cm384::service
