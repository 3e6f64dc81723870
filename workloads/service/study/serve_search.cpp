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

namespace cm384::studies {
namespace {

constexpr std::size_t kMostDeployments = 100'000, kFewestRequests = 200;

// On the Pareto line of tokens per NPU and time per token: no other has more of one and as much of the other.
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
  double best = 1;
  for (const auto& [at, row] : order) {
    row->set("pareto", at.second < best);
    best = std::min(best, at.second);
  }
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
    if (!keys.insert(key).second) throw InputError(fmt::format("run serve: --search {}: stands twice", key));
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

std::vector<ServeSearch::Candidate> ServeSearch::candidates() const {
  std::vector<Candidate> made;
  for (const std::vector<std::string>& changes : combinations_of(options_.search)) {
    Candidate& candidate = made.emplace_back();
    candidate.text = fmt::format("{}", fmt::join(changes, " "));
    try {
      candidate.deployment = runs_.deployment_with(changes);
    } catch (const InputError& error) {
      candidate.excluded = error.what();
    }
  }
  return made;
}

// The more the better.
double ServeSearch::score_of(const Row& row) const {
  if (options_.search_by == "tokens") return row["tokens_s_npu"].number();
  if (options_.search_by == "goodput") {
    const Value& goodput = row["goodput_rps"];
    return goodput.empty() ? 0 : goodput.number() / row["npus"].number();
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
    service::RequestTrace part = trace;
    part.requests.resize(
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(trace.requests.size()))));
    for (std::size_t k = 0; k < left.size(); ++k) {
      if (!serve(*left[k], part, share)) return {};
      progress(share * static_cast<double>(k + 1) / static_cast<double>(left.size()));
    }
    std::erase_if(left, [](const Candidate* one) { return !one->excluded.empty(); });
    // Of equals the one that was named first.
    std::ranges::stable_sort(left, std::greater{}, [](const Candidate* one) {
      return std::pair(one->meets, one->meets ? one->score : one->row["goodput_share"].number());
    });
    if (!last) left.resize(std::min(left.size(), kept_of(left.size())));
    share = std::min(1.0, 3 * share);
  }
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
