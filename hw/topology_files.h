// A topology as files: nodes, links and routes in CSV, as ns-3-UB has them in a case folder, with a few
// columns and node types of our own. docs/topologies.md describes them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/units.h"

namespace cm384::hw {

struct TopologyNode {
  enum class Type : std::uint8_t {
    device,  // a die and a switch chip of its own, which forwards for others too
    die,     // a die whose port is linked to a switch chip
    socket,  // a CPU socket likewise
    switch_chip,
  };
  std::int64_t id = 0;
  Type type = Type::device;
  std::string part = "chip";           // what names call its chip: chip, l1chip, l2chip, l3chip
  Time forward_delay = Time::never();  // never: ub.switch.pipeline_latency
};

// Both ways. Ports are those of the file.
struct TopologyLink {
  struct End {
    std::uint32_t node = 0;  // index into TopologyFiles::nodes
    std::int64_t port = 0;
    Bandwidth rate{};  // of what this end sends; 0: the machine's
  };
  std::array<End, 2> ends;
  Time latency = Time::never();  // never: the machine's
};

struct TopologyFiles {
  std::vector<TopologyNode> nodes;  // by id, rising: dies and sockets are numbered in this order
  std::vector<TopologyLink> links;
  // Out ports of a node for a destination, indices of nodes. Nodes without an entry as first take the
  // shortest ways.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> routes;
  std::vector<std::string> paths;  // of what was read
  std::string content;             // hash of all that was read
  std::vector<std::string> notes;  // what of them is not taken, or taken for something else; for people

  int dies() const;
  int sockets() const;
  // Ids of the nodes that are dies, by die.
  std::vector<std::int64_t> ids_of_dies() const;
};

// Where the files are; routes and faults may be empty: there are none.
struct TopologyPaths {
  std::string nodes, links, routes, faults;
  bool all_metrics = false;  // out ports of any metric are taken, not those of the lowest alone
};
// node.csv, topology.csv and, where they exist, routing_table.csv and fault.csv of a folder, as its
// network_attribute.txt says (ns3ub_settings.h).
TopologyPaths topology_paths(const std::string& folder);
bool is_topology_folder(const std::string& path);

// Throws InputError: one line with file, line and field.
TopologyFiles read_topology(const TopologyPaths& paths);
// The same, with a note on each other file of an ns-3-UB case in the folder that is not taken.
std::shared_ptr<const TopologyFiles> read_topology_folder(const std::string& folder);

// The machine that a case folder describes, as the text of a machine file beside node.csv.
std::string machine_of_case(const std::string& folder);

}  // namespace cm384::hw
