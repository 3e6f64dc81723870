// What the percentiles of a service's latencies are known from (`run serve --evidence`).
#pragma once

#include "workloads/frame/row.h"
#include "workloads/service/simulation.h"

namespace cm384::studies {

// A row for p50, p90 and p99 of the times to the first token, per output token and from arrival to the end:
// shares of that time over the requests next to the percentile, a hundredth of all of them.
Rows evidence_rows(const service::RequestTrace& trace, const service::ServiceResult& result);

// Adds `audited` to these rows of a row that has audits: what audited batches and steps were off by on the
// average as a share of this time.
void set_audited(Row& row);

}  // namespace cm384::studies
