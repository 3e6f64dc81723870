// Faults on links, asked for by text in the grammar of link_name.h: `plane=0,node=1,l2=3,rate=1e-4`,
// `die=5,ber=1e-9`, `all,ber=1e-12`, `plane=3,l2=5,kind=down,at=60us`.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "system/machine/link_name.h"
#include "system/machine/supernode.h"
#include "ub_fabric/fault.h"

namespace cm384::supernode {

// Both directions of every link that the selection matches; of kind down: the parts themselves.
struct FaultRequest {
  LinkSelection links;
  bool down = false;     // out of order
  double width = 1;      // share of the physical lanes that work
  Time at;               // from when on, of these two
  double rate = 0;       // chance of every transmission to be damaged
  bool per_bit = false;  // the rate is that of every bit
  std::uint64_t seed = 1;
  ub::Damage damage = ub::Damage::corrupted;
};

// Throws InputError: an unknown or missing key, a value out of range, no link named.
FaultRequest parse_fault(std::string_view text);

// The faults of a machine; detached by its destructor, which must run before the machine's.
class Faults {
 public:
  explicit Faults(Supernode& machine) : machine_(machine) {}
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  // Throws InputError for a part that does not exist, a die that does not take part, or a link named twice.
  void attach(const FaultRequest& request);
  // Called after the last attach(): makes the routing tables without the parts that are down, from the start
  // or from a time on. Throws InputError where they leave two endpoints that take part without a route.
  void apply_breaks();
  // Transmissions damaged so far.
  std::uint64_t strikes() const;

 private:
  struct Attached {
    ub::SubPlane* plane = nullptr;  // or a die's port
    ub::LinkBank* ports = nullptr;
    unsigned link = 0;
    std::unique_ptr<ub::RandomFault> fault;
  };
  void attach_to_link(ub::SubPlane* plane, ub::LinkBank* ports, unsigned link, std::uint64_t place,
                      const FaultRequest& request);

  void schedule_outage(const LinkSelection& parts, Time at);
  // `tables`: of all sub-planes, `from` a time on.
  void check_ways(const std::vector<std::shared_ptr<const ub::Network>>& tables, Time from) const;

  Supernode& machine_;
  std::vector<Attached> attached_;
  bool down_ = false;
  std::map<Time, std::map<int, ub::Outage>> breaks_;  // by time and sub-plane, what goes out of order then
};

}  // namespace cm384::supernode
