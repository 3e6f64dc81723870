// The Unified Bus behind the seam of fabrics: all sub-planes and the controllers of those who sit at them. Of
// several supernodes each has sub-planes of its own, which know its dies and sockets alone; endpoints and
// sub-planes are numbered through here.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/engine/fabric.h"
#include "base/engine/payload.h"
#include "ub_fabric/controller.h"
#include "ub_fabric/packet.h"
#include "ub_fabric/parameters.h"
#include "ub_fabric/sub_plane.h"

namespace cm384::ub {

class UnifiedBus final : public sim::Fabric {
 public:
  // The queues of its modules are numbered from `first_source` on. Throws InputError where values do not fit
  // together.
  UnifiedBus(const Parameters& parameters, sim::PayloadPool& payloads, std::uint32_t first_source,
             unsigned workers);

  // Joins the two dies of a package as well.
  UbController& attach(const Seat& seat) override;
  // Attaches a controller that its owner made and keeps; in the first supernode.
  void join(UbController& controller);
  Lookahead lookahead() const override;
  std::span<sim::FabricModule* const> modules() const override { return modules_; }
  void declare_statistics(std::size_t module, sim::Statistics& to) const override;

  PacketPool& packets() { return packets_; }
  // Sub-planes of all supernodes.
  int planes() const { return static_cast<int>(planes_.size()); }
  SubPlane& plane(std::size_t number) const { return *planes_[number]; }
  // nullptr: nobody sits there.
  UbController* controller(std::size_t endpoint) const { return controllers_[endpoint].get(); }
  // By endpoint, empty ones among them: dies, then CPU sockets.
  std::span<const std::unique_ptr<UbController>> controllers() const { return controllers_; }
  // Another table of a sub-plane's chips and links, with other parts out of order; as
  // SubPlane::set_network().
  void set_network(std::size_t plane, std::shared_ptr<const Network> network);
  // Puts another model in the place of a switch chip; as SubPlane::install().
  void install(std::size_t plane, unsigned chip, SwitchChip& model);

 private:
  void join(UbController& controller, std::size_t first_plane);

  hw::Topology topology_;               // of all supernodes
  std::vector<Parameters> parameters_;  // of each
  sim::PayloadPool& payloads_;
  PacketPool packets_;
  unsigned workers_;
  std::vector<std::unique_ptr<SubPlane>> planes_;
  std::vector<std::unique_ptr<UbController>> controllers_;
  std::vector<sim::FabricModule*> modules_;
  Time endpoint_latency_,
      way_in_;                   // the shortest of all links to chips, and to the end of the chip's pipeline
  bool holds_requests_ = false;  // somebody keeps requests in the receive buffer
  bool foreign_chips_ = false;
};

}  // namespace cm384::ub
