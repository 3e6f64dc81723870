// What a Supernode owns; for its own sources.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "system/machine/ownership.h"
#include "system/machine/plane_ports.h"
#include "system/machine/rdma_module.h"
#include "system/machine/runner.h"
#include "system/machine/socket_module.h"
#include "system/machine/supernode.h"
#include "ub_fabric/crossing.h"
#include "ub_fabric/planes/rdma/rdma_plane.h"
#include "ub_fabric/unified_bus.h"

namespace cm384::supernode {

// SystemC's present time.
inline Time now() {
  return Time{static_cast<std::int64_t>(sc_core::sc_time_stamp().value())};
}

// First dies of the packages that take part, in the order in which they become modules.
std::vector<int> packages_of(const std::vector<int>& dies, const hw::Topology& topology);
// The same counters with their owner's values.
void visit_values(unsigned owner, const sim::Statistics& part,
                  const std::function<void(const sim::Statistics&)>& visit);
// The text of the owning process, where several simulate the machine; called by all of them.
std::string of_owner(unsigned owner, const std::string& text);

struct Supernode::Parts {
  Parts(unsigned workers, const SupernodeOptions& options)
      : runner(workers, options.threads, options.threads_why, options.what_if_threads) {}

  Runner runner;
  Ownership owners;
  sim::PayloadPool payloads;
  std::unique_ptr<ub::UnifiedBus> bus;
  std::unique_ptr<rdma::RdmaPlane> rdma;  // where it takes part
  std::unique_ptr<RdmaModule> rdma_module;
  std::vector<sim::Fabric*> fabrics;
  std::vector<std::unique_ptr<npu::Accelerator>>
      accelerators;                                      // by number; empty where it does not take part
  std::map<int, unsigned> worker_of_package;             // modules are given to workers in turn
  std::vector<npu::Die*> dies;                           // those among them that have cores
  hw::Die die_elsewhere;                                 // as those that this process does not own are made
  std::vector<std::vector<Driver*>> drivers;             // by accelerator; the place is the unit
  std::vector<std::unique_ptr<PlanePorts>> plane_ports;  // of those with more than one way out
  std::unique_ptr<SocketModule> sockets;
  // Where several processes simulate the machine (supernode_peers.cpp).
  struct Printed {
    Time window;            // its end
    std::size_t place = 0;  // of the die among those given
    int die = 0, core = 0;
    std::string text;
  };
  sim::PerWorker<std::vector<Printed>> printed;  // by kernels, and not yet told
  // Of launches on others' dies: what runs there, by die and number.
  std::map<std::pair<int, std::uint32_t>, std::shared_ptr<const npu::ElfImage>> images;
  std::vector<std::size_t> known_records;  // by die: launches of which all know

  bool anything_unfinished(const std::atomic<std::size_t>& own) const {
    return (runner.peers() ? runner.peers()->unfinished() : own.load()) > 0;
  }
  // What kernels printed meanwhile, in the order in which one process would have.
  std::vector<Printed> drain_printed();
  // What launches that finished on any die have taken.
  void share_records(std::vector<std::vector<npu::LaunchRecord>>& records);
  // Counts of the parts that this process owns, its foreign ports among them.
  SupernodeCounts own_counts(const std::vector<ForeignPort*>& foreign) const;
  unsigned owner_of_module(const sim::Fabric& fabric, std::size_t number) const {
    return &fabric == bus.get() ? owners.of_plane(number) : owners.of_rdma();
  }
  // Last progress of what runs on a worker.
  sim::PerWorker<Time> progress;
  // What is to be told to others of what happened on a die while modules ran side by side.
  struct Deferred {
    int die = 0;
    std::function<void()> call;
  };
  sim::PerWorker<std::vector<Deferred>> deferred;
  std::vector<std::unique_ptr<LinkTap>> taps;
  std::unique_ptr<ub::Crossings> crossings;  // where all go into bytes and back
};

}  // namespace cm384::supernode
