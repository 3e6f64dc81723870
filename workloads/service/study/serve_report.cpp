#include "workloads/service/study/serve_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <optional>

#include "base/text/error.h"
#include "base/text/lines.h"
#include "base/text/quantity.h"
#include "workloads/frame/confidence.h"

namespace cm384::studies {
namespace {

double seconds(Time time) {
  return time.us() * 1e-6;
}

// By the nearest rank: values that a request had, each so many times.
Row percentiles(std::vector<service::TokenGap> values) {
  if (values.empty()) return {};
  std::ranges::sort(values, {}, &service::TokenGap::ms);
  double sum = 0, all = 0;
  for (const auto& [ms, requests] : values) {
    sum += ms * static_cast<double>(requests);
    all += static_cast<double>(requests);
  }
  const auto at = [&](double share) {
    double left = std::ceil(share * all);
    for (const auto& [ms, requests] : values) {
      left -= static_cast<double>(requests);
      if (left <= 0) return ms;
    }
    return values.back().ms;
  };
  return {{"mean", sum / all}, {"p50", at(0.5)}, {"p90", at(0.9)}, {"p95", at(0.95)}, {"p99", at(0.99)}};
}

// The same of values that one request had each.
Row percentiles(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  double sum = 0;
  for (const double value : values) sum += value;
  const auto count = static_cast<double>(values.size());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(std::ceil(share * count)) - 1];
  };
  return {{"mean", sum / count}, {"p50", at(0.5)}, {"p90", at(0.9)}, {"p95", at(0.95)}, {"p99", at(0.99)}};
}

bool meets(const service::Request& request, const service::Served& served, const Objectives& objectives) {
  return objectives.of(request).is_met(request, served);
}

void set_times(Row& row, const service::RequestTrace& trace, const service::ServiceResult& result) {
  std::vector<double> ttft, tpot, e2e, queue, transfer, longest;
  for (std::size_t k = 0; k < result.served.size(); ++k) {
    const service::Served& served = result.served[k];
    if (served.state == service::RequestState::refused) continue;
    if (trace.requests[k].output > 0) ttft.push_back(served.ttft_ms());
    e2e.push_back(served.e2e_ms());
    queue.push_back(served.queue_ms());
    if (trace.requests[k].output > 1) {
      tpot.push_back(served.tpot_ms(trace.requests[k].output));
      longest.push_back(served.longest_gap_ms());
      if (served.preemptions == 0) transfer.push_back((served.transferred - served.first_token).us() * 1e-3);
    }
  }
  row.set("ttft_ms", percentiles(std::move(ttft))).set("tpot_ms", percentiles(std::move(tpot)));
  row.set("itl_ms", percentiles(result.gaps)).set("longest_itl_ms", percentiles(std::move(longest)));
  row.set("e2e_ms", percentiles(std::move(e2e))).set("queue_ms", percentiles(std::move(queue)));
  row.set("transfer_ms", percentiles(std::move(transfer)));
}

// Of each class of priority, or tenant, that there is.
Rows class_rows(const service::RequestTrace& trace, const service::ServiceResult& result,
                const Objectives& objectives, const std::function<int(const service::Request&)>& number_of,
                bool counts = false) {
  struct Class {
    std::vector<double> ttft, e2e;
    double met = 0, all = 0;
    std::int64_t output_tokens = 0;
  };
  std::map<int, Class> classes;
  for (std::size_t k = 0; k < result.served.size(); ++k) {
    const service::Served& served = result.served[k];
    Class& of = classes[number_of(trace.requests[k])];
    ++of.all;
    if (served.state == service::RequestState::refused) continue;
    of.met += meets(trace.requests[k], served, objectives) ? 1 : 0;
    of.output_tokens += trace.requests[k].output;
    of.e2e.push_back(served.e2e_ms());
    if (trace.requests[k].output > 0) of.ttft.push_back(served.ttft_ms());
  }
  Rows rows;
  for (auto& [number, of] : classes) {
    Row row{{"name", std::to_string(number)}, {"requests", std::ssize(of.e2e)}};
    if (counts)
      row.set("refused", static_cast<std::int64_t>(of.all) - std::ssize(of.e2e))
          .set("output_tokens", of.output_tokens);
    const Row ttft = percentiles(std::move(of.ttft)), e2e = percentiles(std::move(of.e2e));
    row.set("ttft_p50_ms", ttft["p50"]).set("ttft_p99_ms", ttft["p99"]);
    row.set("e2e_p50_ms", e2e["p50"]).set("e2e_p99_ms", e2e["p99"]);
    row.set("goodput_share", of.met / of.all);
    rows.push_back(std::move(row));
  }
  return rows;
}

