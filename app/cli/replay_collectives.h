// A replay's collectives against when they were recorded (traces/importers/imported_collectives.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/text/json.h"
#include "traces/import.h"
#include "traces/traffic.h"

namespace cm384::cli {

class ReplayCollectives {
 public:
  // Throws InputError.
  explicit ReplayCollectives(const std::string& path);

  // A record of the trace, by its number, with the times of the replay.
  void finished(std::uint64_t number, const traces::TrafficRecord& record, Time start, Time end);
  // `rows`: of each collective, the time from when the last rank was there until the last one was done; of
  // all ranks, time in collectives and how much of it lies beside other work.
  Json result() const;

 private:
  struct Span {
    Time begin, end;
  };
  struct Moment {
    std::size_t part = 0;
    bool begins = false, ends = false;
  };
  std::vector<traces::ImportedCollective> parts_;
  std::vector<Span> times_;                               // of each part, in the replay
  std::map<std::uint64_t, std::vector<Moment>> moments_;  // by record
  std::map<std::uint16_t, std::vector<Span>> work_;       // by die: time without traffic
  std::vector<std::uint16_t> dies_;                       // of each part
};

// The table of result(): the first rows, and the sums.
std::string text_of_collectives(const Json& result);

}  // namespace cm384::cli
