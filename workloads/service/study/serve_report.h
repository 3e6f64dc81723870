// What `cm384 run serve` tells of a service's run: percentiles, goodput, shares.
#pragma once

#include <span>
#include <string>

#include "workloads/frame/row.h"
#include "workloads/service/simulation.h"

namespace cm384::studies {

struct Objectives {
  double ttft_ms = 0, tpot_ms = 0;
};

// Share of all requests that meet both.
double share_that_meets(const service::RequestTrace& trace, const service::ServiceResult& result,
                        const Objectives& objectives);

// The row of one run.
Row service_row(const service::RequestTrace& trace, const service::Deployment& deployment,
                const service::ServiceResult& result, const Objectives& objectives, int tenants = 1);

// Adds where requests spent their time, and what that says of the service.
void set_why(Row& row, const service::ServiceResult& result);

// Rows of equal fields as one: each number its mean over them, and `ci95` beside the mean of each time.
Row mean_row(std::span<const Row> rows);

// One point of a search for the largest rate, as it stands in a row's `search`.
Row search_point(double rate, const Row& row);

// A line per request, and a line per moment.
std::string requests_csv(const service::RequestTrace& trace, const service::ServiceResult& result);
// With `instances` of the pools, where these come and go.
std::string occupancy_csv(const service::ServiceResult& result, bool instances = false);

}  // namespace cm384::studies