// Of the tenants' goodput_share: 1 where all are served alike, 1 / n where one of n alone is (Jain, Chiu,
// Hawe).
double jain_index(const Rows& tenants) {
  double sum = 0, squares = 0;
  for (const Row& row : tenants) {
    const double share = row["goodput_share"].number();
    sum += share, squares += share * share;
  }
  return squares == 0 ? 1 : sum * sum / (static_cast<double>(tenants.size()) * squares);
}

void set_evidence(Row& row, const service::ServiceResult& result) {
  double sum = 0;
  for (const double s : result.evidence_s) sum += s;
  const auto share = [&](service::Evidence evidence) {
    return sum == 0 ? 0 : result.evidence_s[static_cast<std::size_t>(evidence)] / sum;
  };
  Row evidence{{"measured", share(service::Evidence::measured)},
               {"interpolated", share(service::Evidence::interpolated)},
               {"extrapolated", share(service::Evidence::extrapolated)},
               {"parameter", share(service::Evidence::parameter)}};
  const double scaled = share(service::Evidence::scaled);
  if (scaled > 0) evidence.set("scaled", scaled);
  row.set("evidence", std::move(evidence)).set("interpolation_error", result.worst_error);
  if (scaled > 0) row.set("scaled_error", result.worst_scaled);
}

// Of all instances while they are there; those of a pool that does not scale always are.
double npu_seconds(const service::Deployment& deployment, const service::ServiceResult& result) {
  if (!deployment.scale.adds()) return deployment.npus() * seconds(result.end);
  return result.prefill_pool_s * deployment.prefill.npus + result.decode_pool_s * deployment.decode.npus;
}

// Prices and power are the deployment's; all its NPUs count, busy or not.
void set_costs(Row& row, const service::Deployment& deployment, const service::ServiceResult& result) {
  if (result.output_tokens == 0) {
    row.set("cost_per_million", Value()).set("joule_per_token", Value()).set("tokens_per_joule", Value());
    return;
  }
  const double tokens = static_cast<double>(result.output_tokens), npu_s = npu_seconds(deployment, result);
  row.set("cost_per_million", deployment.prices.npu_hour * npu_s / 3600 / tokens * 1e6);
  const double joule = deployment.prices.npu_watt * npu_s / tokens;
  row.set("joule_per_token", joule).set("tokens_per_joule", joule > 0 ? Value(1 / joule) : Value());
}

Value mean_of(std::span<const Value> values, bool interval) {
  const Value& first = values.front();
  if (std::ranges::any_of(values, &Value::empty)) return {};
  if (first.row() != nullptr) {
    Row made;
    for (const auto& [name, value] : first.row()->entries()) {
      std::vector<Value> inner;
      for (const Value& one : values) inner.push_back((*one.row())[name]);
      made.set(name, mean_of(inner, false));
      if (interval && name == "mean" && values.size() > 1) {
        std::vector<double> numbers;
        for (const Value& one : inner) numbers.push_back(one.number());
        made.set("ci95", summarise(std::move(numbers)).ci95);
      }
    }
    return made;
  }
  if (first.real() == nullptr && first.integer() == nullptr) return first;
  double sum = 0;
  for (const Value& value : values) sum += value.number();
  const double mean = sum / static_cast<double>(values.size());
  if (first.integer() != nullptr) return std::llround(mean);
  return mean;
}

