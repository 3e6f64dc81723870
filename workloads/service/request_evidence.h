// What the latencies of each request are known from: of the batches and steps that it was in, and of those
// that it waited for, how much was measured, interpolated, extrapolated, or is a parameter.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/text/units.h"
#include "workloads/service/library.h"

namespace cm384::service {

// Time by what is known of it, s.
struct EvidenceSum {
  std::array<double, kEvidences> s{};  // by Evidence
  // That it may be off by: errors of curves, by leaving points out, and of scaled points.
  double error_s = 0;

  // A batch or step that takes `span`: what the library says of it, and parameters of the deployment.
  static EvidenceSum of(const StepTime& time, Time span);
  double total() const { return s[0] + s[1] + s[2] + s[3] + s[4]; }
  EvidenceSum times(double factor) const;
  EvidenceSum& operator+=(const EvidenceSum& o);
  EvidenceSum& operator-=(const EvidenceSum& o);
};

// Of a request: until its first token, and of its steps of decode.
struct LatencyEvidence {
  EvidenceSum prefill, decode;
};

// Evidence by request; keeps nothing where it is off.
class RequestEvidence {
 public:
  RequestEvidence(bool on, std::uint32_t requests) : by_request_(on ? requests : 0) {}

  bool on() const { return !by_request_.empty(); }
  void begin_waiting(std::uint32_t k);
  // It has waited so many seconds, which is known as well as what prefill has computed meanwhile.
  void begin_prefill(std::uint32_t k, double waited_s);
  // A batch has ended: of one of the prompts that its instance has begun; and once for the pool.
  void add_batch(std::uint32_t k, const EvidenceSum& batch) { by_request_[k].prefill += batch; }
  void add_computed(const EvidenceSum& batch) { computed_ += batch; }
  // Its first step on an instance begins, and it has left it: `steps` are those of the instance so far.
  void join(std::uint32_t k, const EvidenceSum& steps) { by_request_[k].decode -= steps; }
  void leave(std::uint32_t k, const EvidenceSum& steps) { by_request_[k].decode += steps; }
  void restart(std::uint32_t k) { by_request_[k] = {}; }
  std::vector<LatencyEvidence> release() { return std::move(by_request_); }

 private:
  std::vector<LatencyEvidence> by_request_;
  EvidenceSum computed_;  // by all instances of prefill so far
};

}  // namespace cm384::service
