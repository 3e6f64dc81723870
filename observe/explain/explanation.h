// What bound a run: its critical path by part, its busiest resources, and what each of them would have given
// at twice its speed.
#pragma once

#include <string>
#include <vector>

#include "hw/json.h"
#include "hw/machine.h"
#include "observe/explain/path.h"

namespace cm384::observe {

class MachinePath;

struct Explanation {
  struct Share {
    std::string_view name;
    double us = 0, share = 0;
  };
  struct Gain {
    Resource resource = Resource::none;
    double us = 0;                     // less than `span_us`, predicted
    double share = 0;                  // of span_us
    std::vector<std::string> changes;  // "ub.controller.write_interval=1866ps"; empty: no parameter
    double measured_us = 0;            // the same of a run with these changes
    bool checked = false;
  };
  double span_us = 0;                // from the first launch that was counted to the end of the last
  std::vector<Share> path, busiest;  // largest first
  std::vector<Gain> gains;           // largest first

  static Explanation of(const MachinePath& path, const hw::Machine& machine);
  std::string text() const;
  Json to_json() const;
  // The short form that a row has: shares by resource, and the whole span as it would be with one twice as
  // fast.
  Json of_row() const;
};

// The assignments that make a resource of this machine twice as fast, as --set takes them.
std::vector<std::string> twice_as_fast(const hw::Machine& machine, Resource resource);

}  // namespace cm384::observe
