// What a study gives back, and how it is written: a table, JSON (the stable result.json) or CSV.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw/json.h"
#include "hw/machine.h"
#include "hw/units.h"

namespace cm384::studies {

// Counters of the whole run, for the `simulator` object. Wall time and memory are added by the writer.
struct SimulatorCounts {
  Time simulated{};
  std::uint64_t instructions = 0;  // retired by scalar cores
  std::uint64_t packet_hops = 0;   // one packet, acknowledgements included, crossing one link
  std::uint64_t events = 0;
  std::uint64_t memory_requests = 0;
  unsigned threads = 1;           // of the host, at most at a time
  std::uint64_t rtl_cycles = 0;   // clocked by Verilated chips
  std::uint64_t rtl_packets = 0;  // through them
  std::uint64_t damaged = 0;      // transmissions, by faults asked for
};

struct StudyResult {
  Json parameters =
      Json::object();         // every effective option; left empty, the command fills it from the options
  Json rows = Json::array();  // objects; values are numbers, strings, bools, null, or objects of these
  bool complete = true;       // false: interrupted, rows hold what is known so far
  bool passed = true;         // false: a check of the study failed; the command ends with exit code 1
  SimulatorCounts simulator;
  std::vector<std::string> input_files;  // traces, ELFs: the result records a hash of each
  std::vector<std::string> notes;        // lines under the table; also in result.json
};

// Facts of a finished run that the study does not know.
struct RunFacts {
  std::string study;
  std::uint64_t seed = 1;
  double wall_s = 0;
};

// The stable document, see docs.
Json to_document(const StudyResult& result, const hw::Machine& machine, const RunFacts& run);

// Rows as an aligned text table. A nested object `latency_us: {mean: 1}` becomes the column
// `latency_us.mean`.
std::string to_table(const Json& rows);
std::string to_csv(const Json& rows);

// One row as the columns of both have it: {"latency_us.mean": 1, "phases.send.mean_us": 51.0}.
Json flatten_row(const Json& row);

}  // namespace cm384::studies
