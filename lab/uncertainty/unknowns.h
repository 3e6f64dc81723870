// The parameters of a machine that nobody knows: those with a plausible range (docs/uncertainty.md).
#pragma once

#include <string>
#include <vector>

#include "hw/machine.h"
#include "lab/sweeps/scale.h"

namespace cm384::uncertainty {

class Unknown {
 public:
  Unknown(const hw::Parameter& parameter, const hw::Provenance& provenance);

  std::string key;
  std::string own;  // its value in the machine, as the command line takes it
  hw::Provenance provenance;

  // The value at a place from 0 to 1, as the command line takes it. An interval is drawn evenly, or evenly by
  // order of magnitude if its upper end is at least eight times its lower one; alternatives are equally
  // likely.
  std::string at(double place) const;
  // A place that gives the machine's own value.
  double own_place() const;
  // "30ns to 75ns", "merge, byte-enable"
  std::string range() const;

 private:
  bool logarithmic() const;

  sweeps::Scale scale_;
  double low_ = 0, high_ = 0;  // of an interval, base units
};

// In the order of declaration. A value that the user gave is none, nor one without an alternative.
std::vector<Unknown> unknowns_of(const hw::Machine& machine);

}  // namespace cm384::uncertainty
