// The port of an accelerator that reaches both the Unified Bus and the RDMA plane: forwards each request to
// one of them.
#pragma once

#include "base/engine/fabric.h"
#include "firmware/abi/memory_map.h"
#include "system/machine/driver.h"
#include "ub_fabric/planes/rdma/interface.h"

namespace cm384::supernode {

// The address of a request says which plane it takes. As a driver it hands the RDMA port the events of its
// unit.
class PlanePorts final : public sim::RemotePort, public Driver {
 public:
  explicit PlanePorts(sim::RemotePort& bus) : bus_(bus) {}
  void set_rdma(sim::FabricPort& port) { rdma_ = &port; }

  void submit(const sim::Request& request) override {
    if (cm384_gm_via_rdma(request.address)) {
      rdma_->submit(request);
    } else {
      bus_.submit(request);
    }
  }
  void handle(int, const sim::Event& event) override { rdma_->handle(event); }
  bool brings_packet(const sim::Event& event) const override { return rdma::Interface::brings_packet(event); }

 private:
  sim::RemotePort& bus_;
  sim::FabricPort* rdma_ = nullptr;
};

}  // namespace cm384::supernode
