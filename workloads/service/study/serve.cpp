// `cm384 run serve`: a service under recorded or drawn requests.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/text/output_file.h"
#include "system/observe/observers.h"
#include "workloads/frame/build_info.h"
#include "workloads/frame/confidence.h"
#include "workloads/service/library_points.h"
#include "workloads/service/prefill_times.h"
#include "workloads/service/study/serve_audit.h"
#include "workloads/service/study/serve_beside.h"
#include "workloads/service/study/serve_evidence.h"
#include "workloads/service/study/serve_observed.h"
#include "workloads/service/study/serve_prefill_audit.h"
#include "workloads/service/study/serve_runs.h"
#include "workloads/service/study/serve_search.h"
#include "workloads/service/study/serve_timeline.h"
#include "workloads/studies.h"

namespace cm384::studies {
namespace {

// `at`: which of several rates; empty: there is one.
void note_of_deployment(const service::Deployment& deployment, const Row& row, const std::string& at,
                        StudyResult& result) {
  if (row["prefill_busy"].empty() || row["decode_busy"].empty()) return;  // nothing was served
  const double prefill = row["prefill_busy"].number(), decode = row["decode_busy"].number();
  const double requests = row["decode_requests"].number();
  const double slots = deployment.decode.instances * deployment.decode.npus * deployment.decode.batch;
  // One pool computes both, and a step may have of each.
  if (deployment.mixed()) {
    result.notes.push_back(
        fmt::format("{} {}{}: of the time of its instances prompts are computed for {:.0f} % and answers for "
                    "{:.0f} %, with {:.0f} of {:.0f} slots",
                    deployment.name, *row["pools"].text(), at, prefill * 100, decode * 100, requests, slots));
    return;
  }
  result.notes.push_back(fmt::format(
      "{} {}{}: prefill is busy {:.0f} % of the time, decode {:.0f} % with {:.0f} of {:.0f} slots: {}",
      deployment.name, *row["pools"].text(), at, prefill * 100, decode * 100, requests, slots,
      prefill > requests / slots ? "prefill would fill up first" : "decode would fill up first"));
}

void note_of_parameters(const service::Deployment& deployment, const service::Library& library,
                        StudyResult& result) {
  const auto source = [&](const char* key) {
    const auto found = deployment.sources.find(key);
    return found == deployment.sources.end() ? std::string() : found->second.from + ": " + found->second.text;
  };
  if (!service::PrefillTimes(deployment, library).measured())
    result.notes.push_back("prefill is not simulated here but a parameter (" + source("prefill.batch_time") +
                           ")");
  result.notes.push_back(fmt::format(
      "cost: all NPUs x {} an hour ({}); energy: {} W an NPU ({}); over output tokens, idle NPUs included",
      deployment.prices.npu_hour, source("prices.npu_hour"), deployment.prices.npu_watt,
      source("prices.npu_watt")));
}

// Of points that another commit's model gave; one that changes no golden result keeps the model.
void note_of_library(const service::Library& library, StudyResult& result) {
  if (!library.checked())
    result.notes.emplace_back("the library has no checksum: whether it is as it was measured is not known");
  std::size_t points = 0, others = 0, scaled = 0;
  double error = 0;
  const auto count = [&](const auto& list) {
    points += list.size();
    for (const auto& point : list) {
      scaled += point.from.empty() ? 0 : 1;
      error = std::max(error, point.error);
    }
    others += static_cast<std::size_t>(
        std::ranges::count_if(list, [](const auto& point) { return !is_same_model(point.model); }));
  };
  count(library.decode());
  count(library.attention());
  count(library.prefill());
  if (scaled > 0)
    result.notes.push_back(fmt::format(
        "{} of {} points of the library are scaled from another machine, by runs on this one; {}", scaled,
        points,
        error > 0 ? fmt::format("those that were run to check it were off by {:.1f} % at worst", error * 100)
                  : "none was run to check it"));
  if (const auto [first, last] = service::dates_of(service::points_of(library)); !first.empty())
    result.notes.push_back(first == last
                               ? fmt::format("the library was measured on {}", first)
                               : fmt::format("the library was measured from {} to {}", first, last));
  if (others > 0)
    result.notes.push_back(
        fmt::format("{} of {} points of the library were measured before golden results changed; their "
                    "commands stand in it",
                    others, points));
}

// Tiers of the memory service that hold nothing, as a block is larger than a server's part.
void note_of_cache(const service::Deployment& deployment, const service::RequestTrace& trace,
                   StudyResult& result) {
  const service::ContextCache& cache = deployment.cache;
  if (!cache.on || trace.keys.empty()) return;
  const int parts = cache.scope == "instance" ? deployment.prefill_instances() : 1;
  const Bytes block{std::int64_t{std::max(1, trace.block_tokens)} * deployment.decode.token.count};
  for (const auto& [key, room] : {std::pair{"cache.dram", cache.dram}, {"cache.evs", cache.evs}}) {
    std::string note =
        service::note_of_room(key, {room.count / parts}, block, std::max(1, cache.servers / parts));
    if (!note.empty()) result.notes.push_back(std::move(note));
  }
}

bool one_class(const service::RequestTrace& trace) {
  return std::ranges::all_of(trace.requests, [&](const service::Request& request) {
    return request.priority == trace.requests.front().priority;
  });
}

// A file of one row; those of further ones have its number.
void write_table(const StudyContext& context, const char* name, std::size_t row, const std::string& text,
                 StudyResult& result) {
  const std::string file = row == 0 ? fmt::format("{}.csv", name) : fmt::format("{}-{}.csv", name, row + 1);
  write_file(context.out_folder + "/" + file, text);
  result.files.push_back(file);
}

// Rows, and what is written beside them.
class Table {
 public:
  Table(const StudyContext& context, const ServeOptions& options)
      : context_(context), options_(options), runs_(context, options) {
    if (context.observers != nullptr)
      timeline_.emplace(context.observers->request().timeline, context.observers->request().shown,
                        options.timeline_requests);
    for (const service::Deployment& deployment : runs_.deployments()) {
      if (options.audit > 0) audits_.emplace_back(context, runs_.library(), deployment);
      if (options.audit_prefill > 0) prefill_audits_.emplace_back(context, runs_.library(), deployment);
    }
  }