// Requests per second from the first arrival to the last: how long the last answer takes afterwards says
// nothing of the rate. Nothing where all come at one moment.
std::optional<double> arrival_rate(const service::ServiceResult& result) {
  const auto [first, last] = std::ranges::minmax(result.served, {}, &service::Served::arrival);
  if (last.arrival == first.arrival) return std::nullopt;
  return static_cast<double>(result.served.size() - 1) / seconds(last.arrival - first.arrival);
}

// Of the time from arrival to the end, summed over the requests. Of one that was preempted all from its first
// token on is decode.
Row time_shares(std::span<const service::Served* const> requests) {
  Time queue{}, prefill{}, place{}, transfer{}, decode{};
  for (const service::Served* served : requests) {
    queue += served->prefill_start - served->arrival;
    prefill += served->first_token - served->prefill_start;
    if (served->preemptions > 0 || served->die < 0) {
      decode += served->done - served->first_token;
      continue;
    }
    place += served->transfer_start - served->first_token;
    transfer += served->transferred - served->transfer_start;
    decode += served->done - served->transferred;
  }
  const double all = std::max(1e-12, seconds(queue + prefill + place + transfer + decode));
  return {{"queue", seconds(queue) / all},
          {"prefill", seconds(prefill) / all},
          {"place", seconds(place) / all},
          {"transfer", seconds(transfer) / all},
          {"decode", seconds(decode) / all}};
}

// The largest share; waiting is of what it waits for.
std::string bound_of(const Row& shares, double kv_peak) {
  std::string_view largest;
  for (const auto& [name, value] : shares.entries())
    if (largest.empty() || value.number() > shares[largest].number()) largest = name;
  if (largest == "queue") return "prefill: prompts wait for an instance";
  if (largest == "prefill") return "prefill: batches of prompts";
  if (largest == "transfer") return "links: contexts on their way";
  if (largest == "decode") return "decode: steps";
  return kv_peak > 0.9 ? "memory of decode: contexts wait for room"
                       : "slots of decode: contexts wait for them";
}

}  // namespace

bool Objective::is_met(const service::Request& request, const service::Served& served) const {
  return served.state != service::RequestState::refused && served.ttft_ms() <= ttft_ms &&
         served.tpot_ms(request.output) <= tpot_ms && (e2e_ms == 0 || served.e2e_ms() <= e2e_ms) &&
         (itl_ms == 0 || served.longest_gap_ms() <= itl_ms);
}

std::pair<int, Objective> class_objective(std::string_view text) {
  const auto parts = split_fields(text, ':');
  const auto wrong = [&] {
    return InputError(fmt::format(
        "'{}'; allowed: CLASS:TTFT:TPOT, with :E2E or :E2E:ITL behind it, a class of 0 to 255 and "
        "ms from 0.001 to 1e9, or 0 for no E2E, such as 1:10000:200 or 1:10000:200:0:300",
        text));
  };
  if (parts.size() < 3 || parts.size() > 5) throw wrong();
  const std::int64_t number = hw::parse_integer(parts[0]);
  std::array<double, 4> ms{};
  for (std::size_t k = 1; k < parts.size(); ++k) {
    ms[k - 1] = hw::parse_real(parts[k]);
    const bool none = k == 3 && parts.size() == 5 && ms[k - 1] == 0;
    if (!none && !(ms[k - 1] >= 0.001 && ms[k - 1] <= 1e9)) throw wrong();
  }
  if (number < 0 || number > 255) throw wrong();
  return {static_cast<int>(number), {ms[0], ms[1], ms[2], ms[3]}};
}

void check_class_objective(std::string_view text) {
  class_objective(text);
}

double share_that_meets(const service::RequestTrace& trace, const service::ServiceResult& result,
                        const Objectives& objectives) {
  std::size_t met = 0;
  for (std::size_t k = 0; k < result.served.size(); ++k)
    met += meets(trace.requests[k], result.served[k], objectives) ? 1u : 0u;
  return static_cast<double>(met) / static_cast<double>(result.served.size());
}

