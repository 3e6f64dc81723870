// A machine with dispatch, and where asked for combine, of all ranks set up: what measurements of the MoE
// operators share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traces/random.h"
#include "workloads/frame/session.h"
#include "workloads/moe/combine.h"
#include "workloads/moe/moe_case.h"

namespace cm384::studies {

using operators::RankTask;

// The CPU socket that drives a die.
int socket_of(int die, const hw::Topology& topology);

class MoeRun {
 public:
  // `sockets`: the CPUs of the ranks take part. `combine`: null where dispatch is all. The settings must
  // outlive this.
  MoeRun(const StudyContext& context, const DispatchCase& setting, const CombineCase* combine,
         std::string what, double progress_from, double progress_to, bool sockets = false);

  // Warm-up and counted iterations of one operator, the host waiting after each. [from, to] is their part of
  // this run's work.
  DispatchReading dispatch(double from = 0, double to = 1);
  DispatchReading combine(double from = 0, double to = 1);
  // Adds this run's counters. Called once, at its end.
  void count(SimulatorCounts& into) const { session_.count(into); }

  // For flows that run the operators in an order of their own.
  Session& session() { return session_; }
  const operators::Dispatch& dispatched() const { return dispatched_; }
  const operators::Combine& combined() const { return *combined_; }
  operators::Combine& combined() { return *combined_; }
  host::DeviceMemory& memory(int rank) { return memory_[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& dies() const { return dies_; }  // of each rank
  const reference::DispatchCase& layer() const { return case_; }
  const std::vector<std::uint16_t>& cores() const { return cores_; }
  // Starts a kernel on all ranks, each up to the setting's skew late.
  std::vector<host::LaunchHandle> launch(const std::vector<RankTask>& tasks,
                                         const std::shared_ptr<npu::Program>& program,
                                         const std::vector<std::uint16_t>& cores, traces::Random& skew);
  // For the progress display: about the time of one operator, a row after the other, some microseconds each.
  Time about_an_operator() const;
  // Of the outputs of both operators from their references; payload mode full.
  std::string difference() const;
  // Of quantised rows and sums alone, where no dispatch told what else it delivers.
  std::string difference_of_rows() const;
  bool full() const { return setting_.full; }
  // A reading with the effective sizes filled in.
  template <class Reading>
  Reading begin_reading() const {
    Reading reading;
    static_cast<RoutedSetting&>(reading) = routed_setting(case_);
    return reading;
  }

 private:
  DispatchReading measure(const operators::Collective& what, int last_phase, double from, double to);
  std::uint64_t skipped_polls();
  std::uint64_t bytes_by_rdma();  // written so far

  const DispatchCase& setting_;
  std::uint64_t seed_;
  std::vector<int> dies_;  // of each rank
  reference::DispatchCase case_;
  Session session_;
  std::vector<std::uint16_t> cores_;
  operators::RankMemory memory_;
  operators::Dispatch dispatched_;
  std::optional<operators::Combine> combined_;
  std::optional<CopiesBeside> beside_;
};

}  // namespace cm384::studies
