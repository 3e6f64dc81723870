// Several services on the NPUs of one supernode (`run serve --beside FILE`).
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "workloads/frame/row.h"
#include "workloads/service/study/serve_runs.h"

namespace cm384::studies {

class ServeBeside {
 public:
  // `own` is the service of the command line; each file has the options of another one. Throws InputError:
  // file:line: key: what was found; what is allowed.
  ServeBeside(const StudyContext& context, const ServeRuns& own, const ServeOptions& options);

  struct Served {
    std::string name;
    service::RequestTrace trace;
    service::ServiceResult result;
    service::Deployment deployment;
    Row row;
  };
  // In the order of the command line, the own one first. Nothing: interrupted.
  std::optional<std::vector<Served>> run() const;

 private:
  struct Other {
    std::string name;
    double share = 1;
    ServeOptions options{};
    StudyContext context;
    std::optional<ServeRuns> runs{};
  };
  const StudyContext& context_;
  const ServeRuns& own_;
  const ServeOptions& options_;
  std::deque<Other> others_;  // their runs refer to their options
};

}  // namespace cm384::studies
