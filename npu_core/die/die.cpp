#include "npu_core/die/die.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text/error.h"
#include "firmware/abi/isa.h"
#include "firmware/abi/memory_map.h"
#include "npu_core/memory/perform_request.h"

namespace cm384::npu {
namespace {

// The top of a die's memory holds what the cores' private memories are cached from, the shared image and one
// area per core, and after that what belongs to the devices.
constexpr std::uint64_t kPrivateArea = std::uint64_t{1} << 30;

}  // namespace

Die::Die(int number, const DieParameters& parameters, const DieOptions& options, sim::PayloadPool& payloads,
         DieListener& listener, Time& last_progress)
    : number_(number),
      parameters_(parameters),
      clock_(parameters.die.clock),
      sys_clock_(parameters.die.sys_count),
      queue_(static_cast<std::uint32_t>(number), Time{32768}),
      payloads_(payloads),
      listener_(listener),
      last_progress_(last_progress),
      store_(parameters.memory.hbm.capacity),
      memory_(parameters.memory, parameters.die.aiv),
      watches_(static_cast<std::size_t>(parameters.die.aiv)),
      options_(options),
      devices_(*this) {
  const auto tables = std::make_shared<const AivTables>(parameters.vector, parameters.mte, clock_);
  for (int n = 0; n < parameters.die.aiv; ++n) {
    auto aiv = std::make_unique<Aiv>(static_cast<std::uint16_t>(n), parameters.vector, parameters.mte, clock_,
                                     *this, tables);
    aiv->set_options(options.aiv);
    add_core(std::move(aiv));
  }
  if (options.cube_cores) make_cube_cores();
}

Die::~Die() = default;

void Die::add_core(std::unique_ptr<CorePipes> pipes) {
  places_.push_back(pipes->places());
  cores_.push_back(
      std::make_unique<Core>(static_cast<std::uint16_t>(cores_.size()), *this, std::move(pipes)));
  if (debugger_ != nullptr) attach_debugger(*debugger_, debugged_core_);
}

std::uint64_t Die::allocatable() const {
  return store_.capacity() - std::min(store_.capacity() / 2, kPrivateArea);
}

std::uint64_t Die::private_offset(std::uint16_t core, std::uint64_t address, bool instruction) const {
  const std::uint64_t area = store_.capacity() - Devices::kMemoryBytes - allocatable();
  // Instructions are fetched from the one image that all cores share.
  if (instruction) return allocatable() + (address - CM384_PRIVATE_BASE) % area;
  // A cube core shares the area of its group's first vector core, half an area further on.
  const bool cube = is_cube(core);
  const std::uint64_t index = (cube ? 2u * (core - parameters_.die.aiv) : core) + std::uint64_t{1};
  const std::uint64_t within = address - CM384_PRIVATE_BASE + (cube ? CM384_PRIVATE_BYTES / 2 : 0);
  return allocatable() + (index * CM384_PRIVATE_BYTES + within % CM384_PRIVATE_BYTES) % area;
}

std::uint64_t Die::sys_count(Time at) const {
  return static_cast<std::uint64_t>(sys_clock_.tick_at_or_after(at + 1_ps) - 1);
}

// --- tasks
// ---------------------------------------------------------------------------------------------------------

void Die::check_cores(const std::vector<std::uint16_t>& cores) const {
  cores_of({{}, 0, cores, KernelType::aiv});
}

std::uint32_t Die::launch(LaunchRequest request, Time at) {
  request.cores = prepare(request);
  const std::uint32_t number = new_launch();
  devices_.launch(std::move(request), number, at);
  return number;
}

std::vector<std::uint16_t> Die::prepare(const LaunchRequest& request) {
  std::vector<std::uint16_t> cores = cores_of(request);
  if (request.type != KernelType::aiv) make_cube_cores();
  return cores;
}

void Die::block_ended(Core& core) {
  if (tracer_) tracer_->block_ended(core.number(), core.last_retired());
  devices_.scheduler().block_ended(core.number(), core.last_retired(), core.phase_totals(),
                                   core.fetch_stall());
}

std::uint64_t Die::instructions() const {
  std::uint64_t sum = 0;
  for (const auto& core : cores_) sum += core->instructions();
  return sum;
}

std::uint64_t Die::memory_requests() const {
  const auto& memory = memory_.statistics();
  return memory.reads + memory.writes + memory.atomics;
}

void Die::transfer(const Transfer& transfer) {
  devices_.sdma().copy(transfer.source, transfer.destination, transfer.bytes, transfer.id);
}

std::string Die::report() const {
  std::string text;
  for (const auto& core : cores_) {
    if (core->busy()) text += core->report() + "\n";
  }
  return text + devices_.report();
}

int Die::stuck_core(Time time) const {
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
    if (!alive.contains(launch) && devices_.scheduler().all_begun(number)) return core;
  }
  return -1;
}