  StudyResult make() {
    if (!options_.requests.requests.empty()) result_.input_files.push_back(options_.requests.requests);
    if (!options_.observed.empty()) result_.input_files.push_back(options_.observed);
    if (!options_.warm.empty()) result_.input_files.push_back(options_.warm);
    if (!options_.lengths.empty()) result_.input_files.push_back(options_.lengths);
    runs_.save();
    for (const std::string& path : options_.beside) result_.input_files.push_back(path);
    if (!options_.search.empty()) search();
    if (shares()) beside();
    for (std::size_t k = 0; options_.search.empty() && !shares() && k < runs_.deployments().size(); ++k) {
      if (!add(k)) {
        result_.complete = false;
        break;
      }
    }
    note_of_parameters(runs_.deployments().front(), runs_.library(), result_);
    note_of_library(runs_.library(), result_);
    if (!runs_.fitted().empty()) result_.notes.push_back(runs_.fitted());
    return std::move(result_);
  }

 private:
  void search() {
    const double rate = runs_.rates().front();
    const service::RequestTrace trace = runs_.trace(context_.seed, rate);
    result_.notes.push_back(RequestOptions::note_of(trace));
    note_of_cache(runs_.deployments().front(), trace, result_);
    auto rows = ServeSearch(runs_, options_, context_.seed, rate).run([this](double share) {
      context_.progress.update(share, Time{}, 0);
    });
    result_.complete = rows.has_value();
    if (!rows) return;
    for (Row& row : *rows) {
      if (const Value& end = row["end_s"]; !end.empty())
        result_.simulator.simulated += Time{std::llround(end.number() * 1e12)};
      context_.finish_row(result_, std::move(row));
    }
  }
  void beside() {
    const auto all = ServeBeside(context_, runs_, options_).run();
    result_.complete = all.has_value();
    if (!all) return;
    for (const ServeBeside::Served& one : *all) {
      const std::size_t number = result_.rows.size();
      result_.notes.push_back(one.name + ": " + RequestOptions::note_of(one.trace));
      note_of_deployment(one.deployment, one.row, "", result_);
      if (!options_.shared_cache || number == 0) note_of_cache(one.deployment, one.trace, result_);
      result_.simulator.simulated += one.result.end;
      if (!context_.out_folder.empty()) {
        write_table(context_, "requests", number, requests_csv(one.trace, one.result), result_);
        write_table(context_, "occupancy", number,
                    occupancy_csv(one.result, one.deployment.scale.acts(), options_.shared_cache), result_);
      }
      context_.finish_row(result_, one.row);
    }
  }
  // False: interrupted.
  bool add(std::size_t number) {
    const service::Deployment& deployment = runs_.deployments()[number];
    std::optional<ServeRuns::LargestRate> largest;
    // How many rates it will try is not known.
    const auto report = [this](double, Time now) { report_progress(0, now); };
    std::vector<double> largest_rates;
    bool beyond = false;
    for (int k = options_.find_rate ? options_.slo_seeds : 0; k-- > 0;) {
      largest = runs_.largest_rate(deployment, context_.seed + static_cast<std::uint64_t>(k), report);
      if (!largest) return false;
      largest_rates.push_back(largest->rate);
      beyond |= largest->beyond;
    }
    if (beyond)
      result_.notes.push_back(fmt::format(
          "--slo: no limit was found: at {:g} requests per second {:g} % of them or more meet the objectives",
          std::ranges::min(largest_rates), options_.slo_share * 100));
    for (std::size_t k = 0; k < runs_.rates().size(); ++k) {
      std::optional<Row> row = mean_of_seeds(deployment, runs_.rates()[k]);
      if (!row) return false;
      if (largest) {
        row->set("slo_share", options_.slo_share);
        row->set("slo_rate_rps", beyond ? Value() : Value(summarise(largest_rates).mean));
        if (options_.slo_seeds > 1 && !beyond) row->set("slo_rate_ci95_rps", summarise(largest_rates).ci95);
        if (k == 0) row->set("search", largest->tried);
      }
      if (!audit(number, *row)) return false;
      note_of_deployment(deployment, *row,
                         runs_.rates().size() > 1 ? fmt::format(" at {:g} per second", runs_.rates()[k]) : "",
                         result_);
      context_.finish_row(result_, std::move(*row));
    }
    return true;
  }

