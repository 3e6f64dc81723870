// The switches of the RDMA plane as a module.
#pragma once

#include "ub_fabric/crossing.h"
#include "ub_fabric/planes/rdma/leaf_spine.h"

namespace cm384::supernode {

class RdmaModule {
 public:
  explicit RdmaModule(rdma::LeafSpine& switches) : switches_(switches) {}

  sim::EventQueue& queue() { return switches_.queue(); }
  void run_until(Time end) { switches_.run_until(end); }
  void hold_credits() {}  // there are none
  void exchange(ub::Crossings& crossings) {
    crossings.events(queue(), [](const sim::Event& e) {
      return rdma::LeafSpine::brings_packet(e) ? ub::Brings::other_packet : ub::Brings::nothing;
    });
  }

 private:
  rdma::LeafSpine& switches_;
};

}  // namespace cm384::supernode
