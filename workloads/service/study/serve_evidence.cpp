#include "workloads/service/study/serve_evidence.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

namespace cm384::studies {
namespace {

using service::EvidenceSum;

double seconds(Time time) {
  return time.us() * 1e-6;
}

// Of so many seconds what is known of a part of them.
EvidenceSum stretched(const EvidenceSum& part, double s) {
  const double all = part.total();
  return all > 0 ? part.times(s / all) : EvidenceSum{};
}

EvidenceSum until_first_token(const service::Served& served, const service::LatencyEvidence& evidence) {
  return stretched(evidence.prefill, seconds(served.first_token - served.arrival));
}

// The links are the machine's by a closed form, a parameter here; what else is no step waits for one.
EvidenceSum behind_it(const service::Served& served, const service::LatencyEvidence& evidence) {
  const bool sent = served.preemptions == 0 && served.die >= 0;
  const double links = sent ? seconds(served.transferred - served.transfer_start) : 0;
  EvidenceSum sum = stretched(evidence.decode, seconds(served.done - served.first_token) - links);
  sum.s[static_cast<std::size_t>(service::Evidence::parameter)] += links;
  return sum;
}

Row row_of(const char* metric, const char* percentile, double ms, const EvidenceSum& sum, double before) {
  const double all = std::max(1e-300, sum.total());
  const auto share = [&](service::Evidence of) { return sum.s[static_cast<std::size_t>(of)] / all; };
  Row row{{"metric", metric},
          {"percentile", percentile},
          {"ms", ms},
          {"measured", share(service::Evidence::measured)},
          {"interpolated", share(service::Evidence::interpolated)},
          {"extrapolated", share(service::Evidence::extrapolated)},
          {"parameter", share(service::Evidence::parameter)},
          {"error", sum.error_s / all},
          {"before", before / all}};
  if (const double scaled = share(service::Evidence::scaled); scaled > 0) row.set("scaled", scaled);
  return row;
}

}  // namespace

Rows evidence_rows(const service::RequestTrace& trace, const service::ServiceResult& result) {
  using Latency = std::function<double(const service::Served&, const service::Request&)>;
  struct Metric {
    const char* name;
    int least;  // tokens of an answer
    Latency ms;
    bool before, behind;  // the first token
  };
  const std::vector<Metric> metrics{
      {"ttft", 1, [](const auto& served, const auto&) { return served.ttft_ms(); }, true, false},
      {"tpot", 2, [](const auto& served, const auto& r) { return served.tpot_ms(r.output); }, false, true},
      {"e2e", 0, [](const auto& served, const auto&) { return served.e2e_ms(); }, true, true}};
  Rows rows;
  for (const Metric& metric : metrics) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t k = 0; k < result.served.size(); ++k) {
      const service::Served& served = result.served[k];
      if (served.state != service::RequestState::refused && trace.requests[k].output >= metric.least)
        order.emplace_back(metric.ms(served, trace.requests[k]), k);
    }
    if (order.empty()) continue;
    std::ranges::sort(order);
    for (const auto& [name, share] : {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}}) {
      const auto count = order.size();
      const auto at = static_cast<std::size_t>(std::ceil(share * static_cast<double>(count))) - 1;
      const std::size_t beside = count / 200;
      EvidenceSum sum;
      double before = 0;
      for (std::size_t n = at - std::min(at, beside); n <= std::min(count - 1, at + beside); ++n) {
        const std::size_t k = order[n].second;
        if (metric.before) {
          const EvidenceSum first = until_first_token(result.served[k], result.evidence_of[k]);
          before += first.total();
          sum += first;
        }
        if (metric.behind) sum += behind_it(result.served[k], result.evidence_of[k]);
      }
      rows.push_back(row_of(metric.name, name, order[at].first, sum, before));
    }
  }
  return rows;
}

void set_audited(Row& row) {
  const Rows* const rows = row["evidence_at"].rows();
  const Value batches = row["audit_prefill_mean"], steps = row["audit_mean"];
  if (rows == nullptr || (batches.empty() && steps.empty())) return;
  Rows made = *rows;
  for (Row& at : made) {
    const double before = at["before"].number(), library = 1 - at["parameter"].number();
    if ((before > 0 && batches.empty()) || (before < 1 && steps.empty())) continue;
    at.set("audited", library * (before * batches.number() + (1 - before) * steps.number()));
  }
  row.set("evidence_at", std::move(made));
}

}  // namespace cm384::studies
