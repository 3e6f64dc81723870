// Runs of `cm384 run serve`: what its options ask for, with one deployment, rate and seed at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "workloads/service/observed_run.h"
#include "workloads/service/simulation.h"
#include "workloads/service/study/serve_options.h"
#include "workloads/service/study/serve_report.h"

namespace cm384::studies {

// How far a run is: the share of its requests that are done, and its time.
using ServeProgress = std::function<void(double, Time)>;

class ServeRuns {
 public:
  // Throws InputError for options that do not fit together, and for files that cannot be read.
  ServeRuns(const StudyContext& context, const ServeOptions& options);

  const service::Library& library() const { return library_; }
  // One, or every division of --npus.
  const std::vector<service::Deployment>& deployments() const { return deployments_; }
  // What the library's model changed of the deployment; empty: nothing.
  const std::string& fitted() const { return fitted_; }
  // Asked for; 0: as recorded.
  const Reals& rates() const { return rates_; }

  // The deployment that was asked for with further changes. Throws InputError.
  // `fitted`, if any, becomes what the library's model changed of it.
  service::Deployment deployment_with(const std::vector<std::string>& changes,
                                      std::string* fitted = nullptr) const;
  // Instances of both pools.
  static std::string pools_of(const service::Deployment& deployment);
  // The run of --observed; null: none.
  const service::ObservedRun* observed() const { return observed_ ? &*observed_ : nullptr; }

  service::RequestTrace trace(std::uint64_t seed, double rate) const;
  // Writes the trace of the first run where that was asked for.
  void save() const;
  // `sampled`: with occupancies.
  // Not complete where it was interrupted.
  service::ServiceResult run(const service::Deployment& deployment, const service::RequestTrace& trace,
                             std::uint64_t seed, bool sampled, service::ServiceWatch watch = {},
                             ServeProgress progress = {}) const;
  // What run() gives the service.
  service::ServiceOptions prepared(const service::Deployment& deployment, const service::RequestTrace& trace,
                                   std::uint64_t seed, bool sampled) const;
  Row row(const service::Deployment& deployment, const service::RequestTrace& trace,
          const service::ServiceResult& result) const;

  struct LargestRate {
    double rate = 0;
    bool beyond = false;  // none was tried at which fewer do: it is no limit
    Rows tried;           // search_point() of each, by rising rate
  };
  // The largest rate at which --slo-share of the requests meet the objectives, to a hundredth; 0: not even a
  // tiny one; at most 10^6, or as many as two million requests are drawn for. Empty: interrupted.
  std::optional<LargestRate> largest_rate(const service::Deployment& deployment, std::uint64_t seed,
                                          const ServeProgress& progress) const;

 private:
  // Of a search the first that is possible: what it stands on need not be.
  service::Deployment base_deployment();

  const StudyContext& context_;
  const ServeOptions& options_;
  std::vector<service::Deployment> deployments_;
  service::Library library_;
  std::string fitted_;
  Reals rates_;
  std::optional<service::ObservedRun> observed_;
  std::optional<service::RequestTrace> warm_;
  std::vector<std::pair<std::int32_t, std::int32_t>> lengths_;  // of --lengths
  Objectives objectives_;
  service::ServiceOptions service_;
};

}  // namespace cm384::studies
