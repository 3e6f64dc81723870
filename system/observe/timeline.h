// A timeline of chosen dies as Chrome trace JSON, which Perfetto and chrome://tracing read: one process per
// die, and lanes as the vendor's profiler has them.
//
// A die has a lane of kernels and one of tasks (more where streams run several at once), one per stream, one
// per SDMA channel, two per UB port (out and in), and for each core SCALAR, VECTOR, MTE2, MTE3 and the
// kernel's phases; of a cube core CUBE, MTE1 and FIXP in place of VECTOR. A flag is an arrow from what set it
// to what waited for it. Lanes of streams, channels and cube cores come with their first use.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/text/output_file.h"
#include "system/machine/supernode.h"

namespace cm384::observe {

struct TimelineOptions {
  std::set<int> dies;   // empty: the first that takes part
  std::set<int> cores;  // empty: all
  Time from{}, to = Time::never();
};

class Timeline {
 public:
  // Attaches to a machine before its first launch.
  Timeline(supernode::Supernode& machine, const std::string& path, TimelineOptions options);
  ~Timeline();

  // What a kernel's phases are called, from 0; before they are shown.
  void name_phases(std::string_view kernel, std::span<const std::string_view> names);
  // Links whose packets the timeline shows.
  bool shows(const supernode::LinkName& link) const;
  void finish();

 private:
  friend class CoreLanes;
  static constexpr int kLanesOfACore = 8;  // SCALAR, VECTOR, CUBE, MTE1, MTE2, MTE3, FIXP, phases
  static constexpr int kKernels = 0, kTasks = 1, kFirstCore = 16;
  static constexpr int kFirstStream = 8'000, kFirstChannel = 9'000, kFirstPort = 10'000;

  void name_lane(int die, int lane, const std::string& name);
  // One slice, cut to the window; `arguments` is JSON within braces.
  void slice(int die, int lane, std::string_view name, Time begin, Time end, std::string_view arguments = {});
  // One end of an arrow, within a slice of its lane.
  void arrow(bool begins, std::uint64_t id, int die, int lane, Time at);
  void packet(const supernode::LinkPacket& packet);
  // Writes of cores from their first request until the last one is answered.
  void transaction_begun(const npu::TransactionBegun& t);
  void transaction_completed(const npu::TransactionCompleted& t);
  void watch_core(int die, int core);
  void launch_begun(int die, const npu::LaunchRecord& record);
  // "send", or "phase 1" where the kernel that runs on the die has no name for it.
  std::string phase_name(int die, int phase) const;
  // Arguments of a slice: where the instruction of a launch stands, "pc" and, where it is known, "code".
  std::string place_of(int die, std::uint32_t launch, std::uint64_t pc);
  void launch_ended(int die, const npu::LaunchRecord& record);
  void task_ended(int die, const npu::TaskRecord& record);
  void copy_ended(int die, const npu::SdmaRecord& record);
  // `first`, kKernels or kTasks, or a further lane of its kind: one where nothing lies since `begin`. For
  // slices in the order of their ends.
  int free_lane(int die, int first, const char* name, Time begin, Time end);
  // A lane that is named when it is first used.
  void name_once(int die, int lane, const std::string& name);
  void end_event();

  struct Burst {  // packets back to back on a port
    Time begin, end;
    std::uint64_t packets = 0, flits = 0;
  };
  void flush(int die, int lane, Burst& burst);

  supernode::Supernode& machine_;
  TimelineOptions options_;
  OutputFile file_;
  std::string text_;
  bool first_ = true;
  std::vector<std::unique_ptr<class CoreLanes>> cores_;
  std::map<std::pair<int, int>, Burst> ports_;  // by die and lane
  struct Write {
    int core = 0;
    Time begin;
    std::uint64_t address = 0, bytes = 0;
    std::uint8_t engine = 0;
  };
  std::unordered_map<sim::TransactionId, Write> writes_;                 // under way; looked up only
  std::map<std::string, std::vector<std::string>, std::less<>> phases_;  // their names, by kernel
  std::map<int, std::string> kernels_;                                   // that run, by die
  std::map<std::pair<int, int>, Time> ends_;  // of the last slice, by die and lane of kernels or tasks
  std::map<std::pair<int, std::uint32_t>, std::shared_ptr<const npu::ElfImage>> images_;  // by die and launch
  std::map<std::pair<const npu::ElfImage*, std::uint64_t>, std::string> places_;
  std::set<std::pair<int, int>> named_;  // by die and lane, of those named when used
  struct Copies {                        // of a die's SDMA engine
    Timeline* timeline = nullptr;
    int die = 0;
  };
  std::deque<Copies> copies_;
  std::uint64_t arrows_ = 0;
};

}  // namespace cm384::observe
