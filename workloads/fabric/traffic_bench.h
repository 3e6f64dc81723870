// Open-loop traffic between all dies of a machine over its fabric: no cores and no memory behind the ports,
// so that what is seen is the fabric's own.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "hw/machine.h"
#include "system/machine/threads_what_if.h"
#include "workloads/fabric/switch_pattern.h"

namespace cm384::studies {

struct TrafficCase {
  const Destinations* destinations = nullptr;
  double offered_GBps = 0;  // of payload, per die that sends; times between messages are exponential
  bool writes = true;       // or reads
  int bytes = 512;          // of a message, in requests of at most 512 B
  // What dies of service levels 0, 1, .. offer, as a multiple of offered_GBps; the last one holds for the
  // rest.
  std::vector<double> level_loads{1};
  // Before messages count: a window of this length, and further ones until two in a row agree, at most
  // `windows`.
  Time warm_up{};
  int windows = 8;
  bool warm_translation = true;  // translation caches begin with the pages that the traffic uses
  Time measured{};               // messages created in it count
  Time drain{};                  // how long they are waited for then, at most, while the traffic goes on
  std::uint64_t seed = 1;
  unsigned threads = 1;
  std::string threads_why = "asked for";  // where that number is from
  unsigned what_if_threads = 0;           // as of a StudyContext
  const volatile std::sig_atomic_t* interrupted = nullptr;
  std::function<void(Time, std::uint64_t)> progress{};
};

struct TrafficMessage {
  int source = 0, destination = 0;
  Time created;
  Time arrived = Time::never();    // its last byte at the target (writes) or back (reads); never: not in time
  Time completed = Time::never();  // its last response
};

struct TrafficReading {
  std::vector<TrafficMessage> messages;  // all that were created while measured, by source and time
  Time began, ended;         // of what was measured; of the run: how long the unfinished were waited for
  double created_GBps = 0;   // of payload, per die that sends, while measured
  double accepted_GBps = 0;  // the same of what was completed; the time is later by the least latency
  // Half width of the 95 % confidence interval of created less accepted: from the differences in twenty parts
  // of the measured time.
  double accepted_ci95_GBps = 0;
  double miss_share = 0;  // walks of translation tables per request issued while measured, by all dies
  std::uint64_t events = 0, packet_hops = 0;
  Time simulated;
  unsigned threads = 1;  // that ran the fabric's modules, and why so many
  std::string threads_why;
  supernode::ThreadsWhatIf what_if{0};
  bool complete = true;  // not interrupted

  // Of every message, to its arrival and to its completion; of those that were not in time, until the run
  // ended.
  std::vector<double> latencies_us() const;
  std::vector<double> completions_us() const;
  std::size_t unfinished() const;
  // Of the dies of each service level that there is, as of all; `offered` is what one of them was to create.
  // Of one level alone: empty.
  struct OfLevel;
  std::vector<OfLevel> levels;
  // Accepted is less than created by more than its interval and by more than half a percent, or a message was
  // never finished.
  bool saturated() const;
};

struct TrafficReading::OfLevel {
  int level = 0;
  double offered_GBps = 0;
  TrafficReading reading;
};

// Throws InputError where the machine's values do not fit together.
TrafficReading run_traffic(const hw::Machine& machine, const TrafficCase& setting);

}  // namespace cm384::studies
