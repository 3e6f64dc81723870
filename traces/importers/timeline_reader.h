// Timelines of profilers: Chrome trace JSON of PyTorch (Kineto) and of Ascend (trace_view.json), packed by
// gzip or not, and Ascend's tables of kernels (kernel_details.csv, op_summary.csv) and communication
// (communication.json).
// The file is read event by event; only what ran on the device is kept.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "traces/collectives.h"

namespace cm384::traces {

using TimelineUs = long double;  // profilers count from 1970: 51 bits before the point

// What an event tells of the collective that it is.
struct TimelineCollective {
  CollectiveKind kind{};
  std::string group;                // empty: not told
  std::vector<std::int64_t> ranks;  // of the group; empty: not told
  std::int64_t group_size = 0;      // 0: not told
  // Bytes, by one of two: what the rank puts in, or elements that the vendor's interface counts, of which a
  // reduce-scatter or all-to-all has one such count for each rank. None: it is not told how much.
  std::optional<std::int64_t> input, counted;
  std::optional<std::int64_t> sent;  // or what the rank sent to others
  bool uneven = false;               // its parts are given one by one
  std::vector<std::int64_t> splits;  // how it is split among the ranks of the group, in any unit
};

// A send or a receive, as PyTorch tells it.
struct TimelineSend {
  bool receives = false;
  std::int64_t other = 0;  // number of the other rank
  std::int64_t bytes = 0;
  std::string group;
};

struct TimelineEvent {
  std::string_view name;  // of Timeline::names
  TimelineUs begin_us = 0, end_us = 0;
  std::uint32_t lane = 0;     // stream or thread, in the order met
  std::uint64_t number = 0;   // in the file
  bool communicates = false;  // by its name or its arguments
  // Set for a collective or a message; null for all other events.
  std::shared_ptr<const TimelineCollective> collective;
  std::shared_ptr<const TimelineSend> message;
};

struct Timeline {
  std::vector<TimelineEvent> events;  // by their begin
  // Of events, each once: a file has millions of events, and few names, which are long.
  std::shared_ptr<std::set<std::string>> names = std::make_shared<std::set<std::string>>();
  std::vector<std::string> lanes;    // names
  std::optional<std::int64_t> rank;  // that the file says it is of
  std::string chosen;                // which events were taken, for people
  std::uint64_t left_out = 0;        // events of the host, and annotations
  std::uint64_t around_others = 0;   // events of a lane that hold others of it, which count for them
  std::uint64_t unfinished = 0;      // begun and not ended
  std::uint64_t asynchronous = 0;    // of no stream: "b" with "e"
};

// Of events with "ph": "X", and "B" with "E", in any order: those of kernels and copies by their category,
// else those of the processes that Ascend's profiler has for hardware and communication, else all; of a
// table, all lines. Throws InputError naming file and event or line.
Timeline read_timeline(const std::string& path);

}  // namespace cm384::traces
