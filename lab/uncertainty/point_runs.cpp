#include "lab/uncertainty/point_runs.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

#include "base/text/error.h"
#include "base/text/json.h"
#include "workloads/frame/fields.h"
#include "workloads/frame/result_json.h"

namespace cm384::uncertainty {

std::vector<PointRun> PointRuns::run(const std::vector<Request>& requests) {
  std::vector<PointRun> runs(requests.size());
  std::map<std::string, std::vector<std::size_t>> places;  // of each run that is needed, by its key
  std::vector<const std::vector<std::size_t>*> of_ticket;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    runs[i].missing = true;
    const auto& [study, settings] = requests[i];
    try {
      subject_.choose(study);
      const std::string key = subject_.identity(settings);
      auto [at, fresh] = places.try_emplace(key);
      at->second.push_back(i);
      if (!fresh) continue;
      executor_.add(of_ticket.size(), {key, study, subject_.arguments(settings), settings});
      of_ticket.push_back(&at->second);
      ++known_;
    } catch (const InputError& error) {
      runs[i] = {{}, error.what(), false, ""};
    }
  }
  const auto tell = [&] {
    if (progress_) progress_(done_, known_);
  };
  while (const auto finished = executor_.next(tell)) {
    ++done_;
    tell();
    if (!finished->outcome) continue;
    PointRun run{{}, finished->outcome->reason, false, finished->outcome->document};
    if (!finished->outcome->failed()) {
      const Json document = Json::parse(finished->outcome->document);
      for (const Json& row : document.at("rows")) run.rows.push_back(studies::row_of(row));
    }
    for (const std::size_t i : *of_ticket[finished->ticket]) runs[i] = run;
  }
  for (const PointRun& run : runs) interrupted_ = interrupted_ || run.missing;
  return runs;
}

double metric_of(const PointRun& run, const std::string& metric) {
  if (run.missing || !run.failed.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (run.rows.size() != 1)
    throw InputError(fmt::format("the run has {} rows; allowed: options that give one", run.rows.size()));
  const studies::Row flat = studies::flatten(run.rows.front());
  const studies::Value& value = flat[metric];
  if (value.integer() == nullptr && value.real() == nullptr)
    throw InputError(fmt::format("--metric {}: the row has no such number", metric));
  return value.number();
}

}  // namespace cm384::uncertainty