Row service_row(const service::RequestTrace& trace, const service::Deployment& deployment,
                const service::ServiceResult& result, const Objectives& objectives, int tenants) {
  const double end = seconds(result.end), share = share_that_meets(trace, result, objectives);
  Row row{{"end_s", end}, {"requests", trace.requests.size() - static_cast<std::size_t>(result.refused)}};
  const std::optional<double> rate = arrival_rate(result);
  row.set("rate_rps", rate);
  set_times(row, trace, result);
  row.set("goodput_rps", rate ? Value(share * *rate) : Value()).set("goodput_share", share);
  const auto tokens = static_cast<double>(result.output_tokens);
  // Where nothing was served there is no time to divide by.
  const auto per = [](double sum, double over) { return over > 0 ? Value(sum / over) : Value(); };
  const double npu_s = npu_seconds(deployment, result);
  if (deployment.scale.adds()) row.set("npus_mean", per(npu_s, end));
  row.set("tokens_s", per(tokens, end)).set("tokens_s_npu", per(tokens, npu_s));
  row.set("prompt_tokens_s_npu",
          per(static_cast<double>(result.prompt_tokens), result.prefill_pool_s * deployment.prefill.npus));
  row.set("decode_tokens_s_npu", per(tokens, result.decode_pool_s * deployment.decode.npus));
  row.set("prefill_busy", per(result.prefill_busy_s, result.prefill_pool_s));
  row.set("decode_busy", per(result.decode_busy_s, result.decode_pool_s));
  row.set("rdma_busy", per(result.rdma_busy_s, result.decode_pool_s * deployment.decode_dies()));
  row.set("decode_requests", result.steps == 0 ? 0 : result.batch_sum / static_cast<double>(result.steps));
  row.set("kv_peak", result.kv_peak);
  const auto asked = static_cast<double>(std::max<std::int64_t>(1, result.cache.asked));
  row.set("hit_rate", Row{{"dram", static_cast<double>(result.cache.dram_hits) / asked},
                          {"evs", static_cast<double>(result.cache.ssd_hits) / asked},
                          {"obs", static_cast<double>(result.cache.store_hits) / asked}});
  row.set("token_share", 1 - static_cast<double>(result.computed_tokens) /
                                 static_cast<double>(std::max<std::int64_t>(1, result.prompt_tokens)));
  set_evidence(row, result);
  set_costs(row, deployment, result);
  row.set("restarted", result.restarted)
      .set("lost_prompt_tokens", result.lost_prompt_tokens)
      .set("lost_output_tokens", result.lost_output_tokens)
      .set("degraded_s", result.degraded_s)
      .set("role_switches", result.role_switches)
      .set("renewals", result.renewals);
  if (deployment.prefill.order == "priority")
    row.set("classes", class_rows(trace, result, objectives, [](const auto& r) { return r.priority; }));
  const bool limited = deployment.decode.order == "fair" || deployment.quota.acts();
  if (deployment.prefill.order == "fair" || limited) {
    const auto tenant_of = [&](const service::Request& r) {
      return static_cast<int>(r.session % static_cast<std::uint32_t>(tenants));
    };
    const Rows of = class_rows(trace, result, objectives, tenant_of, limited);
    row.set("fairness", jain_index(of)).set("tenants", of);
  }
  if (deployment.scale.most > 0 || deployment.scale.move)
    row.set("prefill_instances", per(result.prefill_pool_s, end));
  if (deployment.scale.decode_most > 0 || deployment.scale.move)
    row.set("decode_instances", per(result.decode_pool_s, end));
  if (deployment.scale.most > 0)
    row.set("scaled_up", result.scaled_up).set("scaled_down", result.scaled_down);
  if (deployment.scale.decode_most > 0)
    row.set("decode_scaled_up", result.decode_scaled_up).set("decode_scaled_down", result.decode_scaled_down);
  if (deployment.prefill.most_waiting > 0 || deployment.quota.acts()) row.set("refused", result.refused);
  if (deployment.decode.reserve == "growing") row.set("preempted", result.preempted);
  if (deployment.decode.preempt == "swap") row.set("swapped", result.swapped);
  return row;
}

