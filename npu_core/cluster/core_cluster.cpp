#include "npu_core/cluster/core_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text/error.h"
#include "npu_core/die/die.h"

namespace cm384::npu {

CoreCluster::CoreCluster(Die& die, const AivOptions& options)
    : die_(die), elide_polls_(options.elide_polls), ubuffers_(kUBufferBytes), flags_(die, *this) {
  const DieParameters& p = die.parameters();
  CoreSocket& socket = *this;
  const auto tables = std::make_shared<const AivTables>(p.vector, p.mte, die.clock());
  for (int n = 0; n < p.die.aiv; ++n) {
    auto aiv =
        std::make_unique<Aiv>(static_cast<std::uint16_t>(n), p.vector, p.mte, die.clock(), socket, tables);
    aiv->set_options(options);
    aiv->ubuffer().join(ubuffers_);
    add(std::move(aiv));
  }
}

void CoreCluster::add(std::unique_ptr<CorePipes> pipes) {
  places_.push_back(pipes->places());
  cores_.push_back(std::make_unique<Core>(static_cast<std::uint16_t>(cores_.size()), die_, std::move(pipes)));
  if (debugger_ != nullptr) attach_debugger(*debugger_, debugged_core_);
}

// Most dies of a supernode never use a cube core.
void CoreCluster::make_cube_cores() {
  const auto first = static_cast<std::size_t>(die_.parameters().die.aiv);
  if (cores_.size() > first) return;
  CoreSocket& socket = *this;
  for (int n = 0; n < die_.parameters().die.aic; ++n) {
    add(std::make_unique<Aic>(static_cast<std::uint16_t>(first + n), die_.parameters().cube,
                              die_.parameters().cube_mte, die_.clock(), socket, elide_polls_));
  }
  die_.memory_system().set_cores(cores_.size());
  flags_.set_groups(static_cast<std::size_t>(die_.parameters().die.aic));
  if (die_.transactions().tracer() != nullptr) trace(first);
}

void CoreCluster::attach_debugger(GdbStub& stub, int core) {
  debugger_ = &stub;
  debugged_core_ = core;
  for (const auto& one : cores_) {
    if (core < 0 || one->number() == core) one->attach_debugger(stub);
  }
}

std::vector<std::uint16_t> CoreCluster::cores_of(const LaunchRequest& request) const {
  const bool vector = request.type == KernelType::aiv;
  const char* const what = vector ? "core" : request.type == KernelType::aic ? "AIC" : "group";
  if (request.cores.empty()) throw InputError(fmt::format("launch on die {}: no cores named", die_.number()));
  const int aiv = die_.parameters().die.aiv, aic = die_.parameters().die.aic;
  const int limit = vector ? aiv : request.type == KernelType::aic ? aic : std::min(aic, aiv / 2);
  std::vector<bool> taken(static_cast<std::size_t>(limit), false);
  std::vector<std::uint16_t> cores;
  for (const std::uint16_t n : request.cores) {
    if (n >= limit)
      throw InputError(fmt::format("launch on die {}: {} {} does not exist; allowed: 0 to {}", die_.number(),
                                   what, n, limit - 1));
    if (taken[n])
      throw InputError(fmt::format("launch on die {}: {} {} is named twice", die_.number(), what, n));
    taken[n] = true;
    cores.push_back(static_cast<std::uint16_t>(vector ? n : aiv + n));
    if (request.type != KernelType::mix) continue;
    cores.push_back(static_cast<std::uint16_t>(2 * n));
    cores.push_back(static_cast<std::uint16_t>(2 * n + 1));
  }
  return cores;
}

void CoreCluster::check(const std::vector<std::uint16_t>& cores) const {
  cores_of({{}, 0, cores, KernelType::aiv});
}

std::vector<std::uint16_t> CoreCluster::prepare(const LaunchRequest& request) {
  std::vector<std::uint16_t> cores = cores_of(request);
  if (request.type != KernelType::aiv) make_cube_cores();
  return cores;
}

// Of the block at a position of cores_of(). Numbers as CANN gives them: in a launch of groups a vector core's
// block index counts vector cores, the block count groups.
BlockIdentity CoreCluster::identity(const BlockStart& block) {
  if (block.type != KernelType::mix) return {block.index, block.count, block.arguments, 0};
  const std::uint32_t group = block.index / 3, part = block.index % 3;
  if (part == 0) return {group, block.count / 3, block.arguments, 0};
  return {2 * group + part - 1, block.count / 3, block.arguments, part - 1};
}

void CoreCluster::start_block(const BlockStart& block) {
  if (BlockRunner* runner = die_.transactions().runner()) return runner->run_block(die_.number(), block);
  Core& core = *cores_[block.core];
  flags_.block_begins(core);
  core.set_launch(block.launch);
  if (DieTracer* tracer = die_.transactions().tracer())
    tracer->block_begun(block.launch, block.index, block.core, die_.now());
  core.start_block(block.program, identity(block), die_.now(), block.preloaded);
  flags_.block_has_begun(core);
}

void CoreCluster::block_ended(Core& core) {
  if (DieTracer* tracer = die_.transactions().tracer())
    tracer->block_ended(core.number(), core.last_retired());
  die_.scheduler().block_ended(core.number(), core.last_retired(), core.phase_totals(), core.fetch_stall());
}

void CoreCluster::handle(const sim::Event& event) {
  Core& core = *cores_[event.unit];
  if (event.what == kRunScalar) return core.run_scalar();
  try {
    if (event.what == kFlagArrives) {
      flags_.arrives(core, event.argument, event.at);
    } else {
      core.pipes().handle(event.what, event.argument, event.at);
    }
  } catch (const PipeFault& fault) {
    core.rethrow(fault);
  }
}

void CoreCluster::completed(const sim::Completion& completion, Time at) {
  if (DieTracer* tracer = die_.transactions().tracer()) tracer->answered(completion, at);
  try {
    cores_[completion.core]->pipes().completed(completion, at);
  } catch (const PipeFault& fault) {
    cores_[completion.core]->rethrow(fault);
  }
}

int CoreCluster::stuck_core(Time time) const {
  using On = Standstill::On;
  std::set<std::uint32_t> alive;     // launches with a core that others can still get going
  std::map<std::uint32_t, int> met;  // launch: a core that waits for another one of it
  for (const auto& core : cores_) {
    if (!core->busy()) continue;
    const Standstill still = core->pipes().standstill();
    const bool stands = still.on != On::nothing && still.since < time;
    if (stands && still.on == On::own) return core->number();
    if (stands && still.on == On::launch) {
      met.try_emplace(core->launch(), core->number());
    } else {
      alive.insert(core->launch());
    }
  }
  for (const auto& [launch, core] : met) {
    const auto number = static_cast<std::uint16_t>(core);
    if (!alive.contains(launch) && die_.scheduler().all_begun(number)) return core;
  }
  return -1;
}

bool CoreCluster::is_cube(std::uint16_t core) const {
  return core >= die_.parameters().die.aiv;
}

Aic& CoreCluster::aic(int n) {
  return core(die_.parameters().die.aiv + n).aic();
}

std::uint64_t CoreCluster::instructions() const {
  std::uint64_t sum = 0;
  for (const auto& core : cores_) sum += core->instructions();
  return sum;
}

std::string CoreCluster::report() const {
  std::string text;
  for (const auto& core : cores_) {
    if (core->busy()) text += core->report() + "\n";
  }
  return text;
}

void CoreCluster::trace(std::size_t first) {
  const bool cube = first != 0;
  const std::vector<CoreTracer*> made = die_.transactions().tracer()->add_cores(cores_.size() - first, cube);
  for (std::size_t n = 0; n < made.size(); ++n) cores_[first + n]->pipes().add_observer(*made[n]);
}

// --- the socket

Time CoreCluster::now() const {
  return die_.queue().now();
}
void CoreCluster::schedule(std::uint16_t core, Time at, std::uint32_t what, std::uint64_t argument) {
  die_.queue().push(at, core, what, argument);
}
void CoreCluster::schedule_scalar(std::uint16_t core, Time at) {
  die_.queue().push(at, core, kRunScalar);
}
bool CoreCluster::is_local(std::uint64_t address) const {
  return die_.memory_system().is_local(address);
}
Time CoreCluster::access(const LocalAccess& access, std::byte* bytes, sim::TagMask& tags) {
  return die_.memory_system().access(access, bytes, tags);
}
void CoreCluster::expect(std::uint64_t offset) const {
  die_.memory_system().expect(offset);
}
void CoreCluster::progressed() {
  die_.progressed();
}
Time CoreCluster::atomic_add(const LocalAccess& access, const std::byte* bytes, sim::Operation operation) {
  return die_.memory_system().atomic_add(access, bytes, operation);
}
void CoreCluster::submit(const sim::Request& request) {
  die_.submit(request);
}
sim::PayloadPool& CoreCluster::payloads() {
  return die_.payloads();
}
sim::TransactionId CoreCluster::new_transaction(std::uint16_t core, const TransactionStart& start) {
  return die_.transactions().begin(core, start);
}
void CoreCluster::transaction_completed(std::uint16_t core, sim::TransactionId transaction, Time at) {
  die_.transactions().completed(core, transaction, at);
}
void CoreCluster::wake_scalar(std::uint16_t core, std::int64_t cycle) {
  cores_[core]->wake(cycle);
}
void CoreCluster::cross_core_set(std::uint16_t core, std::uint32_t mode, std::uint32_t flag) {
  flags_.set(core, mode, flag);
}
void CoreCluster::watch(std::uint16_t core, std::uint64_t offset, std::uint64_t bytes) {
  die_.memory_system().watch(core, offset, bytes);
}

void CoreCluster::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const {
  const auto vector_cores = static_cast<std::size_t>(die_.parameters().die.aiv);
  for (std::size_t n = 0; n < cores_.size(); ++n) {
    const bool cube = n >= vector_cores;
    cores_[n]->declare_statistics(to, cube ? at.part("aic", n - vector_cores) : at.part("aiv", n));
  }
}

}  // namespace cm384::npu
