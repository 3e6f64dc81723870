// What goes wrong in a service, or is changed, and when.
#pragma once

#include <cstdint>
#include <vector>

#include "base/text/units.h"

namespace cm384::service {

// An instance is away from `at` for `duration`. One of prefill loses its batch and the contexts that have not
// been sent; one of decode loses its contexts. These requests start anew.
struct Outage {
  bool prefill = true;
  int instance = 0;
  Time at{}, duration{};
};

// A die is lost for good, with what it had. How its instance goes on (Deployment::recovery has the times):
enum class Recovery : std::uint8_t {
  degrade,      // a pause, then without it: another copy of its experts is there
  role_switch,  // a longer pause: another die takes over its experts and attends to no requests any more
  restart       // the instance starts anew without it, and loses all it had
};
struct DieFault {
  bool prefill = true;
  int instance = 0, die = 0;  // the die within the instance
  Time at{};
  Recovery recovery = Recovery::degrade;
};

// A sub-plane of the Unified Bus is down; `duration` 0: for good. Steps and batches that begin meanwhile are
// slower.
struct PlaneFault {
  int plane = 0;
  Time at{}, duration{};
};

// Instances stop taking work, end what they have, and serve in the other pool after the time that it takes:
// those of prefill from `first` to `last` as one instance of decode, or one of decode as several of prefill.
struct RoleSwitch {
  bool prefill = true;  // what they were
  int first = 0, last = 0;
  Time at{};
};

struct Faults {
  std::vector<Outage> outages{};
  std::vector<DieFault> dies{};
  std::vector<PlaneFault> planes{};
  std::vector<RoleSwitch> switches{};
};

}  // namespace cm384::service
