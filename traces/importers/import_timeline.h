// Timelines of the vendor's profiler (Chrome trace JSON, one file a rank): operators as time without traffic
// between collectives.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "traces/import.h"

namespace cm384::traces {

// What the operators whose names begin with a prefix move; a timeline does not say how much.
struct TimelineMessage {
  std::string prefix;
  CollectiveKind kind{};
  std::int64_t bytes = 0;
};

// Lines "name,collective,bytes" after a header of these names. Throws InputError.
std::vector<TimelineMessage> timeline_messages(const std::string& path);

// Events with "ph": "X" and a duration, in the order of their start: those that a message's prefix names are
// the k-th collective of all ranks, the others take their duration, as does the time between two events.
// Events of several threads that overlap are taken as one span. Throws InputError naming file and event.
ImportResult import_timelines(const std::vector<std::string>& paths,
                              const std::vector<TimelineMessage>& messages, const ImportOptions& options,
                              TrafficSink& sink);

}  // namespace cm384::traces
