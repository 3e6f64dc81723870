// The result of a study.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/text/units.h"
#include "system/machine/threads_what_if.h"
#include "workloads/frame/row.h"

namespace cm384::studies {

// Counters of the whole run, for the `simulator` object. Wall time and memory are added by the writer.
struct SimulatorCounts {
  Time simulated{};
  std::uint64_t instructions = 0;  // retired by scalar cores
  std::uint64_t packet_hops = 0;   // one packet, acknowledgements included, crossing one link
  std::uint64_t events = 0;
  std::uint64_t memory_requests = 0;
  // Threads of the host that ran modules side by side, of the machine that had most, and why so many.
  // 0: no machine was built.
  unsigned threads = 0;
  std::string threads_why{};
  // With --threads-what-if: that many, the events that they would share, and those of the busiest of them.
  unsigned what_if_threads = 0;
  std::uint64_t what_if_events = 0, what_if_longest = 0;
  std::uint64_t rtl_cycles = 0;   // clocked by Verilated chips
  std::uint64_t rtl_packets = 0;  // through them
  std::uint64_t damaged = 0;      // transmissions, by faults asked for
  std::uint64_t lost = 0;         // packets, in parts that went out of order at a time
  std::uint64_t resent = 0;       // requests, as they or their responses were lost there

  void count_threads(unsigned of_machine, std::string why) {
    if (of_machine <= threads) return;
    threads = of_machine;
    threads_why = std::move(why);
  }
  // How much faster than one thread they would be at most; where there were events.
  double what_if_speedup() const {
    return static_cast<double>(what_if_events) / static_cast<double>(what_if_longest);
  }
  void count_what_if(const supernode::ThreadsWhatIf& of_machine) {
    what_if_threads = of_machine.threads();
    what_if_events += of_machine.events();
    what_if_longest += of_machine.longest();
  }
};

struct StudyResult {
  Row parameters;        // every effective option; if empty, the command fills it from the options
  Rows rows;             // as the study's fields declare them (fields.h)
  bool complete = true;  // false: interrupted, rows hold what is known so far
  bool passed = true;    // false: a check of the study failed; the command ends with exit code 1
  SimulatorCounts simulator;
  std::vector<std::string> input_files;  // traces, ELFs: the result records a hash of each
  std::vector<std::string> files;        // names in the folder of --out that the study wrote
  std::vector<std::string> notes;        // lines under the table; also in result.json
};

}  // namespace cm384::studies
