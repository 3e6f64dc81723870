#include "workloads/service/study/serve_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "base/text/error.h"
#include "base/text/lines.h"
#include "workloads/service/prefill_times.h"

namespace cm384::studies {
namespace {

constexpr std::size_t kMostDeployments = 100'000, kFewestRequests = 200;

// On the Pareto line of tokens per NPU and time per token: no other has more of one and as much of the other.
// Equal ones are on it together.
void mark_pareto(Rows& rows) {
  const auto point = [](const Row& row) {
    const Row* tpot = row["tpot_ms"].row();
    return std::pair(tpot == nullptr || tpot->empty() ? 0.0 : (*tpot)["p50"].number(),
                     -row["tokens_s_npu"].number());
  };
  std::vector<std::pair<std::pair<double, double>, Row*>> order;
  for (Row& row : rows)
    if (row["share"].number() >= 1) order.emplace_back(point(row), &row);
  std::ranges::sort(order, {}, [](const auto& entry) { return entry.first; });
  std::pair<double, double> best{-1, 1};
  for (const auto& [at, row] : order) {
    const bool better = at.second < best.second;
    row->set("pareto", better || at == best);
    if (better) best = at;
  }
}

// The time of a batch that is no measurement is of one size of instance: others do not compare by it.
void check_prefill(const service::Deployment& deployment, const service::Library& library) {
  if (deployment.is_changed("prefill.npus") && !deployment.is_changed("prefill.batch_time") &&
      !service::PrefillTimes(deployment, library).measured())
    throw InputError(
        fmt::format("prefill.npus={}: the library has no prompts on {} dies, and prefill.batch_time is of "
                    "another instance; "
                    "allowed: with prefill.batch_time, or what the library has measured",
                    deployment.prefill.npus, deployment.prefill_dies()));
}

}  // namespace

std::vector<std::vector<std::string>> combinations_of(const std::vector<std::string>& search) {
  std::vector<std::vector<std::string>> made{{}};
  std::set<std::string> keys;
  for (const std::string& axis : search) {
    const std::size_t equals = axis.find('=');
    if (equals == std::string::npos || equals + 1 == axis.size())
      throw InputError(
          fmt::format("run serve: --search {}: allowed: KEY=VALUE,VALUE.. such as decode.batch=64,96", axis));
    const std::string key = axis.substr(0, equals);
    if (!keys.insert(key).second)
      throw InputError(fmt::format("run serve: --search {}: is listed twice", key));
    std::vector<std::vector<std::string>> longer;
    for (const std::vector<std::string>& before : made) {
      for (const std::string_view value : split_fields(std::string_view(axis).substr(equals + 1))) {
        longer.push_back(before);
        longer.back().push_back(fmt::format("{}={}", key, value));
        if (longer.size() > kMostDeployments)
          throw InputError(fmt::format("run serve: --search: more than {} deployments", kMostDeployments));
      }
    }
    made = std::move(longer);
  }
  return made;
}

double first_share(std::size_t deployments, std::size_t requests) {
  double share = 1;
  for (; deployments > kLast; deployments = kept_of(deployments)) share /= 3;
  return std::min(1.0, std::max(share, static_cast<double>(kFewestRequests) /
                                           static_cast<double>(std::max<std::size_t>(1, requests))));
}

// The first of them; of sessions and users, who ask in turn, the first of each, so that as many ask at a
// time.
service::RequestTrace first_of(const service::RequestTrace& trace, double share) {
  service::RequestTrace part = trace;
  if (share >= 1) return part;
  const auto most = [share](std::size_t all) {
    return static_cast<std::size_t>(std::ceil(share * static_cast<double>(all)));
  };
  if (std::ranges::none_of(trace.requests, [](const auto& request) { return request.follows >= 0; })) {
    part.requests.resize(most(trace.requests.size()));
    return part;
  }
  // By request: the first of its session, and how many stand before it there; by first: how many there are.
  std::vector<std::size_t> first(trace.requests.size()), place(trace.requests.size()),
      count(trace.requests.size());
  for (std::size_t k = 0; k < trace.requests.size(); ++k) {
    const std::int32_t before = trace.requests[k].follows;
    first[k] = before < 0 ? k : first[static_cast<std::size_t>(before)];
    place[k] = count[first[k]]++;
  }
  part.requests.clear();
  std::vector<std::int32_t> number(trace.requests.size(), -1);
  for (std::size_t k = 0; k < trace.requests.size(); ++k) {
    if (place[k] >= most(count[first[k]])) continue;
    number[k] = static_cast<std::int32_t>(part.requests.size());
    part.requests.push_back(trace.requests[k]);
    std::int32_t& before = part.requests.back().follows;
    if (before >= 0) before = number[static_cast<std::size_t>(before)];
  }
  return part;
}

std::vector<ServeSearch::Candidate> ServeSearch::candidates() const {
  std::vector<Candidate> made;
  for (const std::vector<std::string>& changes : combinations_of(options_.search)) {
    Candidate& candidate = made.emplace_back();
    candidate.text = fmt::format("{}", fmt::join(changes, " "));
    try {
      candidate.deployment = runs_.deployment_with(changes);
      check_prefill(*candidate.deployment, runs_.library());
    } catch (const InputError& error) {
      candidate.excluded = error.what();
    }
  }
  return made;
}

// The more the better; per NPU that was there, which with a pool that grows is not the deployment's number.
double ServeSearch::score_of(const Row& row) const {
  if (options_.search_by == "tokens") return row["tokens_s_npu"].empty() ? 0 : row["tokens_s_npu"].number();
  if (options_.search_by == "goodput") {
    const Value& goodput = row["goodput_rps"];
    const Value& npus = row[row["npus_mean"].empty() ? "npus" : "npus_mean"];
    return goodput.empty() ? 0 : goodput.number() / npus.number();
  }
  const Value& price = row[options_.search_by == "cost" ? "cost_per_million" : "joule_per_token"];
  return price.empty() ? 0 : 1 / price.number();
}

// False: interrupted.
bool ServeSearch::serve(Candidate& candidate, const service::RequestTrace& trace, double share) const {
  const service::Deployment& deployment = *candidate.deployment;
  try {
    const service::ServiceResult result = runs_.run(deployment, trace, seed_, false);
    if (!result.complete) return false;
    candidate.row =
        Row{{"pools", ServeRuns::pools_of(deployment)}, {"rate", rate_}, {"deploy", candidate.text}};
    candidate.row.append(runs_.row(deployment, trace, result));
    candidate.row.set("npus", deployment.npus());
  } catch (const InputError& error) {
    candidate.excluded = error.what();
    return true;
  }
  candidate.share = share;
  candidate.score = score_of(candidate.row);
  candidate.meets =
      options_.search_by == "goodput" || candidate.row["goodput_share"].number() >= options_.slo_share;
  return true;
}

std::optional<Rows> ServeSearch::run(const std::function<void(double)>& progress) {
  const service::RequestTrace trace = runs_.trace(seed_, rate_);
  std::vector<Candidate> all = candidates();
  std::vector<Candidate*> left;
  for (Candidate& candidate : all)
    if (candidate.excluded.empty()) left.push_back(&candidate);
  double share = first_share(left.size(), trace.requests.size());
  for (bool last = false; !last && !left.empty();) {
    last = share >= 1;
    const service::RequestTrace part = first_of(trace, share);
    for (std::size_t k = 0; k < left.size(); ++k) {
      if (!serve(*left[k], part, share)) return {};
      progress(share * static_cast<double>(k + 1) / static_cast<double>(left.size()));
    }
    std::erase_if(left, [](const Candidate* one) { return !one->excluded.empty(); });
    if (options_.search_by == "goodput" && !left.empty() &&
        std::ranges::all_of(left, [](const Candidate* one) { return one->row["goodput_rps"].empty(); }))
      throw InputError(
          "run serve: --search-by goodput: the requests all come at one moment, so there is no rate; "
          "allowed: "
          "tokens, cost, energy");
    // Of equals the one that was named first.
    std::ranges::stable_sort(left, std::greater{}, [](const Candidate* one) {
      return std::pair(one->meets, one->meets ? one->score : one->row["goodput_share"].number());
    });
    if (!last) left.resize(std::min(left.size(), kept_of(left.size())));
    share = std::min(1.0, 3 * share);
  }
  if (std::ranges::none_of(all, [](const Candidate& one) { return one.excluded.empty(); }))
    throw InputError(
        fmt::format("run serve: --search: no deployment is possible; {}: {}", all[0].text, all[0].excluded));
  // Who served more is ahead of who served less.
  std::vector<Candidate*> order;
  for (Candidate& candidate : all) order.push_back(&candidate);
  std::ranges::stable_sort(order, std::greater{}, [](const Candidate* one) {
    const bool served = one->excluded.empty();
    return std::tuple(served, one->share, one->meets,
                      !served      ? 0.0
                      : one->meets ? one->score
                                   : one->row["goodput_share"].number());
  });
  Rows rows, excluded;
  for (const Candidate* one : order) {
    if (!one->excluded.empty()) {
      excluded.push_back(
          {{"pools", ""}, {"rate", rate_}, {"deploy", one->text}, {"excluded", one->excluded}});
      continue;
    }
    Row row = one->row;
    row.set("rank", std::ssize(rows) + 1).set("share", one->share).set("score", one->score);
    rows.push_back(std::move(row));
  }
  mark_pareto(rows);
  rows.insert(rows.end(), excluded.begin(), excluded.end());
  return rows;
}

}  // namespace cm384::studies