  // Of the deployment of this number. False: interrupted.
  bool audit(std::size_t number, Row& row) {
    if (!audits_.empty() && !audits_[number].add_to(row, context_, drawn_.steps_drawn, result_)) return false;
    if (!prefill_audits_.empty() &&
        !prefill_audits_[number].add_to(row, context_, drawn_.batches_drawn, result_))
      return false;
    if (options_.evidence) set_audited(row);
    return true;
  }

  std::optional<Row> mean_of_seeds(const service::Deployment& deployment, double rate) {
    std::vector<Row> rows;
    for (int k = 0; k < options_.seeds; ++k) {
      if (context_.interrupted != 0) return {};
      std::optional<Row> row = one(deployment, rate, k);
      if (!row) return {};
      rows.push_back(std::move(*row));
      report_progress(k + 1, Time{});
    }
    Row row{{"pools", ServeRuns::pools_of(deployment)}, {"rate", rate}};
    row.append(mean_row(rows));
    row.set("npus", deployment.npus());
    return row;
  }

  // `runs` of the row that is being made are done; the next one is at this time.
  void report_progress(double runs, Time now) const {
    const auto all = static_cast<double>(runs_.deployments().size() * runs_.rates().size()) * options_.seeds;
    const auto before = static_cast<double>(result_.rows.size()) * options_.seeds;
    context_.progress.update((before + runs) / all, result_.simulator.simulated + now, 0);
  }

