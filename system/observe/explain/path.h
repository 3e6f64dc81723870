// A moment of a run with the way that led there: how long the critical path to it spent on what, and how much
// earlier it would have been with each resource twice as fast.
//
// The machine as a timed event graph in max-plus algebra, evaluated once for every resource while it is read:
// what a resource takes adds to a path, and half of it to the resource's gain; where two paths meet, the
// later one counts, in the run as it was and, by itself, in each of those that were not.
//
// One more evaluation, that of Resource::none, has nothing faster: it is the run again as the graph has it.
// What the graph leaves out is missing there as well as in the others, so a prediction is the difference of
// two evaluations, never of an evaluation and the run.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/text/units.h"

namespace cm384::observe {

// What time on the critical path was spent on.
enum class Part : std::uint8_t {
  host,
  launch,
  scalar,
  fetch,
  load,
  vector,
  cube,
  l0_load,
  fixpipe,
  copy_issue,
  l2,
  port,
  contention,
  hbm,
  write_interval,
  read_interval,
  translation,
  die_link,
  socket_link,
  trunk,
  credit,
  wire,
  inbound,
  target_interval,
  package,
  fabric_wait,
  barrier,
  core_flag,
  poll,
  sdma,
  other,
  count
};
std::string_view name_of(Part part);

// What could be made twice as fast, or twice as large. `none`: nothing is.
enum class Resource : std::uint8_t {
  none,
  host,
  launch,
  scalar,
  fetch,
  vector,
  cube,
  l0_load,
  fixpipe,
  copy_issue,
  l2,
  port,
  hbm,
  write_interval,
  read_interval,
  translation,
  link,  // of all tiers
  die_link,
  socket_link,
  trunk,
  buffers,
  wire,
  inbound,
  target_interval,
  package,
  barrier,
  core_flag,
  count
};

struct ResourceText {
  std::string_view name;
  std::vector<std::string_view> slower;  // parameters that are halved: times, cycles; `*` is any section
  std::vector<std::string_view> faster;  // that are doubled: rates
};
// Text and parameters of a resource other than `none`.
const ResourceText& text_of(Resource resource);
// What would shorten a part; `none`: nothing that has parameters.
Resource resource_of(Part part);

inline constexpr std::size_t kParts = static_cast<std::size_t>(Part::count);
inline constexpr std::size_t kResources = static_cast<std::size_t>(Resource::count);

class Path {
 public:
  double at = 0;                          // ps since the run began
  std::array<double, kResources> gain{};  // ps; of Resource::none: what the graph leaves out
  std::array<float, kParts> spent{};      // ps, by part

  // When the moment comes in an evaluation, ps.
  double time(Resource resource) const { return at - gain[static_cast<std::size_t>(resource)]; }
  void add(double ps, Part part, Resource resource, Resource too = Resource::none) {
    at += ps;
    spent[static_cast<std::size_t>(part)] += static_cast<float>(ps);
    if (resource != Resource::none) gain[static_cast<std::size_t>(resource)] += ps / 2;
    if (too != Resource::none) gain[static_cast<std::size_t>(too)] += ps / 2;
  }
  // Not before the other one.
  void join(const Path& other) {
    const double latest = std::max(at, other.at);
    const double late = latest - at, others = latest - other.at;
    for (std::size_t k = 0; k < kResources; ++k) gain[k] = std::min(gain[k] + late, other.gain[k] + others);
    if (other.at > at) spent = other.spent;
    at = latest;
  }
  // Was at `when` in the run: what is not known before then is the part's.
  void meet(double when, Part part, Resource resource) {
    if (when > at) {
      add(when - at, part, resource);
    } else {
      spent[static_cast<std::size_t>(Part::other)] += static_cast<float>(when - at);
      at = when;
    }
  }
};

}  // namespace cm384::observe
