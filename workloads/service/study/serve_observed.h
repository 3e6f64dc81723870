// A recorded run of a real server beside the same requests in the service (`run serve --observed`): the error
// per request, and the time of the server's host that brings the first half of the requests nearest, tried on
// the second.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/frame/row.h"
#include "workloads/service/observed_run.h"
#include "workloads/service/simulation.h"
#include "workloads/service/study/serve_runs.h"

namespace cm384::studies {

class ServeObserved {
 public:
  // `served` is the run of the deployment as it is. Nothing: interrupted.
  static std::optional<ServeObserved> calibrate(const service::ObservedRun& observed, const ServeRuns& runs,
                                                const service::Deployment& deployment,
                                                const service::ServiceResult& served, std::uint64_t seed);

  void add_to(Row& row) const;
  // Where a time of the host that would fit was not found.
  std::vector<std::string> notes() const;
  // A line per request.
  std::string csv() const;

 private:
  explicit ServeObserved(const service::ObservedRun& observed) : observed_(&observed) {}

  const service::ObservedRun* observed_;
  Time prefill_bubble_{}, step_bubble_{};
  std::vector<service::ObservedTimes> as_given_, calibrated_;  // by request; refused ones have negative times
};

}  // namespace cm384::studies
