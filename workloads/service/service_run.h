// What all parts of a run of a service share: its events, its requests, and where its times came from.
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "workloads/service/event_line.h"
#include "workloads/service/request_table.h"
#include "workloads/service/simulation.h"

namespace cm384::service {

inline Time of_ms(double ms) {
  return {std::llround(ms * 1e9)};
}
inline double seconds(Time time) {
  return time.us() * 1e-6;
}

// Busy time by what is known of it.
class BusyEvidence {
 public:
  explicit BusyEvidence(bool allow_extrapolation) : allow_extrapolation_(allow_extrapolation) {}
  // Adds a time from the library; `what` it is of is a format of the two numbers. Throws InputError where it
  // is extrapolated and must not be.
  void add(const StepTime& time, const char* what, double first, double second);
  // Seconds that follow from a parameter of the deployment.
  void add_parameter(double s) { s_[static_cast<std::size_t>(Evidence::parameter)] += s; }
  void add_to(ServiceResult& result) const;

 private:
  bool allow_extrapolation_;
  std::array<double, kEvidences> s_{};
  double worst_error_ = 0, worst_scaled_ = 0;
};

// The time that an instance belongs to its pool. A role switch closes it; it leaves once it has drained.
struct Membership {
  Time since{}, until = Time::never();
  std::optional<std::size_t> role_switch;  // that closed it: it accepts no further work

  bool open() const { return !role_switch; }
  // The role switch that an instance which has drained leaves with now; nothing: it stays, or has left.
  std::optional<std::size_t> leave(Time now) {
    if (open() || until != Time::never()) return {};
    until = now;
    return role_switch;
  }
  // Up to the end of the run.
  double seconds_until(Time end) const;
};

struct ServiceRun {
  ServiceRun(const RequestTrace& of, const Deployment& on, const ServiceOptions& with)
      : trace(of),
        deployment(on),
        options(with),
        requests(of),
        evidence(with.allow_extrapolation),
        latencies(with.evidence, requests.size()) {}
  ServiceRun(const ServiceRun&) = delete;  // the parts of a run refer to it

  const RequestTrace& trace;
  const Deployment& deployment;
  const ServiceOptions& options;
  EventLine events;
  RequestTable requests;
  BusyEvidence evidence;
  RequestEvidence latencies;
  TokenGaps gaps;

  Time now() const { return events.now(); }
  std::uint32_t tenant_of(std::uint32_t request) const {
    return requests.request(request).session % static_cast<std::uint32_t>(options.tenants);
  }
  // Tokens come now to a request that has waited for them since its last ones.
  void end_gap(std::uint32_t request) {
    const Time wait = now() - requests.served(request).last_token;
    gaps.add(wait, 1);
    requests.note_gap(request, wait);
  }
  void notify(const Activity& activity) const {
    if (options.watch) options.watch(activity);
  }
};

}  // namespace cm384::service
