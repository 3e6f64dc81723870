// Service classes that an ns-3-UB case asks for: the virtual lanes of its priorities in turns by bytes, as
// UbSwitch::VlScheduler DWRR of network_attribute.txt gives them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cm384::hw {

// Bytes of a turn of each priority.
struct Ns3UbQuanta {
  std::string where;          // file and line of VlScheduler
  int others = 0;             // of those that are not named; 0: not stated
  std::map<int, int> quanta;  // by priority
};

struct Ns3UbClasses {
  // The levels that traffic.csv uses, ascending: each is a class. Empty: there are no classes.
  std::vector<int> priorities;
  // Parameters of the machine that follow, key and value as a machine file has them.
  std::vector<std::pair<std::string, std::string>> machine;
  std::string note;  // what became of the scheduler; for people. Empty: nothing to tell
};

// Of the case in `folder`; `lanes` is what it has, or 0. Throws InputError: one line with file, line and
// field.
Ns3UbClasses ns3ub_classes(const std::string& folder, const Ns3UbQuanta& quanta, int lanes);

// The priorities that are service classes on the machine made of a case; empty: a priority is its service
// level. Throws InputError likewise.
std::vector<int> priorities_of_case(const std::string& folder);

}  // namespace cm384::hw