// --- events
// --------------------------------------------------------------------------------------------------------

void Die::handle(const sim::Event& event) {
  if (event.unit >= cores_.size()) return devices_.handle(event);
  Core& core = *cores_[event.unit];
  if (event.what == kRunScalar) return core.run_scalar();
  try {
    if (event.what == kFlagArrives) {
      flag_arrives(core, event.argument, event.at);
    } else {
      core.pipes().handle(event.what, event.argument, event.at);
    }
  } catch (const PipeFault& fault) {
    core.rethrow(fault);
  }
}

void Die::schedule_scalar(std::uint16_t core, Time at) {
  queue_.push(at, core, kRunScalar);
}

void Die::schedule(std::uint16_t core, Time at, std::uint32_t what, std::uint64_t argument) {
  queue_.push(at, core, what, argument);
}

void Die::wake_scalar(std::uint16_t core, std::int64_t cycle) {
  cores_[core]->wake(cycle);
}

void Die::watch(std::uint16_t core, std::uint64_t offset, std::uint64_t bytes) {
  watches_.set(core, offset, bytes);
}

// --- memory
// --------------------------------------------------------------------------------------------------------

bool Die::is_local(std::uint64_t address) const {
  return cm384_is_gm(address) && !cm384_gm_is_cpu(address) &&
         cm384_gm_unit(address) == static_cast<std::uint64_t>(number_);
}

void Die::check(const LocalAccess& access) const {
  if (!store_.contains(access.offset, access.bytes))
    throw MachineError(
        fmt::format("die {} core {}: {} of {} B at offset {:#x}, outside the die's memory of {} GiB; {}",
                    number_, access.core, access.write ? "write" : "read", access.bytes, access.offset,
                    store_.capacity() >> 30, cores_[access.core]->scalar().location()));
}

void Die::written(std::uint64_t offset, std::uint64_t bytes) {
  last_progress_ = std::max(last_progress_, now());
  watches_.written(offset, bytes, [this](std::uint16_t core) {
    if (tracer_) tracer_->poll_woken(core);
    cores_[core]->pipes().watched_write(now());
  });
  devices_.written(offset, bytes);
}

void Die::written_by_device(std::uint64_t offset, std::uint64_t bytes, sim::TransactionId transaction) {
  if (tracer_) tracer_->written_by_device(offset, transaction, now());
  written(offset, bytes);
}

Time Die::access(const LocalAccess& access, std::byte* bytes, sim::TagMask& tags) {
  check(access);
  if (access.write) {
    write(access, bytes, tags);
  } else {
    tags = store_.read(access.offset, bytes, access.bytes);
    if (tracer_) tracer_->read(access.core, access.offset);
  }
  return timed(access, false);
}

Time Die::scalar_write(const LocalAccess& access, bool atomic) {
  check(access);
  return timed(access, atomic);
}

Time Die::traced(const LocalAccess& access, bool atomic) {
  const MemoryAccess asked{access.offset,   access.bytes, access.write,
                           access.allocate, access.core,  access.at};
  const std::uint64_t misses = memory_.statistics().l2_misses;
  const Time done = atomic ? memory_.atomic_add(asked) : memory_.access(asked);
  tracer_->local(access, memory_.statistics().l2_misses != misses, done);
  return done;
}

void Die::expect(std::uint64_t offset) const {
  if (!store_.contains(offset, 1)) return;
  memory_.prefetch(offset);
  store_.prefetch(offset);
}

void Die::expect_completion(std::uint16_t core, std::uint32_t tag) const {
  if (core < cores_.size()) cores_[core]->pipes().prefetch_completion(tag);
}

Time Die::private_access(const LocalAccess& access) {
  return memory_.access({access.offset, access.bytes, access.write, access.allocate, access.core, access.at});
}

std::uint64_t Die::atomic_update(const LocalAccess& access, const AtomicUpdate& update, bool& payload) {
  std::uint64_t old = 0;
  std::byte bytes[sizeof old] = {};
  payload = store_.read(access.offset, bytes, access.bytes) != 0;
  if (tracer_) tracer_->read(access.core, access.offset);
  if (!payload) {
    std::memcpy(&old, bytes, sizeof old);
    const std::uint64_t value = update(old);
    std::memcpy(bytes, &value, sizeof value);
    store_.write(access.offset, bytes, access.bytes, update.payload ? 1 : 0);
  }
  written_by_core(access);
  return old;
}

void Die::write(const LocalAccess& access, const std::byte* bytes, sim::TagMask tags) {
  store_.write(access.offset, bytes, access.bytes, tags);
  written_by_core(access);
}

