#include "workloads/service/observed_run.h"

#include <algorithm>
#include <numeric>

#include "base/text/csv_table.h"
#include "workloads/service/trace_builder.h"

namespace cm384::service {

ObservedRun read_observed(const std::string& path) {
  hw::CsvTable table(path, {"arrival_s", "prompt", "output", "first_token_s", "last_token_s"});
  TraceBuilder builder(table.lines(), "observed");
  ObservedRun run;
  constexpr double kMs = static_cast<double>(kPsPerMs);
  std::vector<std::int64_t> arrivals;
  std::vector<ObservedTimes> times;
  table.each([&](const FieldReader& fields) {
    const std::int64_t arrival = seconds_ps(fields, 0), first = seconds_ps(fields, 3),
                       last = seconds_ps(fields, 4);
    if (first < arrival) fields.fail(3, "arrival_s or later");
    if (last < first) fields.fail(4, "first_token_s or later");
    builder.add(arrival, fields.integer(1, 1, kMostTokens), fields.integer(2, 1, kMostTokens), "arrival_s");
    arrivals.push_back(arrival);
    times.push_back({static_cast<double>(first - arrival) / kMs, static_cast<double>(last - arrival) / kMs});
  });
  run.trace = builder.finish();
  // In the order of the requests: that of arrival, then of the file.
  std::vector<std::size_t> order(arrivals.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t k) { return arrivals[k]; });
  for (const std::size_t k : order) run.times.push_back(times[k]);
  return run;
}

}  // namespace cm384::service
