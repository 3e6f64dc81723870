// What bound a run: its critical path by part, its busiest resources, and what each of them would have given
// at twice its speed.
#pragma once

#include <string>
#include <vector>

#include "base/text/json.h"
#include "hw/machine.h"
#include "system/observe/explain/path.h"

namespace cm384::observe {

class MachinePath;

struct Explanation {
  struct Share {
    std::string_view name;
    double us = 0, share = 0;
    Resource resource = Resource::none;  // that would shorten it
  };
  struct Gain {
    Resource resource = Resource::none;
    double us = 0;                     // less than `span_us`, predicted
    double share = 0;                  // of span_us
    bool at_least = false;             // waits that the graph leaves out may become shorter as well
    double at_most_us = 0;             // where `us` is not told from nothing; 0: it is
    std::vector<std::string> changes;  // "ub.controller.write_interval=1866ps"; empty: no parameter
    double measured_us = 0;            // the same of a run with these changes
    bool checked = false;
  };
  double span_us = 0;                // from the first launch that was counted to the end of the last
  double followed_us = 0;            // of that, what the graph leads to: its end with nothing faster
  double error_us = 0;               // by so much a gain may be off: the choices that a changed machine makes
  std::vector<Share> path, busiest;  // largest first
  std::vector<Gain> gains;           // largest first

  static Explanation of(const MachinePath& path, const hw::Machine& machine);
  std::string text() const;
  Json to_json() const;
  // The short form that a row has: shares by resource, and the whole span as it would be with one twice as
  // fast.
  Json of_row() const;
  // Numbers of gains to compare with a run that has their changes: the four largest, those of the first three
  // resources of the path, and of the busiest one for which none is predicted.
  std::vector<std::size_t> to_check() const;

 private:
  // Whether a gain is that of one tier of links, which stands beside it.
  bool of_one_tier(const Gain& gain) const;
};

// The assignments that make a resource of this machine twice as fast, as --set takes them; none where it has
// no parameter, or where one would leave its range.
std::vector<std::string> twice_as_fast(const hw::Machine& machine, Resource resource);

}  // namespace cm384::observe