  // Empty: interrupted.
  std::optional<Row> one(const service::Deployment& deployment, double rate, int k) {
    const std::uint64_t seed = context_.seed + static_cast<std::uint64_t>(k);
    const service::RequestTrace trace = runs_.trace(seed, rate);
    const std::size_t number = result_.rows.size();
    const bool written = k == 0 && !context_.out_folder.empty(), drawn = k == 0 && number == 0 && timeline_;
    service::ServiceWatch watch;
    if (drawn) watch = [this](const service::Activity& activity) { timeline_->add(activity); };
    const service::ServiceResult served =
        runs_.run(deployment, trace, seed, written, std::move(watch),
                  [this, k](double share, Time now) { report_progress(k + share, now); });
    if (!served.complete) return {};
    if (k == 0 && number < runs_.rates().size()) result_.notes.push_back(RequestOptions::note_of(trace));
    if (k == 0 && number == 0) note_of_cache(deployment, trace, result_);
    if (k == 0 && deployment.prefill.order == "priority" && one_class(trace))
      result_.notes.emplace_back(
          options_.classes > 1
              ? "all requests are of one class: prefill.order = priority has no effect; --classes deals out "
                "sessions, and all requests are of one"
              : "all requests are of one class: prefill.order = priority has no effect; --classes, or a "
                "`priority` in the file, makes several");
    if (k == 0 && served.cut_batches > 0)
      result_.notes.push_back(
          fmt::format("{} of {} batches of prompts are smaller than the deployment allows: the library has "
                      "no measurement of larger ones",
                      served.cut_batches, served.batches));
    if (k == 0) drawn_ = {served.steps_drawn, served.batches_drawn};
    result_.simulator.simulated += served.end;
    if (written) {
      write_table(context_, "requests", number, requests_csv(trace, served), result_);
      write_table(context_, "occupancy", number, occupancy_csv(served, deployment.scale.acts()), result_);
    }
    if (drawn)
      result_.notes.push_back(fmt::format("the timeline shows {} of {} requests{}",
                                          timeline_->finish(trace, served, deployment), trace.requests.size(),
                                          several() ? ", of the first row" : ""));
    Row row = runs_.row(deployment, trace, served);
    if (runs_.observed() != nullptr) {
      const auto beside = ServeObserved::calibrate(*runs_.observed(), runs_, deployment, served, seed);
      if (!beside) return {};
      beside->add_to(row);
      const std::vector<std::string> notes = beside->notes();
      result_.notes.insert(result_.notes.end(), notes.begin(), notes.end());
      if (written) write_table(context_, "observed", number, beside->csv(), result_);
    }
    return row;
  }
  bool shares() const { return !options_.beside.empty() || !options_.training.empty(); }
  bool several() const { return runs_.deployments().size() * runs_.rates().size() > 1; }

