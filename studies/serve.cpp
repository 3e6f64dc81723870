// `cm384 run serve`: a service under recorded or drawn requests.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "hw/error.h"
#include "hw/lines.h"
#include "hw/quantity.h"
#include "service/simulation.h"
#include "sim/output_file.h"
#include "studies/build_info.h"
#include "studies/serve_options.h"
#include "studies/serve_report.h"
#include "studies/studies.h"

namespace cm384::studies {
namespace {

// "prefill:2:60s:30s".
service::Outage outage_of(const std::string& text) {
  const auto parts = split_fields(text, ':');
  try {
    if (parts.size() != 4 || (parts[0] != "prefill" && parts[0] != "decode")) throw InputError("");
    service::Outage outage{parts[0] == "prefill", static_cast<int>(hw::parse_integer(parts[1])),
                           hw::parse_time(parts[2]), hw::parse_time(parts[3])};
    if (outage.instance < 0 || outage.at < Time{} || outage.duration < Time{}) throw InputError("");
    return outage;
  } catch (const InputError&) {
    throw InputError(fmt::format(
        "run serve: --outage {}: allowed: POOL:INSTANCE:AT:DURATION such as prefill:2:60s:30s", text));
  }
}

class Runs {
 public:
  Runs(const StudyContext& context, const ServeOptions& options)
      : context_(context),
        options_(options),
        deployment_(service::load_deployment(options.deployment, options.deploy)),
        library_(service::Library::load(options.library)),
        objectives_{options.slo_ttft, options.slo_tpot} {
    if (library_.machine() != context.machine.name || !context.machine.overrides.empty())
      throw InputError(fmt::format(
          "run serve: the library {} was measured on {}, not on {}{}; allowed: --library with times "
          "of this machine, in the form of hw/library/cloudmatrix384.json",
          options.library, library_.machine(), context.machine.name,
          context.machine.overrides.empty() ? "" : " with changes"));
    for (const std::string& text : options.outage) service_.outages.push_back(outage_of(text));
    service_.tenants = options.tenants;
    service_.allow_extrapolation = options.allow_extrapolation;
    service_.rdma = context.machine.rdma.link_rate;
    service_.rdma_latency = context.machine.rdma.link_latency * 2 + context.machine.rdma.switch_latency;
  }

  const service::Library& library() const { return library_; }
  const service::Deployment& deployment() const { return deployment_; }
  service::RequestTrace trace(std::uint64_t seed, double rate) const {
    RequestOptions requests = options_.requests;
    if (rate > 0) requests.rate = rate;
    return requests.load(context_, "serve", seed);
  }
  service::ServiceResult run(const service::RequestTrace& trace, std::uint64_t seed, bool sampled) const {
    service::ServiceOptions options = service_;
    options.seed = seed;
    if (sampled) options.sample = {std::max<std::int64_t>(1, trace.requests.back().arrival.ps / 300)};
    return service::serve(trace, deployment_, library_, options);
  }
  Row row(const service::RequestTrace& trace, const service::ServiceResult& result) const {
    return service_row(trace, deployment_, result, objectives_);
  }
  double share_at(double rate) const {
    const service::RequestTrace requests = trace(context_.seed, rate);
    return share_that_meets(requests, run(requests, context_.seed, false), objectives_);
  }

