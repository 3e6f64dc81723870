#include "workloads/service/study/serve_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>

#include "base/text/embedded_text.h"
#include "base/text/error.h"
#include "base/text/output_file.h"
#include "workloads/service/context_links.h"
#include "workloads/service/study/serve_evidence.h"
#include "workloads/service/study/serve_faults.h"
#include "workloads/service/study/serve_search.h"

namespace cm384::studies {
namespace {

constexpr std::size_t kMostRates = 100;
constexpr std::string_view kPublishedModel = "deepseek-r1";  // of libraries that do not say it

// Every number of decode instances that leaves room for one of prefill; what is left over serves nobody.
std::vector<service::Deployment> divisions(const service::Deployment& deployment,
                                           const ServeOptions& options) {
  for (const std::string& change : options.deploy)
    if (change.starts_with("prefill.instances=") || change.starts_with("decode.instances="))
      throw InputError(fmt::format("run serve: --deploy {}: has no effect with --npus", change));
  std::vector<service::Deployment> made;
  if (deployment.mixed()) {
    made.push_back(deployment);
    made.back().decode.instances = options.npus / deployment.decode.npus;
    if (made.back().decode.instances == 0)
      throw InputError(fmt::format("run serve: --npus {}: allowed: {} or more, which is an instance",
                                   options.npus, deployment.decode.npus));
    return made;
  }
  const int prefill = deployment.prefill.npus, decode = deployment.decode.npus;
  for (int count = 1; count * decode + prefill <= options.npus; ++count) {
    made.push_back(deployment);
    made.back().decode.instances = count;
    made.back().prefill.instances = (options.npus - count * decode) / prefill;
  }
  if (made.empty())
    throw InputError(fmt::format(
        "run serve: --npus {}: allowed: {} or more, which is an instance of prefill and one of decode",
        options.npus, prefill + decode));
  return made;
}

// Options of drawn requests that something else overrules.
void check_load(const StudyContext& context, const ServeOptions& options) {
  const auto refuse = [&](std::initializer_list<const char*> without_effect, const char* with) {
    refuse_given(context.given, "run serve: ", without_effect, fmt::format("with --{}", with));
  };
  if (!options.requests.requests.empty())
    refuse({"lengths", "gaps", "ramp", "turns", "concurrency", "think"}, "requests");
  if (!options.observed.empty())
    refuse({"requests", "rate", "duration", "prompt", "output", "reuse", "lengths", "gaps", "ramp", "turns",
            "concurrency", "think", "slo", "seeds"},
           "observed");
  if (!options.search.empty())
    refuse({"npus", "slo", "seeds", "observed", "timeline", "audit", "audit-prefill", "outage", "fault",
            "switch"},
           "search");
  if (!options.search.empty() && options.rate.size() > 1)
    throw InputError("run serve: --search: takes one --rate");
  for (const auto& [name, asked] :
       {std::pair{"beside", !options.beside.empty()}, {"training", !options.training.empty()}}) {
    if (!asked) continue;
    refuse({"npus", "slo", "seeds", "observed", "search", "timeline", "audit", "audit-prefill", "outage",
            "fault", "switch"},
           name);
    if (options.rate.size() > 1) throw InputError(fmt::format("run serve: --{}: takes one --rate", name));
  }
  if (context.given.contains("shared-npus") && options.beside.empty() && options.training.empty())
    throw InputError("run serve: --shared-npus: has an effect only with --beside or --training");
  if (!options.lengths.empty()) refuse({"prompt", "output"}, "lengths");
  if (options.concurrency > 0) refuse({"rate", "duration", "gaps", "ramp", "slo"}, "concurrency");
  if (options.think > Time{} && options.concurrency == 0 && options.turns == 1)
    throw InputError("run serve: --think: has an effect only with --concurrency or --turns");
}

// What an option or a key of the deployment has no other one for.
void check_sharing(const ServeOptions& options, const service::Deployment& deployment) {
  constexpr int kMostParts = 1000;  // each server keeps lists of each
  if (deployment.cache.quota < 1 && options.tenants == 1 && !options.shared_cache)
    throw InputError(
        "run serve: cache.quota: has no effect with one tenant; allowed: --tenants 2 or more, or "
        "--shared-cache");
  if (deployment.cache.quota < 1 && !options.shared_cache && options.tenants > kMostParts)
    throw InputError(fmt::format("run serve: cache.quota: of {} tenants; allowed: at most {}",
                                 options.tenants, kMostParts));
  for (const std::string& change : options.deploy)
    if (options.training.empty() && change.starts_with("training."))
      throw InputError(fmt::format("run serve: --deploy {}: has no effect without --training", change));
}

// Blocks of other lengths would be other blocks.
void check_warm(const service::RequestTrace& warm, const service::RequestTrace& trace,
                const service::Deployment& deployment) {
  if (!deployment.cache.on) throw InputError("run serve: --warm: has no effect with cache.on = false");
  if (warm.block_tokens == 0)
    throw InputError("run serve: --warm: requests without blocks; allowed: those with blocks or sessions");
  if (trace.block_tokens != warm.block_tokens)
    throw InputError(
        fmt::format("run serve: --warm: blocks of {} tokens, and of {} in the requests; allowed: equal",
                    warm.block_tokens, trace.block_tokens));
}

void check_classes(const ServeOptions& options, const service::Deployment& deployment) {
  for (const auto& [key, order] :
       {std::pair{"prefill", deployment.prefill.order}, {"decode", deployment.decode.order}})
    if (order == "fair" && options.tenants == 1)
      throw InputError(fmt::format(
          "run serve: {}.order = fair: has no effect with one tenant; allowed: --tenants 2 or more", key));
  if (options.classes > 1 && deployment.prefill.order != "priority" && options.slo_class.empty())
    throw InputError(
        fmt::format("run serve: --classes: has no effect with prefill.order = {}; allowed: --deploy "
                    "prefill.order=priority, or --slo-class",
                    deployment.prefill.order));
}

// Of the arrivals that are known a three hundredth; where there are none, fine ones, which a run makes
// coarser.
Time sample_distance(const service::RequestTrace& trace) {
  Time last{};
  for (const service::Request& request : trace.requests)
    if (request.follows < 0) last = request.arrival;
  return {std::max<std::int64_t>(1, last.ps / 300)};
}

// With a model's name and nothing else: what comes with cm384 for it.
std::string library_of(const StudyContext& context, const ServeOptions& options) {
  if (options.model.empty() || options.model == kPublishedModel || context.given.contains("library"))
    return options.library;
  for (const hw::EmbeddedText& known : hw::embedded_library())
    if (known.name == options.model) return options.model;
  throw InputError(fmt::format(
      "run serve: --model {}: no measured steps of it come with cm384; allowed: --library with those "
      "that `cm384 library measure` makes of a grid such as hw/library/qwen3-32b.toml, and "
      "--deployment",
      options.model));
}
std::string deployment_of(const StudyContext& context, const ServeOptions& options) {
  if (options.model.empty() || options.model == kPublishedModel || context.given.contains("deployment"))
    return options.deployment;
  const std::vector<std::string> names = service::deployment_names();
  return std::ranges::find(names, options.model) != names.end() ? options.model : options.deployment;
}

void check_model(const ServeOptions& options, const service::Library& library) {
  if (options.model.empty()) return;
  for (const service::DecodePoint& point : library.decode()) {
    const std::string network = point.network.empty() ? std::string(kPublishedModel) : point.network;
    if (network != options.model)
      throw InputError(
          fmt::format("run serve: --model {}: the library has steps of {}", options.model, network));
  }
}

}  // namespace

ServeRuns::ServeRuns(const StudyContext& context, const ServeOptions& options)
    : context_(context),
      options_(options),
      library_(service::Library::load(library_of(context, options))),
      rates_(options.rate),
      objectives_{{options.slo_ttft, options.slo_tpot, options.slo_e2e, options.slo_itl}} {
  for (const std::string& text : options.slo_class)
    if (const auto [number, objective] = class_objective(text);
        !objectives_.by_class.emplace(number, objective).second)
      throw InputError(fmt::format("run serve: --slo-class {}: class {} is listed twice", text, number));
  check_load(context, options);
  check_model(options, library_);
  const service::Deployment deployment = base_deployment();
  deployments_ = options.npus > 0 ? divisions(deployment, options) : std::vector{deployment};
  if (library_.machine() != context.machine.name || library_.changes() != context.machine.overrides)
    throw InputError(fmt::format(
        "run serve: the library {} is of {}, not of {}; allowed: --library with times of this machine, which "
        "`cm384 library measure` or `cm384 library scale` makes",
        options.library, library_.machine_text(),
        service::Library(context.machine.name, context.machine.overrides).machine_text()));
  if (rates_.size() > kMostRates)
    throw InputError(fmt::format("run serve: --rate: {} rates; allowed: at most {}, such as 100,200,300",
                                 rates_.size(), kMostRates));
  if (rates_.empty()) rates_.push_back(0);
  if (!options.save.empty()) OutputFile::try_open(options.save);
  if (!options.lengths.empty())
    for (const service::Request& request : service::read_requests(options.lengths).requests)
      lengths_.emplace_back(request.prompt, request.output);
  if (!options.observed.empty()) observed_ = service::read_observed(options.observed);
  if (!options.warm.empty()) warm_ = service::read_requests(options.warm, options.requests.block);
  service_.faults = serve_faults(options, context.machine.topology.sub_planes);
  service_.tenants = options.tenants;
  service_.allow_extrapolation = options.allow_extrapolation;
  service_.evidence = options.evidence;
  service_.rdma = service::payload_rate(context.machine.rdma);
  service_.rdma_latency = service::write_latency(context.machine.rdma);
}

service::Deployment ServeRuns::base_deployment() {
  if (options_.search.empty()) return deployment_with({}, &fitted_);
  std::string why;
  for (const std::vector<std::string>& changes : combinations_of(options_.search)) {
    try {
      return deployment_with(changes, &fitted_);
    } catch (const InputError& error) {
      if (why.empty()) why = fmt::format("{}: {}", fmt::join(changes, " "), error.what());
    }
  }
  throw InputError(fmt::format("run serve: --search: no deployment is possible; {}", why));
}

service::Deployment ServeRuns::deployment_with(const std::vector<std::string>& changes,
                                               std::string* fitted) const {
  std::vector<std::string> all = options_.deploy;
  all.insert(all.end(), changes.begin(), changes.end());
  service::Deployment deployment = service::load_deployment(deployment_of(context_, options_), all);
  deployment.settle(context_.machine.topology.dies_per_package);
  check_classes(options_, deployment);
  check_sharing(options_, deployment);
  std::string made = service::fit_to(library_, context_.machine.memory.hbm.capacity, deployment);
  if (fitted != nullptr) *fitted = std::move(made);
  return deployment;
}

std::string ServeRuns::pools_of(const service::Deployment& deployment) {
  if (deployment.mixed()) return fmt::format("{} mixed", deployment.decode.instances);
  return fmt::format("{}:{}", deployment.prefill.instances, deployment.decode.instances);
}

service::RequestTrace ServeRuns::trace(std::uint64_t seed, double rate) const {
  service::RequestTrace made;
  if (observed_) {
    made = observed_->trace;
  } else if (options_.requests.requests.empty()) {
    service::DrawnRequests drawn = options_.requests.drawn(seed, rate);
    drawn.lengths = lengths_;
    drawn.gaps = options_.gaps;
    drawn.ramp = options_.ramp;
    drawn.turns = options_.turns;
    drawn.think = options_.think;
    drawn.concurrency = options_.concurrency;
    drawn.count = options_.count > 0 ? options_.count : std::int64_t{4} * options_.concurrency;
    made = service::draw_requests(drawn);
  } else {
    made = options_.requests.load(context_, "serve", seed, rate);
  }
  // Where nobody is named, each request is of another.
  if ((options_.classes > 1 || options_.tenants > 1) &&
      std::ranges::all_of(made.requests, [](const auto& r) { return r.session == 0 && r.follows < 0; })) {
    std::uint32_t number = 0;
    for (service::Request& request : made.requests) request.session = number++;
  }
  if (options_.classes > 1)
    for (service::Request& request : made.requests)
      request.priority =
          static_cast<std::uint8_t>(request.session % static_cast<std::uint32_t>(options_.classes));
  for (const auto& [number, objective] : objectives_.by_class)
    if (std::ranges::none_of(made.requests,
                             [number = number](const auto& r) { return r.priority == number; }))
      throw InputError(
          fmt::format("run serve: --slo-class {}: has no effect: no request is of that class; allowed: "
                      "classes of --classes, "
                      "or `priority` in the file",
                      number));
  return made;
}

void ServeRuns::save() const {
  if (!options_.save.empty())
    write_file(options_.save, service::requests_text(trace(context_.seed, rates_.front())));
}

service::ServiceResult ServeRuns::run(const service::Deployment& deployment,
                                      const service::RequestTrace& trace, std::uint64_t seed, bool sampled,
                                      service::ServiceWatch watch, ServeProgress progress) const {
  service::ServiceOptions options = prepared(deployment, trace, seed, sampled);
  options.progress = std::move(progress);
  options.watch = std::move(watch);
  return service::serve(trace, deployment, library_, options);
}

service::ServiceOptions ServeRuns::prepared(const service::Deployment& deployment,
                                            const service::RequestTrace& trace, std::uint64_t seed,
                                            bool sampled) const {
  service::ServiceOptions options = service_;
  options.seed = seed;
  options.interrupted = &context_.interrupted;
  if (seed == context_.seed) {
    options.step_samples = options_.audit;
    options.batch_samples = options_.audit_prefill;
  }
  if (warm_) {
    check_warm(*warm_, trace, deployment);
    options.warm = &*warm_;
  }
  if (sampled) options.sample = sample_distance(trace);
  return options;
}

Row ServeRuns::row(const service::Deployment& deployment, const service::RequestTrace& trace,
                   const service::ServiceResult& result) const {
  Row row = service_row(trace, deployment, result, objectives_, options_.tenants);
  const hw::Machine& machine = context_.machine;
  const double peak = machine.topology.dies_per_package * hw::peaks_of(machine).int8_tops;
  const Value& rate = row["tokens_s_npu"];
  row.set("tokens_s_tflops", rate.empty() ? Value() : Value(rate.number() / peak));
  if (options_.why) set_why(row, result);
  if (options_.evidence) row.set("evidence_at", evidence_rows(trace, result));
  return row;
}

std::optional<ServeRuns::LargestRate> ServeRuns::largest_rate(const service::Deployment& deployment,
                                                              std::uint64_t seed,
                                                              const ServeProgress& progress) const {
  constexpr double kNear = 1.01, kLargestRate = 1e6, kMostDrawn = 2e6;
  double good = 0, bad = 0,
         rate = rates_.front() > 0 ? rates_.front() : std::max(0.1, service::rate_of(trace(seed, 0)));
  std::map<double, Row> tried;
  for (int tries = 0; tries < 40 && (bad == 0 || good == 0 || bad / good > kNear); ++tries) {
    if (context_.interrupted != 0) return {};
    const service::RequestTrace requests = trace(seed, rate);
    const service::ServiceResult result = run(deployment, requests, seed, false, {}, progress);
    if (!result.complete) return {};
    const Row found = row(deployment, requests, result);
    tried.emplace(rate, search_point(rate, found));
    (found["goodput_share"].number() >= options_.slo_share ? good : bad) = rate;
    rate = bad == 0 ? rate * 2 : good == 0 ? rate / 2 : (good + bad) / 2;
    if (good == 0 && rate < 1e-3) break;
    const bool drawn = options_.requests.requests.empty() && !observed_;
    if (bad == 0 && (rate > kLargestRate ||
                     (drawn && rate / good * static_cast<double>(requests.requests.size()) > kMostDrawn)))
      break;
  }
  LargestRate largest{good, bad == 0, {}};
  for (auto& [at, point] : tried) largest.tried.push_back(std::move(point));
  return largest;
}

}  // namespace cm384::studies