void set_why(Row& row, const service::ServiceResult& result) {
  std::vector<const service::Served*> slowest;
  for (const service::Served& served : result.served)
    if (served.state == service::RequestState::done) slowest.push_back(&served);
  std::ranges::sort(slowest, std::greater{}, &service::Served::e2e_ms);
  const Row all = time_shares(slowest);
  row.set("time_share", all);
  row.set("tail_share", time_shares(std::span(slowest).first((slowest.size() + 99) / 100)));
  row.set("bound", bound_of(all, row["kv_peak"].number()));
}

Row mean_row(std::span<const Row> rows) {
  Row made;
  for (const auto& [name, value] : rows.front().entries()) {
    std::vector<Value> values;
    for (const Row& row : rows) values.push_back(row[name]);
    made.set(name, mean_of(values, true));
  }
  return made;
}

Row search_point(double rate, const Row& row) {
  Row point{{"rate", rate}, {"goodput_share", row["goodput_share"]}};
  for (const char* times : {"ttft_ms", "tpot_ms"}) {
    const Row* of = row[times].row();
    if (of->empty()) continue;
    point.set(times, Row{{"p50", (*of)["p50"]}, {"p90", (*of)["p90"]}, {"p99", (*of)["p99"]}});
  }
  return point;
}

std::string requests_csv(const service::RequestTrace& trace, const service::ServiceResult& result) {
  std::string text =
      "request,arrival_s,prompt,output,prefill_instance,decode_die,queue_ms,ttft_ms,transfer_ms,tpot_ms,e2e_"
      "ms,steps,"
      "cached_dram,cached_evs,cached_obs,restarts,preemptions,refused,longest_itl_ms\n";
  auto out = std::back_inserter(text);
  for (std::size_t k = 0; k < result.served.size(); ++k) {
    const service::Request& request = trace.requests[k];
    const service::Served& served = result.served[k];
    // Of one that was preempted the last transfer is not what its first token waited for.
    const bool moved = request.output > 1 && served.preemptions == 0;
    const std::string transfer =
        served.preemptions > 0
            ? ""
            : fmt::format("{:.3f}", moved ? (served.transferred - served.first_token).us() * 1e-3 : 0.0);
    const bool steps = request.output > 1;  // an answer of one token has no time per further token
    const std::string tpot = steps ? fmt::format("{:.3f}", served.tpot_ms(request.output)) : "",
                      longest = steps ? fmt::format("{:.3f}", served.longest_gap_ms()) : "";
    if (served.state == service::RequestState::refused) {
      fmt::format_to(out, "{},{:.6f},{},{},,,,,,,,,,,,,,1,\n", k, seconds(served.arrival), request.prompt,
                     request.output);
      continue;
    }
    fmt::format_to(out, "{},{:.6f},{},{},{},{},{:.3f},{:.3f},{},{},{:.3f},{},{},{},{},{},{},0,{}\n", k,
                   seconds(served.arrival), request.prompt, request.output, served.instance, served.die,
                   served.queue_ms(), served.ttft_ms(), transfer, tpot, served.e2e_ms(), served.steps,
                   served.cached_dram, served.cached_evs, served.cached_obs, served.restarts,
                   served.preemptions, longest);
  }
  return text;
}

std::string occupancy_csv(const service::ServiceResult& result, bool instances, bool shared_blocks) {
  std::string text = "at_s,waiting,prefill_busy,transferring,waiting_decode,decoding,kv_share,";
  for (const char* tier : {"dram", "evs", "obs"})
    text += fmt::format("{}_blocks{},", tier, shared_blocks ? "_of_all" : "");
  text += "out_of_order";
  text += instances ? ",prefill_instances,decode_instances\n" : "\n";
  auto out = std::back_inserter(text);
  for (const service::Occupancy& o : result.occupancy) {
    fmt::format_to(out, "{:.6f},{},{},{},{},{},{:.4f},{},{},{},{}", seconds(o.at), o.waiting, o.prefill_busy,
                   o.transferring, o.waiting_decode, o.decoding, o.kv_share, o.dram_blocks, o.evs_blocks,
                   o.obs_blocks, o.out_of_order);
    if (instances) fmt::format_to(out, ",{},{}", o.prefill_instances, o.decode_instances);
    text += '\n';
  }
  return text;
}

}  // namespace cm384::studies
