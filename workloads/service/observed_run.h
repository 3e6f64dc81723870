// A recorded run of a real server: what it was asked, and when its first and last tokens came.
#pragma once

#include <string>
#include <vector>

#include "workloads/service/requests.h"

namespace cm384::service {

struct ObservedTimes {
  double ttft_ms = 0, e2e_ms = 0;
};

struct ObservedRun {
  RequestTrace trace;
  std::vector<ObservedTimes> times;  // by request
};

// Lines of CSV in any order, in seconds of one clock:
//   arrival_s,prompt,output,first_token_s,last_token_s
// Throws InputError.
ObservedRun read_observed(const std::string& path);

}  // namespace cm384::service
