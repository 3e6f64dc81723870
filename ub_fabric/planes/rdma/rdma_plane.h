// The RDMA plane behind the seam of fabrics: its switches and the interfaces of the dies that take part.
#pragma once

#include <memory>
#include <vector>

#include "base/engine/fabric.h"
#include "base/engine/payload.h"
#include "hw/parameters/rdma.h"
#include "ub_fabric/planes/rdma/interface.h"
#include "ub_fabric/planes/rdma/leaf_spine.h"
#include "ub_fabric/planes/rdma/packet.h"

namespace cm384::rdma {

class RdmaPlane final : public sim::Fabric, public sim::PacketPacker {
 public:
  // `dies`: of all supernodes. `source` numbers its module's queue. Throws InputError where values do not fit
  // together.
  RdmaPlane(const hw::Rdma& parameters, unsigned dies, unsigned supernodes, sim::PayloadPool& payloads,
            std::uint32_t source, unsigned workers);

  Interface& attach(const Seat& seat) override;
  Lookahead lookahead() const override { return {parameters_.link_latency, parameters_.link_latency}; }
  std::span<sim::FabricModule* const> modules() const override { return {&module_, 1}; }
  void declare_statistics(std::size_t module, sim::Statistics& to) const override;

  void pack(std::uint64_t argument, std::vector<std::byte>& to) override;
  std::uint64_t unpack(std::span<const std::byte>& from) override;

  // nullptr: the die does not take part.
  Interface* interface(std::size_t die) const { return interfaces_[die].get(); }
  LeafSpine& switches() { return switches_; }

 private:
  hw::Rdma parameters_;
  sim::PayloadPool& payloads_;
  Pools pools_;
  LeafSpine switches_;
  sim::FabricModule* module_ = &switches_;
  std::vector<std::unique_ptr<Interface>> interfaces_;  // by die
};

}  // namespace cm384::rdma
