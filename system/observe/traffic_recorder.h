// Records every transaction of a machine into a traffic trace.
//
// A transaction is written once it is complete, in the order in which transactions began. What is held grows
// with what is under way, not with the length of the run. All of that happens in a thread of its own: the
// simulation only writes a log.
#pragma once

#include <vector>

#include "npu_core/causality/trace_log_reader.h"
#include "system/machine/supernode.h"
#include "system/observe/trace_thread.h"
#include "traces/traffic.h"

namespace cm384::observe {

class TrafficRecorder final : private npu::CausalityListener {
 public:
  // Attaches to a machine before its first launch. Machine and sink outlive the recorder's use; the sink is
  // written to in another thread until finish().
  TrafficRecorder(supernode::Supernode& machine, traces::TrafficSink& sink);
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
  // Numbers of a die's records, by the sequence in their ids, in a ring; what lies too far back is dropped.
  struct Numbers {
    std::uint64_t first = 1, last = 1;  // of those kept; the last one is not
    std::vector<std::uint64_t> ring;    // a power of two
    std::uint64_t& at(std::uint64_t sequence) { return ring[sequence & (ring.size() - 1)]; }
    std::uint64_t at(std::uint64_t sequence) const { return ring[sequence & (ring.size() - 1)]; }
    void grow();
  };

  void transaction_begun(const npu::TransactionBegun& t) override;
  void transaction_completed(const npu::TransactionCompleted& t) override;
  void joined(const npu::JoinedAt& j) override;
  void host_point(const npu::HostPoint& point) override;
  traces::TrafficRecord& append(sim::TransactionId id);
  void add(traces::TrafficRecord& record, std::span<const npu::Dependency> dependencies,
           std::uint64_t number);
  // Number of the record of a transaction; false where it is none, or too far back.
  bool number_of(sim::TransactionId id, std::uint64_t& number) const;
  Pending& pending(std::uint64_t number) { return pending_[number & (pending_.size() - 1)]; }
  void flush();

  supernode::Supernode& machine_;
  traces::TrafficSink& sink_;
  std::vector<Numbers> numbers_;  // by die
  std::vector<Pending> pending_;  // a ring, a power of two; entries keep their memory
  std::uint64_t written_ = 0;     // to the sink
  std::uint64_t next_ = 0;        // number of the next record
  // The machine was last idle.
  std::uint64_t idle_ = 0;
  Time idle_at_;
  npu::TraceLogReader reader_;
  TraceThread log_;  // the last: its thread uses the others
};

}  // namespace cm384::observe