void Die::written_by_core(const LocalAccess& access) {
  if (tracer_) tracer_->written(access.core, access.offset, access.bytes, now());
  written(access.offset, access.bytes);
}

Time Die::atomic_add(const LocalAccess& access, const std::byte* bytes, sim::Operation operation) {
  check(access);
  store_.atomic_add(access.offset, bytes, access.bytes, 0, operation, nullptr);
  written_by_core(access);
  return timed(access, true);
}

Time Die::timed(const LocalAccess& access, bool atomic) {
  if (tracer_ && tracer_->requests()) [[unlikely]]
    return traced(access, atomic);
  const MemoryAccess asked{access.offset,   access.bytes, access.write,
                           access.allocate, access.core,  access.at};
  return atomic ? memory_.atomic_add(asked) : memory_.access(asked);
}

// --- the socket
// ----------------------------------------------------------------------------------------------------

void Die::submit(const sim::Request& request) {
  if (port_ == nullptr)
    throw MachineError(
        fmt::format("die {}: access to {:#x}, but the die stands alone", number_, request.address));
  if (tracer_) tracer_->submitted(request);
  port_->submit(request);
}

void Die::keep_log(TraceLog& log, bool requests) {
  tracer_ = std::make_unique<DieTracer>(log, number_, last_transaction_, requests);
  trace_cores(0);
  devices_.trace();
}

void Die::trace_cores(std::size_t first) {
  const bool cube = first != 0;
  const std::vector<CoreTracer*> made = tracer_->add_cores(cores_.size() - first, cube);
  for (std::size_t n = 0; n < made.size(); ++n) cores_[first + n]->pipes().add_observer(*made[n]);
}

sim::TransactionId Die::new_transaction(std::uint16_t core, const TransactionStart& start) {
  const sim::TransactionId id = start.replayed != 0 ? start.replayed : new_id();
  if (tracer_) tracer_->begun(core, id, start, is_local(start.address), now());
  if (follows_) tell_begun(core, id, start);
  return id;
}

sim::TransactionId Die::new_copy(const TransactionStart& start, const CopyStart& copy) {
  const bool stands_in = runner_ != nullptr && copy.number != CopyStart::kNoStream;
  const sim::TransactionId id = stands_in ? runner_->copy_begins(number_, copy.number) : new_id();
  if (tracer_) tracer_->copy_begun(id, start, copy, is_local(start.address), now());
  if (follows_) tell_begun(kSdmaCore, id, start);
  return id;
}

void Die::tell_begun(std::uint16_t core, sim::TransactionId id, const TransactionStart& start) {
  const TransactionBegun begun{id,
                               start.address,
                               start.bytes,
                               number_,
                               core,
                               start.operation,
                               now(),
                               start.burst_bytes,
                               start.bursts,
                               start.stride,
                               start.allocate,
                               false,
                               start.engine,
                               {}};
  listener_.transaction_begun(begun);
}

void Die::transaction_completed(std::uint16_t core, sim::TransactionId transaction, Time at) {
  if (tracer_) tracer_->completed(core, transaction, at);
  if (follows_) listener_.transaction_completed({transaction, number_, core, at});
}

void Die::completed(const sim::Completion& completion, Time at) {
  if (completion.core >= cores_.size()) return devices_.completed(completion);
  if (tracer_) tracer_->answered(completion, at);
  try {
    cores_[completion.core]->pipes().completed(completion, at);
  } catch (const PipeFault& fault) {
    cores_[completion.core]->rethrow(fault);
  }
}

void Die::arrived(const sim::Request& request) {
  if (tracer_) tracer_->arrived(request.transaction, request.address, request.bytes, request.at);
  if (follows_) listener_.transaction_arrived(request.transaction, number_, request.bytes, request.at);
}

// Lines are spread over the ports; one line always comes by the same, which so holds it.
int Die::external_port(std::uint64_t offset) const {
  return static_cast<int>(offset / 512 %
                          static_cast<std::uint64_t>(parameters_.memory.on_die_network.external_ports));
}

Time Die::access(sim::Request& request, sim::Outcome& outcome) {
  if (!perform(store_, payloads_, request, outcome)) return request.at;
  const bool reads = request.operation == sim::Operation::read;
  const MemoryAccess access{request.address,
                            request.bytes,
                            !reads,
                            true,
                            memory_.external_requester(external_port(request.address)),
                            request.at};
  if (tracer_) tracer_->came(request);
  if (!reads) {
    if (follows_ || tracer_) arrived(request);
    written(request.address, request.bytes);
  }
  const bool adds = !reads && request.operation != sim::Operation::write;
  const Time ready = adds ? memory_.atomic_add(access) : memory_.access(access);
  if (tracer_) tracer_->served(ready);
  return ready;
}

}  // namespace cm384::npu
