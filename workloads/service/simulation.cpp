#include "workloads/service/simulation.h"

#include "workloads/service/service.h"

namespace cm384::service {

ServiceResult serve(const RequestTrace& trace, const Deployment& deployment, const Library& library,
                    const ServiceOptions& options) {
  check_service(trace, deployment, library, options);
  return Service(trace, deployment, library, options).run();
}

}  // namespace cm384::service
