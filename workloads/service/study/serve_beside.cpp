#include "workloads/service/study/serve_beside.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/toml_file.h"

namespace cm384::studies {
namespace {

// Options of the command as a whole, or of questions that are asked of one service.
constexpr std::array kNotOfAFile{
    "npus",      "slo",           "slo-share", "slo-seeds",   "seeds",  "observed",     "search",
    "search-by", "why",           "evidence",  "outage",      "fault",  "switch",       "timeline-requests",
    "audit",     "audit-prefill", "beside",    "shared-npus", "export", "shared-cache", "training"};

// Beside what it would be on the NPUs alone that no service ever had.
void set_training(Row& row, const service::TrainingResult& training) {
  const double s = std::max(1e-12, training.seconds), tokens_s = training.tokens / s;
  row.set("training_npus", training.npu_s / s)
      .set("training_tokens_s", tokens_s)
      .set("training_changes", training.changes)
      .set("training_fixed_tokens_s", training.fixed_tokens_s)
      .set("training_gain",
           training.fixed_tokens_s == 0 ? Value() : Value(tokens_s / training.fixed_tokens_s - 1));
}

struct ServiceFile {
  std::string name;
  double share = 1;
  ServeOptions options;
  hw::TomlPlace place{};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("name", self.name, hw::Form{"NAME"}, "of the service, as its row has it", hw::Required{});
    visit("npu-share", self.share, Range{0.001, 1e6}, "weight by which it is due to a part of all NPUs");
    ServeOptions::describe(self.options, visit);
  }
};

}  // namespace

ServeBeside::ServeBeside(const StudyContext& context, const ServeRuns& own, const ServeOptions& options)
    : context_(context), own_(own), options_(options) {
  std::set<std::string> names{own.deployments().front().name};
  for (const std::string& path : options.beside) {
    const hw::TomlFile file(read_input(path, kLargestText), path);
    ServiceFile read;
    file.read(read);
    StudyContext its = context;
    its.given.clear();
    for (const auto& [key, node] : file.root()) {
      if (std::ranges::find(kNotOfAFile, key.str()) != kNotOfAFile.end())
        file.refuse(node, key.str(), "has no effect in a file of --beside; allowed: on the command line");
      if (key.str() != "name" && key.str() != "npu-share") its.given.emplace(key.str());
    }
    if (!names.insert(read.name).second)
      throw InputError(fmt::format("{}: name: {}: another service has it", path, read.name));
    read.options.why = options.why;
    read.options.evidence = options.evidence;
    read.options.shared_cache = options.shared_cache;
    Other& other = others_.emplace_back(Other{read.name, read.share, std::move(read.options), its});
    try {
      other.runs.emplace(other.context, other.options);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", path, error.what()));
    }
    if (other.runs->rates().size() > 1)
      throw InputError(fmt::format("{}: rate: {} rates; allowed: one", path, other.runs->rates().size()));
  }
}

std::optional<std::vector<ServeBeside::Served>> ServeBeside::run() const {
  std::vector<Served> served;
  const auto add = [&](const std::string& name, const ServeRuns& runs) {
    Served& one = served.emplace_back();
    one.name = name;
    one.trace = runs.trace(context_.seed, runs.rates().front());
    one.deployment = runs.deployments().front();
  };
  add(own_.deployments().front().name, own_);
  for (const Other& other : others_) add(other.name, *other.runs);
  std::vector<service::SharingService> services;
  const auto runs_of = [&](std::size_t k) -> const ServeRuns& {
    return k == 0 ? own_ : *others_[k - 1].runs;
  };
  for (std::size_t k = 0; k < served.size(); ++k) {
    service::ServiceOptions prepared = runs_of(k).prepared(served[k].deployment, served[k].trace,
                                                           context_.seed, !context_.out_folder.empty());
    services.push_back({served[k].name, served[k].trace, served[k].deployment, runs_of(k).library(),
                        std::move(prepared), k == 0 ? options_.npu_share : others_[k - 1].share});
  }
  const service::TrainingSpec& changes = served.front().deployment.training;
  service::Sharing sharing{options_.shared_npus, options_.shared_cache, {}, {}};
  if (!options_.training.empty())
    sharing = {options_.shared_npus,
               options_.shared_cache,
               service::training_sizes(options_.training),
               {changes.release, changes.resume, changes.hold}};
  service::SharedResult shared = service::serve_together(services, sharing);
  for (std::size_t k = 0; k < served.size(); ++k) {
    Served& one = served[k];
    one.result = std::move(shared.services[k]);
    if (!one.result.complete) return {};
    one.row = {{"pools", ServeRuns::pools_of(one.deployment)},
               {"rate", runs_of(k).rates().front()},
               {"service", one.name}};
    one.row.append(runs_of(k).row(one.deployment, one.trace, one.result));
    const double end = one.result.end.us() * 1e-6;
    one.row.set("npus", one.deployment.npus())
        .set("npus_mean", (one.result.prefill_pool_s * one.deployment.prefill.npus +
                           one.result.decode_pool_s * one.deployment.decode.npus) /
                              end)
        .set("denied", one.result.denied);
  }
  if (!options_.training.empty()) set_training(served.front().row, shared.training);
  return served;
}

}  // namespace cm384::studies