  const StudyContext& context_;
  const ServeOptions& options_;
  ServeRuns runs_;
  std::optional<ServeTimeline> timeline_;
  std::vector<ServeAudit> audits_;  // by deployment
  std::vector<PrefillAudit> prefill_audits_;
  struct {
    std::vector<service::StepSample> steps_drawn;
    std::vector<service::BatchSample> batches_drawn;
  } drawn_;
  StudyResult result_;
};

StudyResult run(const StudyContext& context, const ServeOptions& options) {
  return Table(context, options).make();
}

constexpr std::array kServeTimes{
    Field{"mean", FieldType::number, "mean"},
    Field{"ci95", FieldType::number, "half-width of the 95 % confidence interval of the mean over seeds"},
    Field{"p50", FieldType::number, "median", true},
    Field{"p90", FieldType::number, "90th percentile"},
    Field{"p95", FieldType::number, "95th percentile"},
    Field{"p99", FieldType::number, "99th percentile, the nearest rank: a value that a request had", true},
};
constexpr std::array kSearchTimes{
    Field{"p50", FieldType::number, "median"},
    Field{"p90", FieldType::number, "90th percentile"},
    Field{"p99", FieldType::number, "99th percentile"},
};
constexpr std::array kClasses{
    Field{"name", FieldType::text, "its number; of classes 0 is the most urgent"},
    Field{"requests", FieldType::integer, "served"},
    Field{"refused", FieldType::integer, "with decode.order = fair or quotas"},
    Field{"output_tokens", FieldType::integer, "given, likewise"},
    Field{"ttft_p50_ms", FieldType::number, "from arrival to the first token, median"},
    Field{"ttft_p99_ms", FieldType::number, "99th percentile"},
    Field{"e2e_p50_ms", FieldType::number, "from arrival to the end, median"},
    Field{"e2e_p99_ms", FieldType::number, "99th percentile"},
    Field{"goodput_share", FieldType::ratio, "of the requests that meet their objectives"},
};
constexpr std::array kSearch{
    Field{"rate", FieldType::number, "that was tried, per second"},
    Field{"goodput_share", FieldType::ratio, "of the requests that meet their objectives"},
    Field{"ttft_ms", FieldType::object, "from arrival to the first token", false, kSearchTimes},
    Field{"tpot_ms", FieldType::object, "per further token", false, kSearchTimes},
};
constexpr std::array kTiers{
    Field{"dram", FieldType::ratio, "found in DRAM", true},
    Field{"evs", FieldType::ratio, "found on SSD"},
    Field{"obs", FieldType::ratio, "found in the object store"},
};
constexpr std::array kEvidence{
    Field{"measured", FieldType::ratio, "points of the library"},
    Field{"interpolated", FieldType::ratio, "between its points"},
    Field{"extrapolated", FieldType::ratio, "outside of them"},
    Field{"parameter", FieldType::ratio, "of the deployment: nothing that was simulated"},
    Field{"scaled", FieldType::ratio,
          "by points that `library scale` made of another machine's, or between such points; empty: none"},
};
constexpr std::array kEvidenceAt{
    Field{"metric", FieldType::text, "ttft, tpot or e2e"},
    Field{"percentile", FieldType::text, "p50, p90 or p99"},
    Field{"ms", FieldType::number, "it"},
    Field{"measured", FieldType::ratio, "of this time: points of the library"},
    Field{"interpolated", FieldType::ratio, "between its points"},
    Field{"extrapolated", FieldType::ratio, "outside of them"},
    Field{"parameter", FieldType::ratio, "of the deployment, links, reads of the cache"},
    Field{"scaled", FieldType::ratio, "by scaled points or between them; empty: none"},
    Field{"error", FieldType::ratio,
          "that it may be off by: errors of the library's curves, by leaving points out, and of scaled "
          "points, weighted by time"},
    Field{"before", FieldType::ratio, "of this time: until the first token"},
    Field{"audited", FieldType::ratio,
          "what audited batches and steps were off by on the average, as a share of this time; with "
          "--audit-prefill for what is before the first token, with --audit for what is behind it"},
};
constexpr std::array kObserved{
    Field{"metric", FieldType::text, "ttft, tpot or e2e"},
    Field{"part", FieldType::text, "of the requests, in the order of arrival"},
    Field{"host", FieldType::text, "as the deployment has it, or calibrated on the first half"},
    Field{"requests", FieldType::integer, "that have such a time"},
    Field{"observed_ms", FieldType::number, "mean of the server's"},
    Field{"modelled_ms", FieldType::number, "mean of the service's"},
    Field{"error_mean", FieldType::ratio, "of the mean"},
    Field{"error_p50", FieldType::ratio, "of a request, without its sign: median"},
    Field{"error_p90", FieldType::ratio, "90th percentile"},
};
constexpr std::array kTimeShares{
    Field{"queue", FieldType::ratio, "until a batch of prompts has the request"},
    Field{"prefill", FieldType::ratio, "from there to the first token"},
    Field{"place", FieldType::ratio, "for a die of decode with a slot and room, and for its links"},
    Field{"transfer", FieldType::ratio, "on the links"},
    Field{"decode", FieldType::ratio, "from there to the end"},
};
constexpr std::array kServeFields{
    Field{"pools", FieldType::text, "instances of prefill and of decode", true}.as_condition(),
    Field{"rate", FieldType::number, "asked for, per second; 0: as recorded, or as users ask"}.as_condition(),
    Field{"deploy", FieldType::text, "what --search changes of the deployment", true}.as_condition(),
    Field{"service", FieldType::text, "of several, with --beside", true}.as_condition(),
    Field{"npus", FieldType::integer, "of both pools; of those that come and go at the beginning"},
    Field{"npus_mean", FieldType::number, "mean over time, with --beside or where instances come and go",
          true},
    Field{"denied", FieldType::integer,
          "looks at which it wanted an instance, and other services or a training had the NPUs or came "
          "first"},
    Field{"training_npus", FieldType::number, "that --training had, mean until the last service's end"},
    Field{"training_tokens_s", FieldType::number, "that it trained per second, changes included", true},
    Field{"training_changes", FieldType::integer, "of its size"},
    Field{"training_fixed_tokens_s", FieldType::number,
          "that it would train without a change on the NPUs that no service ever had", true},
    Field{"training_gain", FieldType::ratio, "of training_tokens_s over that", true},
    Field{"requests", FieldType::integer, "served", true},
    Field{"rate_rps", FieldType::number,
          "at which they came, per second from the first arrival to the last; null where all came at one "
          "moment",
          true},
    Field{"end_s", FieldType::number, "from the first arrival to the last answer's end"},
    Field{"ttft_ms", FieldType::object, "from arrival to the first token, which prefill makes", true,
          kServeTimes},
    Field{"tpot_ms", FieldType::object, "from there to the end, per further token", true, kServeTimes},
    Field{
        "itl_ms", FieldType::object,
        "between two deliveries of tokens, the first of which prefill makes: over all steps of all requests",
        false, kServeTimes},
    Field{"longest_itl_ms", FieldType::object,
          "the longest of these waits of each request: what --slo-itl is of", false, kServeTimes},
    Field{"e2e_ms", FieldType::object, "from arrival to the end", false, kServeTimes},
    Field{"queue_ms", FieldType::object, "from arrival to the beginning of its batch of prompts", false,
          kServeTimes},
    Field{"transfer_ms", FieldType::object, "from the first token until decode has the context", false,
          kServeTimes},
    Field{"goodput_rps", FieldType::number,
          "of that, requests that meet their objectives: not of the time until the last answer ends", true},
    Field{"goodput_share", FieldType::ratio, "of the requests that do", true},
    Field{"slo_share", FieldType::ratio, "of the requests that must, with --slo"},
    Field{"slo_rate_rps", FieldType::number, "largest rate at which so many do; null: no limit was found",
          true},
    Field{"slo_rate_ci95_rps", FieldType::number, "half-width of its 95 % interval over --slo-seeds"},
    Field{"search", FieldType::list, "rates that were tried for it", false, kSearch},
    Field{"tokens_s", FieldType::number, "output tokens per second, up to the last answer's end"},
    Field{"tokens_s_npu", FieldType::number, "the same per NPU of both pools", true},
    Field{"prompt_tokens_s_npu", FieldType::number,
          "tokens of prompts, cached or not, per second and NPU of prefill"},
    Field{"decode_tokens_s_npu", FieldType::number, "output tokens per second and NPU of decode"},
    Field{"tokens_s_tflops", FieldType::number, "tokens_s_npu over an NPU's INT8 peak"},
    Field{"prefill_busy", FieldType::ratio, "of the time of its instances", true},
    Field{"decode_busy", FieldType::ratio, "of the time of its instances"},
    Field{"rdma_busy", FieldType::ratio, "of the links into dies of decode"},
    Field{"decode_requests", FieldType::number, "mean over steps", true},
    Field{"kv_peak", FieldType::ratio, "most of a die's room for contexts that was promised"},
    Field{"hit_rate", FieldType::object, "blocks of prompts that were found, by tier", true, kTiers},
    Field{"token_share", FieldType::ratio, "tokens of prompts that were not computed"},
    Field{"evidence", FieldType::object, "where busy time comes from", false, kEvidence},
    Field{"interpolation_error", FieldType::ratio, "worst of the library's curves, by leaving points out"},
    Field{"scaled_error", FieldType::ratio,
          "worst of the scaled points, as `library scale` has checked them; 0: it has not; empty: none"},
    Field{"evidence_at", FieldType::list,
          "where latencies come from, over the hundredth of the requests next to a percentile, with "
          "--evidence; of the first seed",
          false, kEvidenceAt},
    Field{"cost_per_million", FieldType::number, "price of all NPUs over a million output tokens"},
    Field{"joule_per_token", FieldType::number, "energy of all NPUs over output tokens"},
    Field{"tokens_per_joule", FieldType::number, "its inverse"},
    Field{"restarted", FieldType::integer, "requests that a fault sent back, each time"},
    Field{"lost_prompt_tokens", FieldType::integer,
          "of prompts, computed or begun, whose request was sent back"},
    Field{"lost_output_tokens", FieldType::integer, "given to these before, and made again"},
    Field{"degraded_s", FieldType::number, "with an instance away or paused, or a die or plane lost"},
    Field{"role_switches", FieldType::integer, "of instances between the pools"},
    Field{"renewals", FieldType::integer, "of the placement of experts, over instances of decode"},
    Field{"refused", FieldType::integer,
          "requests that found prefill.most_waiting others, or beyond a quota: in no time, and in goodput as "
          "missed"},
    Field{"classes", FieldType::list, "of priority, with prefill.order = priority; of the first seed", false,
          kClasses},
    Field{"tenants", FieldType::list, "with a fair order or quotas; of the first seed", false, kClasses},
    Field{"fairness", FieldType::ratio, "Jain's index of the tenants' goodput_share: 1 where all are alike"},
    Field{"preempted", FieldType::integer, "contexts that growing room ran out for, each time"},
    Field{"prefill_instances", FieldType::number,
          "mean over time, with scale.most or scale.move; those that start or drain too"},
    Field{"decode_instances", FieldType::number, "the same of decode, with scale.decode_most or scale.move"},
    Field{"scaled_up", FieldType::integer, "instances of prefill that were started"},
    Field{"scaled_down", FieldType::integer, "that were ended"},
    Field{"decode_scaled_up", FieldType::integer, "instances of decode that were started"},
    Field{"decode_scaled_down", FieldType::integer, "that were ended, once they had drained"},
    Field{"swapped", FieldType::integer, "of these, contexts that went to host memory and came back"},
    Field{"time_share", FieldType::object,
          "of the time from arrival to the end, over all requests, with --why", false, kTimeShares},
    Field{"tail_share", FieldType::object, "the same of the slowest hundredth of the requests", false,
          kTimeShares},
    Field{"bound", FieldType::text, "what the largest of these shares is", true},
    Field{"rank", FieldType::integer, "with --search, 1 is the best", true},
    Field{"share", FieldType::ratio, "of the requests that it served before it dropped out", true},
    Field{"score", FieldType::number,
          "what it was ranked by: goodput or tokens per second and NPU, 1 / cost or energy"},
    Field{"pareto", FieldType::boolean,
          "no other has more tokens per second and NPU and as little time per token, nor less time and as "
          "many"},
    Field{"excluded", FieldType::text, "why the deployment is not possible"},
    Field{"observed", FieldType::list, "times of a real server and of the service, with --observed", false,
          kObserved},
    Field{"prefill_bubble_ms", FieldType::number,
          "prefill.bubble at which the first half has the server's mean time to the first token"},
    Field{"step_bubble_ms", FieldType::number,
          "decode.bubble at which it has the server's mean time per output token"},
    Field{"audit_worst", FieldType::ratio, "largest difference of an audited step, with --audit"},
    Field{"audit_mean", FieldType::ratio, "mean of them, signs left out"},
    Field{"audit", FieldType::list, "audited steps", false, kAuditFields},
    Field{"audit_prefill_worst", FieldType::ratio,
          "largest difference of an audited batch of prompts, with --audit-prefill"},
    Field{"audit_prefill_mean", FieldType::ratio, "mean of them, signs left out"},
    Field{"audit_prefill", FieldType::list, "audited batches", false, kPrefillAuditFields},
};

}  // namespace

const Study kServeStudy{
    .name = "serve",
    .summary = "a service: prefill, decode and cached contexts under recorded or drawn requests",
    .fields = kServeFields,
    .options = options_of<ServeOptions, run>,
    .own_timeline = true,
    .dies = false};

}  // namespace cm384::studies
