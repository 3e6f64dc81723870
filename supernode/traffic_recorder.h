// Records every transaction of a machine into a traffic trace.
//
// A transaction is written once it is complete, in the order in which transactions began. What is held grows
// with what is under way, not with the length of the run.
#pragma once

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "supernode/supernode.h"
#include "traces/traffic.h"

namespace cm384::supernode {

class TrafficRecorder {
 public:
  // Attaches to a machine before its first launch. Machine and sink outlive the recorder's use.
  TrafficRecorder(Supernode& machine, traces::TrafficSink& sink);
  TrafficRecorder(const TrafficRecorder&) = delete;
  TrafficRecorder& operator=(const TrafficRecorder&) = delete;

  // Writes what is left; what is not complete ends at the machine's present time.
  void finish();
  std::uint64_t records() const { return next_; }

 private:
  struct Pending {
    traces::TrafficRecord record;
    bool complete = false;
  };
  // Numbers of a die's records, by the sequence in their ids; what lies too far back is dropped.
  struct Numbers {
    std::uint64_t first = 1;
    std::deque<std::uint64_t> of;
  };

  void begun(const npu::TransactionBegun& t);
  void completed(const npu::TransactionCompleted& t);
  void joined(const npu::JoinedAt& j);
  void launch_given(int die, std::uint32_t launch);
  traces::TrafficRecord& append(sim::TransactionId id);
  void add(traces::TrafficRecord& record, std::span<const npu::Dependency> dependencies,
           std::uint64_t number);
  // Number of the record of a transaction; false where it is none, or too far back.
  bool number_of(sim::TransactionId id, std::uint64_t& number) const;
  void flush();

  Supernode& machine_;
  traces::TrafficSink& sink_;
  std::vector<Numbers> numbers_;  // by die
  std::deque<Pending> pending_;   // from the first that is not complete
  std::uint64_t next_ = 0;        // number of the next record
  // The host gives launches once it has seen others end.
  std::vector<std::pair<std::uint64_t, Time>> ended_;  // since it gave the last ones
  struct Host {
    std::uint64_t number = 0;
    Time at;
  };
  std::map<std::pair<int, std::uint32_t>, Host> given_;  // by die and launch, not begun yet
  Host host_;
  bool host_saw_ends_ = false;
};

}  // namespace cm384::supernode
