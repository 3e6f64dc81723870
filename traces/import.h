// Traces of other simulators, as traffic traces. What they name nodes or ranks becomes dies. A transfer is
// shared by the cores of its die.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traces/collectives.h"
#include "traces/traffic.h"

namespace cm384::traces {

struct ImportOptions {
  int dies = 768;         // that the machine has; more nodes are refused
  std::vector<int> onto;  // die of the node met first, second, ...; empty: placed by locality
  std::string machine;    // its name, for errors
  int dies_per_node = 16;
  // Ids of nodes by die, rising, where the machine is made of the case: each node is its die.
  std::vector<std::int64_t> nodes;
  CollectiveChoice collectives;  // Chakra: how they are written out
};

struct ImportResult {
  std::string placement;                              // the rule that made the mapping, for people
  std::vector<std::pair<std::int64_t, int>> mapping;  // die of each node or rank, by its number
  std::uint64_t records = 0;
  // What was left out, taken for something else or looks wrong; for people.
  std::vector<std::string> notes;
};

// `traffic.csv` of ns-3-UB. A task begins its delay after all phases it names have finished; a phase has
// finished when all its tasks have. Priorities become virtual lanes. Nodes of one leaf switch, as node.csv
// and topology.csv beside it say, or without these neighbours by number, are placed on dies of one node
// (node_placement.h); on a machine made of the case each node is a die. Throws InputError.
ImportResult import_ns3ub(const std::string& path, const ImportOptions& options, TrafficSink& sink);

// Chakra execution traces as ASTRA-sim reads them, one file a rank in the order of ranks. Sends are writes to
// the receiver's memory; a receive waits for the send with its source, destination and tag, in order. The
// k-th collective of all ranks is one, written out as the options say (collectives.h); those they do not name
// go directly between all pairs. Throws InputError naming file, offset and field.
ImportResult import_chakra(const std::vector<std::string>& paths, const ImportOptions& options,
                           TrafficSink& sink);

// A line a message: source, target, bytes, and as the header names them start_us, operation, after (numbers
// of earlier messages, from 0, that have to arrive first), delay_us. Throws InputError naming file, line and
// field.
ImportResult import_messages(const std::string& path, const ImportOptions& options, TrafficSink& sink);
// True for a file whose header is one of these.
bool is_message_list(const std::string& path);

// True for a file that begins as the ns-3-UB format does.
bool is_ns3ub(const std::string& path);

}  // namespace cm384::traces
