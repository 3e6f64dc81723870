// The timeline of a service (`run serve --timeline`) as Chrome trace JSON: what instances and links did, and
// for some requests where each of them was.
#pragma once

#include <string>
#include <vector>

#include "workloads/frame/lane_timeline.h"
#include "workloads/service/simulation.h"

namespace cm384::studies {

class ServeTimeline {
 public:
  // Opens the file. Shows the first `requests` that arrive from `window.from` on. Throws OutputError.
  ServeTimeline(const std::string& path, const observe::TimelineOptions& window, int requests);

  // Takes what instances and links do.
  void add(const service::Activity& activity);
  // Writes the file; how many requests it shows. Throws OutputError.
  int finish(const service::RequestTrace& trace, const service::ServiceResult& result,
             const service::Deployment& deployment);

 private:
  enum Process : int { kRequests = 1, kPrefill, kLinks, kDecode };

  void request(std::uint32_t k, const service::Request& request, const service::Served& served);
  void activity(const service::Activity& activity);

  LaneTimeline lanes_;
  int requests_;
  std::vector<service::Activity> activities_;
};

}  // namespace cm384::studies
