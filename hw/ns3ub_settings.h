// Settings of an ns-3-UB case, network_attribute.txt: lines `default ns3::CLASS::NAME "VALUE"` and
// `global NAME "VALUE"`.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hw/ns3ub_classes.h"

namespace cm384::hw {

struct Ns3UbSettings {
  // Parameters of the machine that follow, key and value as a machine file has them.
  std::vector<std::pair<std::string, std::string>> machine;
  bool all_metrics = false;    // out ports of any metric are taken, not those of the lowest alone
  bool faults_enabled = true;  // fault.csv holds
  int lanes = 0;               // of the machine; 0: not stated
  // VlScheduler is DWRR; its classes follow from the priorities of traffic.csv (ns3ub_classes.h).
  std::optional<Ns3UbQuanta> quanta;
  std::vector<std::string> notes;  // what is taken for something else, and what is not taken; for people
};

// Throws InputError: one line with file, line and name.
Ns3UbSettings read_ns3ub_settings(const std::string& path);

}  // namespace cm384::hw
