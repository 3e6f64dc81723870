#include <fmt/format.h>

#include "hw/error.h"
#include "service/simulation.h"

namespace cm384::service {

void check_service(const RequestTrace& trace, const Deployment& deployment, const ServiceOptions& options) {
  for (std::size_t k = 0; k < trace.requests.size(); ++k) {
    const Request& r = trace.requests[k];
    const double bytes =
        (static_cast<double>(r.prompt) + r.output) * static_cast<double>(deployment.decode.token.count);
    if (bytes > static_cast<double>(deployment.decode.kv_room.count))
      throw InputError(fmt::format(
          "request {}: {} + {} tokens are {:.1f} GB of context; a die has room for {:.1f} GB "
          "(decode.kv_room)",
          k, r.prompt, r.output, bytes * 1e-9, static_cast<double>(deployment.decode.kv_room.count) * 1e-9));
  }
  for (const Outage& outage : options.outages) {
    const int most = outage.prefill ? deployment.prefill.instances : deployment.decode.instances;
    if (outage.instance >= most)
      throw InputError(fmt::format("--outage: {} instance {}: the deployment has {}",
                                   outage.prefill ? "prefill" : "decode", outage.instance, most));
  }
}

}  // namespace cm384::service
