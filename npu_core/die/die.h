// One die: its memory, cores, devices and transactions, with one time-ordered event queue. It does not know
// which network is outside its socket.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "base/engine/event_queue.h"
#include "base/engine/transaction.h"
#include "hw/parameters/die.h"
#include "hw/parameters/memory.h"
#include "hw/parameters/scalar_core.h"
#include "hw/parameters/scheduler.h"
#include "hw/parameters/sdma.h"
#include "hw/parameters/vector_core.h"
#include "npu_core/accelerator.h"
#include "npu_core/cluster/core_cluster.h"
#include "npu_core/devices/devices.h"
#include "npu_core/die/launch.h"
#include "npu_core/die/memory_system.h"
#include "npu_core/die/transactions.h"

namespace cm384::npu {

// Parts of the machine description a die is made from; they must outlive it.
struct DieParameters {
  const hw::Die& die;
  const hw::Scheduler& scheduler;
  const hw::Sdma& sdma;
  const hw::ScalarCoreParameters& scalar;
  const hw::VectorCore& vector;
  const hw::Mte& mte;
  const hw::CubeCore& cube;
  const hw::Mte& cube_mte;
  const hw::Memory& memory;
};

struct DieOptions {
  AivOptions aiv;
  bool cube_cores = false;  // from the start; else they come with the first launch that uses one
};

class Die final : public Accelerator {
 public:
  Die(int number, const DieParameters& parameters, const DieOptions& options, sim::PayloadPool& payloads,
      DieListener& listener, Time& last_progress);
  ~Die() override;

  // The parts of the die.
  MemorySystem& memory_system() { return memory_system_; }
  const MemorySystem& memory_system() const { return memory_system_; }
  CoreCluster& cluster() { return cluster_; }
  const CoreCluster& cluster() const { return cluster_; }
  Devices& devices() { return devices_; }
  Transactions& transactions() { return transactions_; }
  // Parts of these that are used most.
  TaskScheduler& scheduler() { return devices_.scheduler(); }
  DieMemory& memory() { return memory_system_.timing(); }

  // What the parts share.
  const DieParameters& parameters() const { return parameters_; }
  const Clock& clock() const { return clock_; }
  std::uint64_t sys_count(Time at) const;
  DieListener& listener() { return listener_; }
  sim::PayloadPool& payloads() { return payloads_; }
  Time now() const { return queue_.now(); }
  // For hang detection: something began that is no repetition of what was done just before.
  void progressed() { last_progress_ = std::max(last_progress_, now()); }
  // Sends a request to memory outside the die.
  void submit(const sim::Request& request);

  // Puts a kernel into the default stream at `at` (not before now()), whose tasks run one after another in
  // the order given. Throws as CoreCluster::prepare().
  std::uint32_t launch(LaunchRequest request, Time at);
  // A new launch number, for a kernel that a stream will launch.
  std::uint32_t new_launch() { return launches_++; }
  // From now on writes into the log everything that decides what waited for what. Before the first launch.
  // `requests`: logs every request too.
  void keep_log(TraceLog& log, bool requests);

  // Accelerator. Units of its events: cores count from 0. Transfers go by the data path of the SDMA engine,
  // without a descriptor.
  int number() const override { return number_; }
  sim::EventQueue& queue() override { return queue_; }
  void handle(const sim::Event& event) override;
  void connect(sim::RemotePort& port) override { port_ = &port; }
  BackingStore& store() override { return memory_system_.store(); }
  std::uint64_t allocatable() const override { return memory_system_.allocatable(); }
  void transfer(const Transfer& transfer) override;
  sim::Probe<sim::TransactionId>& transfer_issued() override { return devices_.sdma().issued; }
  void follow() override { transactions_.follow(); }
  std::uint64_t instructions() const override { return cluster_.instructions(); }
  std::uint64_t memory_requests() const override;
  void declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const override;
  std::string report() const override { return devices_.report() + cluster_.report(); }
  void expect_completion(std::uint16_t core, std::uint32_t tag) const override {
    cluster_.expect_completion(core, tag);
  }
  void expect_access(std::uint64_t offset) const override { memory_system_.expect(offset); }
  void completed(const sim::Completion& completion, Time at) override;
  Time access(sim::Request& request, sim::Outcome& outcome) override {
    return memory_system_.serve(request, outcome);
  }

 private:
  int number_;
  DieParameters parameters_;
  Clock clock_, sys_clock_;
  sim::EventQueue queue_;
  sim::PayloadPool& payloads_;
  DieListener& listener_;
  Time& last_progress_;
  sim::RemotePort* port_ = nullptr;
  std::uint32_t launches_ = 0;
  Transactions transactions_;
  MemorySystem memory_system_;
  Devices devices_;
  CoreCluster cluster_;
};

}  // namespace cm384::npu
