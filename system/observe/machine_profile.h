// Follows one machine while it runs, for profile.json (profile.h).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/engine/statistics.h"
#include "base/text/json.h"
#include "system/machine/supernode.h"

namespace cm384::observe {

class MachineProfile {
 public:
  // `dies`: of each rank. The machine outlives the profile's use.
  MachineProfile(supernode::Supernode& machine, std::string what, std::vector<int> dies,
                 const std::vector<int>& sockets);

  // What a kernel's phases are called, from 0, by the name of its image.
  void name_phases(std::string_view kernel, std::span<const std::string_view> phases);
  // Launches that get this block of arguments are a stage of their kernel's, told apart from its others.
  void name_stage(std::uint64_t arguments, std::string stage) { stages_[arguments] = std::move(stage); }

  // Once a microsecond of simulated time.
  void sample(Time now);
  // Discards what was counted before: it was warm-up. Requires an idle machine.
  void begin_counted(Time now);
  Json to_json() const;  // one entry of `runs`

 private:
  struct Counter {
    std::function<std::uint64_t()> read;
    std::size_t owner = 0;  // the die, node or socket, for `highest`
    int plane = 0, column = 0, l2 = -1;
    std::uint64_t before = 0;   // at the last sample
    double ahead = 0;           // ps that were booked before they pass
    std::uint64_t counted = 0;  // at the begin of what counts
  };
  // Equal parts: one pattern.
  struct Group {
    std::string pattern;
    double ps_a_unit = 1;
    bool booked_at_end = false;  // of an instruction; everything else is booked when it is granted
    std::vector<int> parts;      // of each owner
    std::vector<Counter> counters;
    std::vector<std::vector<float>> samples;  // share of each owner's parts, summed
  };

  // A kernel, or one of its stages, as a launch names it.
  struct Kernel {
    std::string name, stage;
    bool operator==(const Kernel&) const = default;
  };
  struct Launch {
    int rank = 0;
    std::size_t kernel = 0;  // of kernels_
    npu::LaunchRecord record;
  };

  void add_counters(const sim::Statistics& part, const std::vector<int>& sockets);
  void launch_ended(int die, const npu::LaunchRecord& record);
  static void sample(Group& group, double elapsed);
  void coarsen();
  static Json busy_of(const Group& group);
  Json links_of(const Group& group, Time counted_to) const;
  std::size_t kernel_of(const npu::LaunchRecord& record);
  Json kernels() const;
  Json launches() const;

  supernode::Supernode& machine_;
  std::string what_;
  std::vector<int> dies_;
  std::vector<bool> nodes_;  // that have a rank
  std::deque<Group> groups_;
  int stride_ = 1;  // microseconds between samples: long runs get coarser ones
  int skipped_ = 0;
  Time last_sample_, counted_from_, counted_to_;
  std::vector<Launch> launches_;                                         // in order of their ends
  std::vector<Kernel> kernels_;                                          // in order of their first ends
  std::map<std::string, std::vector<std::string>, std::less<>> phases_;  // by kernel
  std::unordered_map<std::uint64_t, std::string> stages_;                // by arguments; looked up only
};

}  // namespace cm384::observe
