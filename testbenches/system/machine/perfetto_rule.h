// What Perfetto drops of a timeline: its rule for slices of a lane, on the file as it stands.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cm384 {

// A time of the file in nanoseconds: a double of microseconds times a thousand, cut off.
template <class Json>
std::int64_t read_as_ns(const Json& microseconds) {
  return static_cast<std::int64_t>(microseconds.template get<double>() * 1000.0);
}

// Slices that begin within another one of their lane and end after it, "name at begin"; each is dropped.
template <class Json>
std::vector<std::string> slices_perfetto_drops(const Json& timeline) {
  struct Slice {
    std::int64_t begin, end;
    std::string name;
  };
  std::map<std::pair<int, int>, std::vector<Slice>> lanes;
  for (const Json& e : timeline.at("traceEvents")) {
    if (e["ph"] != "X") continue;
    const std::int64_t begin = read_as_ns(e["ts"]);
    lanes[{e["pid"].template get<int>(), e["tid"].template get<int>()}].push_back(
        {begin, begin + read_as_ns(e["dur"]), e["name"].template get<std::string>()});
  }
  std::vector<std::string> dropped;
  for (auto& [lane, slices] : lanes) {
    std::ranges::stable_sort(slices, [](const Slice& a, const Slice& b) {
      return std::pair(a.begin, -a.end) < std::pair(b.begin, -b.end);
    });
    std::vector<std::int64_t> open;  // ends
    for (const Slice& slice : slices) {
      while (!open.empty() && open.back() <= slice.begin) open.pop_back();
      if (!open.empty() && slice.end > open.back()) {
        dropped.push_back(fmt::format("{} at {} ns", slice.name, slice.begin));
        continue;
      }
      open.push_back(slice.end);
    }
  }
  return dropped;
}

}  // namespace cm384
