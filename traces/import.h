// Traces of other simulators, as traffic traces. What they name nodes or ranks becomes dies: the one met
// first is die 0. A transfer is shared by the cores of its die.
#pragma once

#include <string>
#include <vector>

#include "traces/traffic.h"

namespace cm384::traces {

struct ImportOptions {
  int dies = 768;         // that the machine has; more nodes are refused
  std::vector<int> onto;  // die of the node met first, second, ...; empty: 0, 1, ...
  std::string machine;    // its name, for errors
};

// What an importer left out or took for something else; for the user to read.
using ImportNotes = std::vector<std::string>;

// `traffic.csv` of ns-3-UB. A task begins its delay after all phases it names have finished; a phase has
// finished when all its tasks have. Priorities become virtual lanes. Throws InputError.
ImportNotes import_ns3ub(const std::string& path, const ImportOptions& options, TrafficSink& sink);

// Chakra execution traces as ASTRA-sim reads them, one file a rank in the order of ranks. Sends are writes to
// the receiver's memory; a receive waits for the send with its source, destination and tag, in order. The
// k-th collective of all ranks is one: every rank writes its part to every other one directly, in two rounds
// for an all-reduce. Throws InputError naming file, offset and field.
ImportNotes import_chakra(const std::vector<std::string>& paths, const ImportOptions& options,
                          TrafficSink& sink);

// True for a file that begins as the ns-3-UB format does.
bool is_ns3ub(const std::string& path);

}  // namespace cm384::traces
