#include "testbenches/runs/plane_scenarios.h"

#include "firmware/abi/memory_map.h"
#include "system/host/runtime.h"
#include "system/machine/inventory.h"
#include "system/machine/supernode.h"
#include "testbenches/system/machine/study_stand.h"
#include "workloads/kernels/unit_run.h"
#include "workloads/moe/expert_messages_run.h"

namespace cm384::testing {

std::map<std::string, double> run_rdma_scenario(const std::vector<std::string>& changes) {
  const hw::Machine machine = hw::load_machine(std::string(hw::kDefaultMachine), changes);
  supernode::SupernodeOptions options;
  const int last = machine.topology.dies() - 1;
  options.dies = {0, 2, 40, 700, last};
  options.rdma = true;
  supernode::Supernode supernode(machine, options);
  host::Runtime runtime(supernode);
  constexpr std::uint64_t kLong = 1 << 20;
  std::map<int, std::uint64_t> memory;
  std::map<int, host::Stream> streams;
  for (const int die : options.dies) {
    memory[die] = runtime.allocate(die, 4 * kLong);
    streams[die] = runtime.create_stream(die);
  }
  const auto copy = [&](int from, int to, std::uint64_t bytes) {
    return runtime.memcpy_async(streams[0], memory[to], memory[from], bytes, host::Plane::rdma);
  };
  const auto near = copy(0, 40, 4096), far = copy(0, 700, 4096);
  const auto write = copy(0, 40, kLong), read = copy(40, 0, kLong), far_write = copy(0, 700, kLong);
  runtime.wait();
  for (const int die : {0, 40, 700})
    runtime.memcpy_async(streams[die], memory[2] + static_cast<std::uint64_t>(die), memory[die], kLong,
                         host::Plane::rdma);
  runtime.wait();
  const auto apart = copy(0, last, 4096), apart_write = copy(0, last, kLong);
  runtime.wait();
  const auto span = [&](host::TaskHandle task) {
    const npu::SdmaRecord& r = runtime.task(task).record.copy;
    return (r.last_ack - r.translated).us();
  };
  double paused = 0;
  for (const int die : {0, 40, 700})
    paused += static_cast<double>(supernode.rdma_interface(die).counters().paused_ps) * 1e-6;
  const double bytes = kLong * 1e-3;
  return {{"near", span(near)},
          {"far", span(far)},
          {"write", bytes / span(write)},
          {"read", bytes / span(read)},
          {"far-write", bytes / span(far_write)},
          {"apart", span(apart)},
          {"apart-write", bytes / span(apart_write)},
          {"paused", paused}};
}

Time end_of_transfers(const hw::Machine& machine, const std::vector<npu::Transfer>& transfers, int other,
                      bool rdma) {
  supernode::SupernodeOptions options;
  options.dies = {0, other};
  options.rdma = rdma;
  supernode::Supernode supernode(machine, options);
  struct Ends {
    supernode::Supernode& machine;
    Time last;
  } ends{supernode, {}};
  supernode.follow_transactions();
  supernode.probes().transaction_completed.attach(&ends, [](void* self, const npu::TransactionCompleted& t) {
    auto& all = *static_cast<Ends*>(self);
    all.last = std::max(all.last, t.at);
    --all.machine.unfinished();
  });
  supernode.unfinished() += transfers.size();
  for (const npu::Transfer& transfer : transfers) supernode.accelerator(0).transfer(transfer);
  supernode.run();
  return ends.last;
}

std::map<std::string, double> run_transfer_scenario(std::vector<std::string> changes) {
  changes.insert(changes.begin(), "accelerator.kind=transfer-engine");
  const hw::Machine machine = hw::load_machine(std::string(hw::kDefaultMachine), changes);
  const std::uint64_t own = cm384_gm_die(0, 0), there = cm384_gm_die(2, 0);
  const auto end = [&](const std::vector<npu::Transfer>& transfers) {
    return end_of_transfers(machine, transfers).us();
  };
  std::vector<npu::Transfer> many;
  for (std::uint64_t n = 0; n < 64; ++n) many.push_back({there + n * 512, own + n * 512, 512, n + 1});
  return {{"read", end({{there, own, 512, 1}})},
          {"write", end({{own, there, 512, 1}})},
          {"many", end(many)},
          {"local", end({{own, own + (1 << 20), 1 << 20, 1}})},
          {"far", end({{own, there, 1 << 20, 1}})}};
}

std::map<std::string, double> run_messages_scenario(std::vector<std::string> changes) {
  for (const char* given : {"accelerator.kind=transfer-engine", "topology.supernodes=2", "topology.nodes=1",
                            "topology.dies_per_node=2"})
    changes.insert(changes.begin(), given);
  supernode::StudyStand stand;
  stand.machine = hw::load_machine(std::string(hw::kDefaultMachine), changes);
  studies::DispatchCase setting;
  setting.ranks = 4;
  setting.batch = 16;
  setting.experts = 16;
  setting.warmup = 0;
  const auto mean = [&](studies::ExchangeDirection direction) {
    studies::SimulatorCounts counts;
    return studies::measure_messages(stand.context(), setting, direction, counts).task_us.mean;
  };
  return {{"dispatch", mean(studies::ExchangeDirection::dispatch)},
          {"combine", mean(studies::ExchangeDirection::combine)}};
}

std::map<std::string, double> run_units_scenario(std::vector<std::string> changes) {
  for (const char* given : {"accelerator.kind=transfer-engine", "processor.fp8_tflops=800"})
    changes.insert(changes.begin(), given);
  const hw::Machine machine = hw::load_machine(std::string(hw::kDefaultMachine), changes);
  const auto time = [&](double operations, studies::NumberFormat format, bool attention) {
    studies::UnitOperator made;
    made.work.operations = operations;
    made.work.bytes = 1e6;
    made.format = format;
    made.attention = attention;
    return studies::unit_time_of(made, machine).task_us;
  };
  using enum studies::NumberFormat;
  return {{"bf16", time(1e12, bf16, false)},
          {"fp8", time(1e12, fp8, false)},
          {"int8", time(1e12, int8, false)},
          {"attention", time(1e12, bf16, true)},
          {"memory", time(0, bf16, false)},
          {"stacks", static_cast<double>(supernode::counted(machine, "hbm_stacks"))}};
}

}  // namespace cm384::testing
