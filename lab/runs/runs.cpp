#include "lab/runs/runs.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

#include "base/text/error.h"
#include "workloads/frame/fields.h"
#include "workloads/frame/result_json.h"

namespace cm384::runs {

Json Run::document() const {
  return text.empty() ? Json() : Json::parse(text);
}

Run run_of(const std::optional<Outcome>& outcome) {
  Run run;
  run.missing = !outcome;
  if (!outcome) return run;
  run.failed = outcome->reason;
  if (outcome->document.empty()) return run;
  // What another program, or a damaged disk, has left in a store.
  const Json document = Json::parse(outcome->document, nullptr, false);
  if (!document.is_object() || !document.contains("rows") || !document["rows"].is_array()) {
    if (run.failed.empty()) run.failed = "its result is damaged";
    return run;
  }
  run.text = outcome->document;
  for (const Json& row : document["rows"]) run.rows.push_back(studies::row_of(row));
  return run;
}

std::vector<Run> Runs::run(const std::vector<Request>& requests) {
  std::vector<Run> runs(requests.size());
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
    const Run run = run_of(finished->outcome);
    for (const std::size_t i : *of_ticket[finished->ticket]) runs[i] = run;
  }
  for (const Run& run : runs) interrupted_ = interrupted_ || run.missing;
  return runs;
}

double metric_of(const Run& run, const std::string& metric) {
  if (!run.good()) return std::numeric_limits<double>::quiet_NaN();
  if (run.rows.size() != 1)
    throw InputError(fmt::format("the run has {} rows; allowed: options that give one", run.rows.size()));
  const studies::Row flat = studies::flatten(run.rows.front());
  const studies::Value& value = flat[metric];
  if (value.integer() == nullptr && value.real() == nullptr)
    throw InputError(fmt::format("--metric {}: the row has no such number", metric));
  return value.number();
}

}  // namespace cm384::runs
