// Open-loop traffic between all dies of a machine over its fabric: no cores and no memory behind the ports,
// so that what is seen is the fabric's own.
#pragma once

#include <csignal>
#include <functional>
#include <vector>

#include "hw/machine.h"
#include "studies/switch_pattern.h"

namespace cm384::studies {

struct TrafficCase {
  const Destinations* destinations = nullptr;
  double offered_GBps = 0;  // of payload, per die; times between messages are exponential
  bool writes = true;       // or reads
  int bytes = 512;          // of a message, in requests of at most 512 B
  Time warm_up, measured;   // messages created in `measured`, after warm_up, count
  Time drain;               // how long they are waited for then
  std::uint64_t seed = 1;
  unsigned threads = 1;
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
  std::vector<TrafficMessage> messages;  // counted ones, by source and time
  double created_GBps = 0;               // of payload, per die, while measured
  double accepted_GBps = 0;  // the same of what was completed; the time is later by the least latency
  std::uint64_t events = 0, packet_hops = 0;
  Time simulated;
  bool complete = true;  // not interrupted
};

// Throws InputError where the machine's values do not fit together.
TrafficReading run_traffic(const hw::Machine& machine, const TrafficCase& setting);

}  // namespace cm384::studies
