// Timelines of profilers (timeline_reader.h), one file a rank: what ran on the device as time without
// traffic, collectives as messages.
#pragma once

#include <string>
#include <vector>

#include "traces/import.h"

namespace cm384::traces {

// What the operators whose names begin with a prefix move, for timelines that do not say how much.
struct TimelineMessage {
  std::string prefix;
  CollectiveKind kind{};
  std::int64_t bytes = 0;  // of the whole vector: of an all-gather or gather, of all ranks together
};

// Lines "name,collective,bytes" after a header of these names. Throws InputError.
std::vector<TimelineMessage> timeline_messages(const std::string& path);

// Each stream or thread of the device is a lane. What runs takes its duration; it begins behind what ended
// last before it: in its own lane, and in another one if that ended later, after the time that passed
// between. What nothing precedes begins at its recorded time. Collectives that `messages` name, or whose
// arguments say how much they move, are matched between ranks (collective_parts.h); others take their
// recorded time. Ranks are ordered by the number that the files tell, else by those in their names; their
// clocks are set by the ends of the collectives that they share, where these agree. Throws InputError naming
// file and event.
ImportResult import_timelines(const std::vector<std::string>& paths,
                              const std::vector<TimelineMessage>& messages, const ImportOptions& options,
                              TrafficSink& sink);

}  // namespace cm384::traces
