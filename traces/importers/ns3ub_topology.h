// Which leaf switch each device of an ns-3-UB case hangs on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cm384::traces {

struct Ns3UbCase {
  std::map<std::int64_t, std::int64_t> leaves;  // of devices with a link to a switch: the lowest such switch
  std::vector<std::string> unread;              // files of the case that are there and say nothing here
};

// From node.csv and topology.csv beside the traffic file: for x.traffic.csv, x.node.csv and x.topology.csv.
// No leaves if one of them is missing. Throws InputError naming file, line and field.
Ns3UbCase read_ns3ub_case(const std::string& traffic);

}  // namespace cm384::traces
