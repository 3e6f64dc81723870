#include "hw/parameters/rdma.h"

#include "hw/parameters/ub.h"

namespace cm384::hw {

Bandwidth Rdma::uplink_rate() const {
  return rounded_rate(static_cast<double>(link_rate.bytes_per_second) * dies_per_leaf / spines /
                      oversubscription);
}

}  // namespace cm384::hw
