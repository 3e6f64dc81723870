#include "testbenches/runs/knob_scenarios.h"

#include <sstream>
#include <stdexcept>

#include "firmware/abi/kernel.h"
#include "hw/machine.h"
#include "npu_core/scalar/elf_image.h"
#include "system/host/runtime.h"
#include "system/machine/faults.h"
#include "system/machine/inventory.h"
#include "testbenches/runs/kernels/cube_knobs.h"
#include "testbenches/runs/kernels/knobs.h"
#include "testbenches/runs/machine_run.h"
#include "testbenches/runs/plane_scenarios.h"
#include "testbenches/system/machine/study_stand.h"
#include "ub_fabric/fault.h"
#include "workloads/fabric/copies.h"
#include "workloads/operators/rows/rows.h"

namespace cm384::testing {
namespace {

constexpr const char* kSections[] = {
    "loads",         "multiply",     "divide",     "float",     "float-divide", "float-root", "taken",
    "mispredict",    "trap",         "code",       "code-cold", "data",         "data-cold",  "ubuffer-load",
    "ubuffer-store", "clean",        "queue",      "read",      "reads",        "write",      "writes",
    "short-reads",   "short-writes", "cross-core", "barrier",   "sys-count"};

constexpr const char* kCubeSections[] = {
    "mmad",  "mmad-f32", "mmad-f16",     "mmad-s4",      "load-a",        "load-b",
    "table", "queue",    "fix",          "read",         "reads",         "short-reads",
    "write", "writes",   "short-writes", "remote-reads", "remote-writes", "remote-partial"};
static_assert(std::size(kCubeSections) == CM384_CUBE_KNOB_SECTIONS);

Outputs run_cube(const Changes& changes) {
  const hw::Machine machine = hw::load_machine(std::string(hw::kDefaultMachine), changes);
  supernode::SupernodeOptions options;
  options.dies = {0, 1};
  supernode::Supernode supernode(machine, options);
  host::Runtime runtime(supernode);
  cm384_kernel arguments{};
  arguments.scratch_bytes = std::uint64_t{1} << 20;
  arguments.scratch = runtime.allocate(0, arguments.scratch_bytes);
  const std::uint64_t block = runtime.allocate(0, sizeof arguments);
  runtime.put(block, arguments);
  runtime.launch(0, runtime.load(npu::ElfImage::read(CM384_CUBE_KNOBS_KERNEL)), block, {0},
                 runtime.earliest_start(), npu::KernelType::aic);
  runtime.wait();
  Outputs outputs;
  const auto words = runtime.get<std::uint64_t>(arguments.scratch, CM384_CUBE_KNOB_SECTIONS);
  for (std::size_t i = 0; i < words.size(); ++i) outputs[kCubeSections[i]] = static_cast<double>(words[i]);
  return outputs;
}

// Kernels of one row in a graph, which take less time than their set-up.
Outputs run_graph_scenario(const Changes& changes) {
  const studies::OpReading reading = run_operator(
      {.groups = 1, .graph = true, .iterations = 8, .warmup = 0},
      [] { return std::make_unique<operators::Rows>(reference::RowCase{.rows = 1, .width = 64}, 2); },
      changes);
  return {{"task", reading.task_us}, {"chain", reading.pace_us}};
}

Outputs run_gemm_scenario(const Changes& changes) {
  studies::GemmSetting setting;
  setting.group_rows = {128, 100};
  setting.n = 192;
  setting.k = 256;
  setting.blocks = 4;
  const studies::GemmReading reading = run_gemm(setting, changes);
  return {{"kernel", reading.kernel_us}, {"task", reading.task_us}};
}

Outputs run_wide_gemm(const Changes& changes) {
  studies::GemmSetting setting;
  setting.type = CM384_GEMM_BF16;
  setting.group_rows = {1024};
  setting.n = 512;
  setting.k = 1024;
  setting.blocks = 8;
  const studies::GemmReading reading = run_gemm(setting, changes);
  return {{"kernel", reading.kernel_us}, {"task", reading.task_us}};
}

// What 128 further copies of 4 KiB from 16 streams take.
Outputs run_copies_scenario(const Changes& changes) {
  supernode::StudyStand stand;
  stand.machine = hw::load_machine(std::string(hw::kDefaultMachine), changes);
  const auto latency = [&](Bytes volume) {
    studies::SimulatorCounts counts;
    studies::CopiesPoint point;
    point.blocks = {4_KiB};
    point.volume = volume;
    point.streams = 16;
    return studies::measure_copies(stand.context(), point, counts)->latency_us;
  };
  return {{"more", latency(1_MiB) - latency(512_KiB)}};
}

Outputs run_hits(int cores, const Changes& changes) {
  const auto passes = [&](std::uint32_t count) {
    return run_stream(
               studies::StreamShape{
                   .name = "hits", .block_count = 16, .block_bytes = 2048, .rows = 768, .passes = count},
               changes, cores)
        .kernel_us;
  };
  return {{"kernel", passes(8) - passes(4)}};
}

Outputs run_core(const Changes& changes) {
  const hw::Machine machine = hw::load_machine(std::string(hw::kDefaultMachine), changes);
  supernode::SupernodeOptions options;
  options.dies = {0};
  supernode::Supernode supernode(machine, options);
  host::Runtime runtime(supernode);
  cm384_kernel arguments{};
  arguments.scratch_bytes = std::uint64_t{256} << 20;
  arguments.scratch = runtime.allocate(0, arguments.scratch_bytes);
  const std::uint64_t block = runtime.allocate(0, sizeof arguments);
  runtime.put(block, arguments);
  const auto launch = runtime.launch(0, runtime.load(npu::ElfImage::read(CM384_KNOBS_KERNEL)), block,
                                     runtime.first_cores(machine.die.aiv), runtime.earliest_start());
  runtime.wait();
  Outputs outputs;
  const auto words = runtime.get<std::uint64_t>(arguments.scratch, CM384_KNOB_SECTIONS);
  for (std::size_t i = 0; i < CM384_KNOB_LOADS; ++i)
    outputs["vector" + std::to_string(i)] = static_cast<double>(words[i]);
  for (std::size_t i = CM384_KNOB_LOADS; i < CM384_KNOB_SECTIONS; ++i)
    outputs[kSections[i - CM384_KNOB_LOADS]] = static_cast<double>(words[i]);
  double sum = 0;
  for (int b = 0; b < machine.die.aiv; ++b)
    sum += static_cast<double>(runtime.get<std::uint64_t>(
        arguments.scratch + CM384_KNOB_MEMORY_OFFSET + static_cast<std::uint64_t>(b) * 64, 1)[0]);
  outputs["memory"] = sum;
  const npu::LaunchRecord& record = runtime.record(launch);
  outputs["kernel"] = (record.last_retired - record.first_instruction).us();
  outputs["task"] = (record.task_end - record.task_start).us();
  return outputs;
}

Outputs run_dispatch_scenario(const std::string& kind, const Changes& changes) {
  studies::DispatchCase setting = small_dispatch(12, 8, 512, 16);
  if (kind == "strided") setting.placement = "strided";
  if (kind == "twice") setting.warmup = 1;
  if (kind == "nodes") setting.placement = "0,1,2,3,4,5,16,17,18,19,20,21";
  const ub::Damage damage = kind == "lost" ? ub::Damage::lost : ub::Damage::corrupted;
  ub::RandomFault fault(0.05, damage, 3);
  if (kind == "lost" || kind == "corrupted") {
    setting.prepare = [&](supernode::Supernode& machine) {
      for (int p = 0; p < machine.parameters().topology.sub_planes; ++p)
        machine.plane(p).attach_fault(machine.plane(p).link_to_endpoint(5), &fault);
    };
  }
  if (kind == "broken") {
    setting.prepare = [](supernode::Supernode& machine) {
      supernode::Faults faults(machine);
      faults.attach(supernode::parse_fault("plane=3,node=0,kind=down,at=23us"));
      faults.apply_breaks();
    };
  }
  const studies::DispatchReading reading = run_dispatch(setting, changes);
  return {{"kernel", reading.kernel_us.mean}, {"task", reading.task_us.mean}};
}

// Copies by the SDMA engine of die 0: one, six in a stream, forty in streams of their own, a long one each
// way, three from an AICPU; and a barrier of two host threads.
Outputs run_streams(const Changes& changes) {
  const hw::Machine machine = hw::load_machine(std::string(hw::kDefaultMachine), changes);
  supernode::SupernodeOptions options;
  options.dies = {0, 2};
  supernode::Supernode supernode(machine, options);
  host::Runtime runtime(supernode);
  constexpr std::uint64_t kLong = 1 << 20;
  const std::uint64_t here = runtime.allocate(0, kLong), there = runtime.allocate(2, kLong);
  const auto first = runtime.create_stream(0);
  const auto copy = [&](host::Stream stream, std::uint64_t bytes) {
    return runtime.memcpy_async(stream, there, here, bytes);
  };
  const auto span = [&](host::TaskHandle from, host::TaskHandle to) {
    return (runtime.task(to).seen - runtime.task(from).called).us();
  };
  const auto bandwidth = [&](host::TaskHandle task) {
    const npu::SdmaRecord& r = runtime.task(task).record.copy;
    return static_cast<double>(kLong) / (r.last_ack - r.translated).us();
  };
  const auto one = copy(first, 4096);
  runtime.synchronize_device(0);
  std::vector<host::TaskHandle> chain, many, unfolded;
  for (int n = 0; n < 6; ++n) chain.push_back(copy(first, 4096));
  runtime.synchronize_device(0);
  for (int n = 0; n < 40; ++n) many.push_back(copy(runtime.create_stream(0), 4096));
  runtime.synchronize_device(0);
  unfold_on_device(runtime, 0, [&] {
    for (int n = 0; n < 3; ++n) unfolded.push_back(copy(first, 4096));
  });
  runtime.synchronize_device(0);
  const auto read = runtime.memcpy_async(first, here, there, kLong);
  const auto write = copy(first, kLong);
  runtime.synchronize_device(0);
  runtime.host_barrier({0, 2});
  const auto after = copy(first, 64);
  runtime.wait();
  return {{"copy", span(one, one)},
          {"chain", span(chain.front(), chain.back())},
          {"many", span(many.front(), many.back())},
          {"unfolded", span(unfolded.front(), unfolded.back())},
          {"read-bandwidth", bandwidth(read)},
          {"write-bandwidth", bandwidth(write)},
          {"barrier", (runtime.task(after).called - runtime.task(write).seen).us()}};
}

Outputs run(const std::string& name, const Changes& changes) {
  std::istringstream words(name);
  std::string kind, a, b, c;
  words >> kind >> a >> b >> c;
  if (kind == "core") return run_core(changes);
  if (kind == "streams") return run_streams(changes);
  if (kind == "graph") return run_graph_scenario(changes);
  if (kind == "rdma") return run_rdma_scenario(changes);
  if (kind == "transfer") return run_transfer_scenario(changes);
  if (kind == "messages") return run_messages_scenario(changes);
  if (kind == "units") return run_units_scenario(changes);
  if (kind == "count") {
    const hw::Machine machine = hw::load_machine(std::string(hw::kDefaultMachine), changes);
    return {{"racks", static_cast<double>(supernode::counted(machine, "racks"))}};
  }
  if (kind == "cube") return run_cube(changes);
  if (kind == "gemm") return a == "bf16" ? run_wide_gemm(changes) : run_gemm_scenario(changes);
  if (kind == "copies") return run_copies_scenario(changes);
  if (kind == "hits") return run_hits(std::stoi(a), changes);
  if (kind == "more")
    return {{"kernel", run_stream(a, changes, 1).kernel_us - run_stream(a, changes, 0.5).kernel_us}};
  if (kind == "dispatch") return run_dispatch_scenario(a, changes);
  if (kind == "stream") {
    const studies::StreamReading reading = run_stream(a, changes, 1.0 / 64);
    return {{"kernel", reading.kernel_us}, {"task", reading.task_us}, {"bandwidth", reading.bandwidth_TBps}};
  }
  if (kind == "p2p") {
    studies::P2pPoint point;
    point.operation = a;
    point.target = b;
    point.distance = c.empty() ? "intra-node" : c + "-node";
    point.volume = 128_KiB;
    const studies::P2pReading reading = run_p2p(point, changes);
    return {{"latency", reading.latency_us},
            {"bandwidth", reading.bandwidth_GBps},
            {"startup", reading.startup_us}};
  }
  throw std::invalid_argument("no scenario " + name);
}

}  // namespace

const Outputs& run_scenario(const std::string& name, const std::vector<std::string>& changes) {
  static std::map<std::pair<std::string, std::vector<std::string>>, Outputs> known;
  const auto key = std::pair(name, changes);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known.emplace(key, run(name, changes)).first->second;
}

}  // namespace cm384::testing
