// The best of many deployments (`run serve --search`) by successive halving: all serve the first of the
// requests, the better third of them three times as many, and so on; the last eight serve all.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "workloads/frame/row.h"
#include "workloads/service/study/serve_runs.h"

namespace cm384::studies {

// "decode.batch=64,96": values of a key, of which each stands with each value of the others. Returns changes
// as
// --deploy takes them, a list for each deployment. Throws InputError.
std::vector<std::vector<std::string>> combinations_of(const std::vector<std::string>& search);

// That serve all requests at last.
inline constexpr std::size_t kLast = 8;
// So many of `left` deployments are kept, and serve three times as much.
inline std::size_t kept_of(std::size_t left) {
  return std::max(std::min(left, kLast), (left + 2) / 3);
}
// The first share of the requests that so many deployments serve: none serves fewer than it says of all.
double first_share(std::size_t deployments, std::size_t requests);
// That share of a trace.
service::RequestTrace first_of(const service::RequestTrace& trace, double share);

class ServeSearch {
 public:
  ServeSearch(const ServeRuns& runs, const ServeOptions& options, std::uint64_t seed, double rate)
      : runs_(runs), options_(options), seed_(seed), rate_(rate) {}

  // By rank; those that are not possible last, with the reason. Nothing: interrupted. `progress` is called
  // with the share that is done.
  std::optional<Rows> run(const std::function<void(double)>& progress);

 private:
  struct Candidate {
    std::string text;
    std::optional<service::Deployment> deployment{};
    std::string excluded{};
    Row row{};
    double share = 0, score = 0;  // of the requests that it served last
    bool meets = true;            // as many requests their objectives as must
  };
  std::vector<Candidate> candidates() const;
  bool serve(Candidate& candidate, const service::RequestTrace& trace, double share) const;
  double score_of(const Row& row) const;

  const ServeRuns& runs_;
  const ServeOptions& options_;
  std::uint64_t seed_;
  double rate_;
};

}  // namespace cm384::studies
