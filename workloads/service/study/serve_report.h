// What `cm384 run serve` tells of a service's run: percentiles, goodput, shares.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "workloads/frame/row.h"
#include "workloads/service/simulation.h"

namespace cm384::studies {

struct Objective {
  double ttft_ms = 0, tpot_ms = 0, e2e_ms = 0;  // e2e_ms 0: none
  double itl_ms = 0;                            // of the longest wait between two deliveries; 0: none

  bool is_met(const service::Request& request, const service::Served& served) const;
};
struct Objectives {
  Objective of_all;
  std::map<int, Objective> by_class{};  // of priority, in place of that of all

  const Objective& of(const service::Request& request) const {
    const auto own = by_class.find(request.priority);
    return own == by_class.end() ? of_all : own->second;
  }
};
// "CLASS:TTFT:TPOT", ms, with or without ":E2E" and ":ITL", 0 for none. Throws InputError.
std::pair<int, Objective> class_objective(std::string_view text);
void check_class_objective(std::string_view text);

// Share of all requests that meet their objectives.
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
// `instances`: with columns of the pools' instances, where these come and go.
std::string occupancy_csv(const service::ServiceResult& result, bool instances = false,
                          bool shared_blocks = false);

}  // namespace cm384::studies
