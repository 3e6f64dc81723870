#include "ub_fabric/planes/rdma/rdma_plane.h"

namespace cm384::rdma {

RdmaPlane::RdmaPlane(const hw::Rdma& parameters, unsigned dies, unsigned supernodes,
                     sim::PayloadPool& payloads, std::uint32_t source, unsigned workers)
    : parameters_(parameters),
      payloads_(payloads),
      switches_(parameters, dies, supernodes, pools_, source),
      interfaces_(dies) {
  pools_.set_workers(workers);
}

Interface& RdmaPlane::attach(const Seat& seat) {
  auto& made = interfaces_.at(seat.endpoint);
  made = std::make_unique<Interface>(parameters_, seat, switches_, pools_, payloads_);
  return *made;
}

void RdmaPlane::declare_statistics(std::size_t, sim::Statistics& to) const {
  switches_.declare_statistics(to, sim::StatisticPath{}.part("rdma"));
}

}  // namespace cm384::rdma
