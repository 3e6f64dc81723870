// What a Supernode owns; for its own sources.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "rdma_fabric/rdma_plane.h"
#include "supernode/plane_ports.h"
#include "supernode/simulation.h"
#include "supernode/socket_module.h"
#include "supernode/supernode.h"
#include "supernode/window_process.h"
#include "ub_fabric/crossing.h"
#include "ub_fabric/unified_bus.h"

namespace cm384::supernode {

// Time that SystemC has come to.
inline Time now() {
  return Time{static_cast<std::int64_t>(sc_core::sc_time_stamp().value())};
}

struct Supernode::Parts {
  Parts(unsigned workers, unsigned threads) : control(workers, threads) {}

  Simulation simulation;
  sim::PayloadPool payloads;
  RunControl control;
  std::unique_ptr<ub::UnifiedBus> bus;
  std::unique_ptr<rdma::RdmaPlane> rdma;  // where it takes part
  std::vector<sim::Fabric*> fabrics;
  std::vector<std::unique_ptr<npu::Accelerator>>
      accelerators;                                      // by number; empty where it does not take part
  std::vector<npu::Die*> dies;                           // those among them that have cores
  std::vector<std::vector<Driver*>> drivers;             // by accelerator; the place is the unit
  std::vector<std::unique_ptr<PlanePorts>> plane_ports;  // of those with more than one way out
  std::unique_ptr<SocketModule> sockets;
  std::vector<ForeignPort*> foreign;
  Time foreign_ahead{};
  std::vector<std::unique_ptr<WindowModule>> modules;
  std::unique_ptr<WindowProcess> outer, inner;  // run the modules: dies and sockets, sub-planes
  // Last progress of what runs on a worker.
  sim::PerWorker<Time> progress;
  // What is to be told to others of what happened on a die while modules ran side by side.
  struct Told {
    int die = 0;
    std::function<void()> tell;
  };
  sim::PerWorker<std::vector<Told>> told;
  std::vector<std::unique_ptr<LinkTap>> taps;
  std::unique_ptr<ub::Crossings> crossings;  // where all go into bytes and back
};

}  // namespace cm384::supernode