 private:
  const StudyContext& context_;
  const ServeOptions& options_;
  service::Deployment deployment_;
  service::Library library_;
  Objectives objectives_;
  service::ServiceOptions service_;
};

// The largest rate at which `share` of the requests meet the objectives, to a hundredth; 0: not even a tiny
// one.
std::optional<double> largest_rate(const StudyContext& context, const Runs& runs, double share, double from) {
  constexpr double kNear = 1.01;
  double good = 0, bad = 0, rate = from;
  for (int tries = 0; tries < 40 && (bad == 0 || good == 0 || bad / good > kNear); ++tries) {
    if (context.interrupted != 0) return {};
    (runs.share_at(rate) >= share ? good : bad) = rate;
    rate = bad == 0 ? rate * 2 : good == 0 ? rate / 2 : (good + bad) / 2;
    if (good == 0 && rate < 1e-3) break;
  }
  return good;
}

void note_of_deployment(const service::Deployment& deployment, const Row& row, StudyResult& result) {
  const double prefill = row["prefill_busy"].number(), decode = row["decode_busy"].number();
  const double requests = row["decode_requests"].number();
  const double slots = deployment.decode.instances * deployment.decode.npus * deployment.decode.batch;
  result.notes.push_back(
      fmt::format("{}: prefill is busy {:.0f} % of the time, decode {:.0f} % with {:.0f} of {:.0f} slots: {}",
                  deployment.name, prefill * 100, decode * 100, requests, slots,
                  prefill > requests / slots ? "prefill would fill up first" : "decode would fill up first"));
  const auto source = [&](const char* key) {
    const auto found = deployment.sources.find(key);
    return found == deployment.sources.end() ? std::string() : found->second.from + ": " + found->second.text;
  };
  result.notes.push_back("prefill is no simulation here but a parameter (" + source("prefill.batch_time") +
                         ")");
  result.notes.push_back(fmt::format(
      "cost: {} NPUs x {} an hour ({}); energy: {} W an NPU ({}); over output tokens, idle NPUs included",
      deployment.npus(), deployment.prices.npu_hour, source("prices.npu_hour"), deployment.prices.npu_watt,
      source("prices.npu_watt")));
}

// Of points that another commit's model gave; one that changes no golden result keeps the model.
void note_of_library(const service::Library& library, StudyResult& result) {
  std::size_t points = 0, others = 0;
  const auto count = [&](const auto& list) {
    points += list.size();
    others += static_cast<std::size_t>(
        std::ranges::count_if(list, [](const auto& point) { return point.model != build_info().model; }));
  };
  count(library.decode());
  count(library.attention());
  count(library.prefill());
  if (others > 0)
    result.notes.push_back(
        fmt::format("{} of {} points of the library were measured before golden results changed; their "
                    "commands stand in it",
                    others, points));
}

StudyResult run(const StudyContext& context, const ServeOptions& options) {
  StudyResult result;
  const Runs runs(context, options);
  if (!options.requests.requests.empty()) result.input_files.push_back(options.requests.requests);
  std::vector<Row> rows;
  for (int k = 0; k < options.seeds; ++k) {
    if (context.interrupted != 0) {
      result.complete = false;
      return result;
    }
    const std::uint64_t seed = context.seed + static_cast<std::uint64_t>(k);
    const service::RequestTrace trace = runs.trace(seed, 0);
    const bool first = k == 0, written = first && !context.out_folder.empty();
    const service::ServiceResult served = runs.run(trace, seed, written);
    rows.push_back(runs.row(trace, served));
    if (first) result.notes.push_back(RequestOptions::note_of(trace));
    result.simulator.simulated += served.end;
    if (written) {
      write_file(context.out_folder + "/requests.csv", requests_csv(trace, served));
      write_file(context.out_folder + "/occupancy.csv", occupancy_csv(served));
    }
    context.progress.update(static_cast<double>(k + 1) / options.seeds, result.simulator.simulated, 0);
  }
  Row row = mean_row(rows);
  if (options.find_rate) {
    const auto rate = largest_rate(context, runs, options.slo_share, std::max(0.1, row["rate_rps"].number()));
    if (!rate) result.complete = false;
    row.set("slo_share", options.slo_share).set("slo_rate_rps", rate);
  }
  note_of_deployment(runs.deployment(), row, result);
  note_of_library(runs.library(), result);
  context.finish_row(result, std::move(row));
  return result;
}

constexpr std::array kTimes{
    Field{"mean", FieldType::number, "mean"},
    Field{"ci95", FieldType::number, "half-width of the 95 % confidence interval of the mean over seeds"},
    Field{"p50", FieldType::number, "median", true},
    Field{"p90", FieldType::number, "90th percentile"},
    Field{"p95", FieldType::number, "95th percentile"},
    Field{"p99", FieldType::number, "99th percentile, the nearest rank: a value that a request had", true},
};
constexpr std::array kTiers{
    Field{"dram", FieldType::ratio, "found in DRAM", true},
    Field{"evs", FieldType::ratio, "found on SSD"},
};
constexpr std::array kEvidence{
    Field{"measured", FieldType::ratio, "points of the library"},
    Field{"interpolated", FieldType::ratio, "between its points"},
    Field{"extrapolated", FieldType::ratio, "outside of them"},
    Field{"parameter", FieldType::ratio, "of the deployment: nothing that was simulated"},
};
constexpr std::array kFields{
    Field{"requests", FieldType::integer, "served", true},
    Field{"rate_rps", FieldType::number, "at which they came, per second", true},
    Field{"end_s", FieldType::number, "from the first arrival to the last answer's end"},
    Field{"ttft_ms", FieldType::object, "from arrival to the first token, which prefill makes", true, kTimes},
    Field{"tpot_ms", FieldType::object, "from there to the end, per further token", true, kTimes},
    Field{"e2e_ms", FieldType::object, "from arrival to the end", false, kTimes},
    Field{"queue_ms", FieldType::object, "from arrival to the beginning of its batch of prompts", false,
          kTimes},
    Field{"transfer_ms", FieldType::object, "from the first token until decode has the context", false,
          kTimes},
    Field{"goodput_rps", FieldType::number, "requests per second that meet both objectives", true},
    Field{"goodput_share", FieldType::ratio, "of the requests that do", true},
    Field{"slo_share", FieldType::ratio, "of the requests that must, with --slo"},
    Field{"slo_rate_rps", FieldType::number, "largest rate at which so many do", true},
    Field{"tokens_s", FieldType::number, "output tokens per second"},
    Field{"tokens_s_npu", FieldType::number, "the same per NPU of both pools", true},
    Field{"prompt_tokens_s_npu", FieldType::number,
          "tokens of prompts, cached or not, per second and NPU of prefill"},
    Field{"decode_tokens_s_npu", FieldType::number, "output tokens per second and NPU of decode"},
    Field{"prefill_busy", FieldType::ratio, "of the time of its instances", true},
    Field{"decode_busy", FieldType::ratio, "of the time of its instances"},
    Field{"rdma_busy", FieldType::ratio, "of the links into dies of decode"},
    Field{"decode_requests", FieldType::number, "mean over steps", true},
    Field{"kv_peak", FieldType::ratio, "most of a die's room for contexts that was promised"},
    Field{"hit_rate", FieldType::object, "blocks of prompts that were found, by tier", true, kTiers},
    Field{"token_share", FieldType::ratio, "tokens of prompts that were not computed"},
    Field{"evidence", FieldType::object, "where busy time comes from", false, kEvidence},
    Field{"interpolation_error", FieldType::ratio, "worst of the library's curves, by leaving points out"},
    Field{"cost_per_million", FieldType::number, "price of all NPUs over a million output tokens"},
    Field{"joule_per_token", FieldType::number, "energy of all NPUs over output tokens"},
    Field{"restarted", FieldType::integer, "requests that an outage sent back"},
};

}  // namespace

const Study kServeStudy{"serve",
                        "a service: prefill, decode and cached contexts under recorded or drawn requests",
                        kFields, options_of<ServeOptions, run>};

}  // namespace cm384::studies
