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

// Peaks of a rank's die: a kernel takes as long as the slower of the two.
struct Roofline {
  double operations_per_second = 0, bytes_per_second = 0;  // 0: not known
};

struct ImportOptions {
  int dies = 768;         // that the machine has; more nodes are refused
  std::vector<int> onto;  // die of the node met first, second, ...; empty: placed by locality
  std::string machine;    // its name, for errors
  int dies_per_node = 16;
  // Ids of nodes by die, rising, where the machine is made of the case: each node is its die.
  std::vector<std::int64_t> nodes;
  // ns-3-UB: priorities that are service classes of that machine, rising: the first is level 0. Empty: a
  // priority is its level.
  std::vector<int> priorities;
  CollectiveChoice collectives;  // Chakra: how they are written out
  std::string groups;            // Chakra: file of communicator groups (collective_parts.h)
  // Chakra: what a compute node without a duration takes, or every one with operations.
  Roofline roofline{};
  bool roofline_always = false;
  bool concurrent_kernels = false;  // Chakra: kernels of one stream do not wait for each other
  bool strict = false;              // what is not taken is refused
  Time time_unit{};                 // of formats that do not say theirs; 0: not told
  std::int64_t bytes = 0;           // MSCCL: of the buffer that the schedule's chunks make up; 0: not told
};

// A rank's part in a collective, and between which records of the trace it lies.
struct ImportedCollective {
  std::size_t collective = 0;  // the same number for all ranks that meet
  std::string name;
  std::int64_t bytes = 0;  // that the rank puts in; 0: not known, or nothing
  std::int64_t rank = 0;
  std::uint64_t begin_record = 0, end_record = 0;
  double begin_us = 0, end_us = 0;  // as recorded, from the begin of the trace on
};

struct ImportResult {
  std::string placement;                              // the rule that made the mapping, for people
  std::vector<std::pair<std::int64_t, int>> mapping;  // die of each node or rank, by its number
  std::uint64_t records = 0;
  // Sentences about what was interpreted as something else, or looks wrong.
  std::vector<std::string> notes;
  // What stands in the files and has no effect, a line for each kind, with how often; strict imports refuse
  // it.
  std::vector<std::string> not_taken;
  std::vector<ImportedCollective> collectives;  // of timelines
};

// `traffic.csv` of ns-3-UB. A task begins its delay after all phases it names have finished; a phase has
// finished when all its tasks have. Priorities become service levels. Nodes of one leaf switch, as node.csv
// and topology.csv beside it say, or without these neighbours by number, are placed on dies of one node
// (node_placement.h); on a machine made of the case each node is a die. Throws InputError.
ImportResult import_ns3ub(const std::string& path, const ImportOptions& options, TrafficSink& sink);

// Chakra execution traces as ASTRA-sim reads them, one file a rank (chakra_reader.h says in which forms), in
// the order of the numbers in their names. Sends are writes to the receiver's memory; a receive waits for the
// send with its source, destination and tag, in order. Collectives of a communicator group are matched as
// collective_parts.h says and written out as the options say; those they do not name go directly between all
// pairs. Kernels of a stream run one at a time, as do host operators of a thread. Throws InputError naming
// file, offset or object, node and field.
ImportResult import_chakra(const std::vector<std::string>& paths, const ImportOptions& options,
                           TrafficSink& sink);

// A line a message: source, target, bytes, and as the header names them start_us, operation, after (numbers
// of earlier messages, from 0, that have to arrive first), delay_us. Throws InputError naming file, line and
// field.
ImportResult import_messages(const std::string& path, const ImportOptions& options, TrafficSink& sink);
// True for a file whose header is one of these.
bool is_message_list(const std::string& path);

// A connection matrix of htsim: "0->1 id 3 start 0 size 2000000", with triggers. Times take
// options.time_unit, since htsim's programs take them differently. Throws InputError naming file, line and
// word.
ImportResult import_htsim(const std::string& path, const ImportOptions& options, TrafficSink& sink);

// A GOAL schedule as LogGOPSim reads it: ranks with calc (ns), send and recv, and what requires what.
// Calculations of a cpu run one at a time. Throws as import_htsim() does.
ImportResult import_goal(const std::string& path, const ImportOptions& options, TrafficSink& sink);

// A workload of SimAI, one iteration: the forward pass of all layers, then the backward pass from the last
// one, whose gradients are reduced beside it. Sizes are those of a rank's input; times are ns. Throws as
// import_htsim() does.
ImportResult import_simai(const std::string& path, const ImportOptions& options, TrafficSink& sink);

// An algorithm of MSCCL in XML: thread blocks of ranks whose steps send and receive chunks. Throws InputError
// naming file, rank, thread block and step.
ImportResult import_msccl(const std::string& path, const ImportOptions& options, TrafficSink& sink);

// What NCCL (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,COLL) or HCCL logged of its calls: each rank's in the
// order of its log, those of a stream one behind the other; a file may hold several ranks. Throws InputError
// naming file, line and field.
ImportResult import_log(const std::vector<std::string>& paths, const ImportOptions& options,
                        TrafficSink& sink);

// True for a file that begins as the ns-3-UB format does.
bool is_ns3ub(const std::string& path);

}  // namespace cm384::traces
