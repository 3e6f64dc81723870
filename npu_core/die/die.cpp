#include "npu_core/die/die.h"

#include <fmt/format.h>

#include <algorithm>

#include "firmware/abi/isa.h"
#include "firmware/abi/memory_map.h"
#include "sim/error.h"

namespace cm384::npu {
namespace {

// The top of a die's memory holds what the cores' private memories are cached from: the shared image and one
// area a core.
constexpr std::uint64_t kPrivateArea = std::uint64_t{1} << 30;

}  // namespace

Die::Die(int number, const DieParameters& parameters, const DieOptions& options, sim::PayloadPool& payloads,
         DieListener& listener, Time& last_progress)
    : number_(number),
      parameters_(parameters),
      clock_(parameters.die.clock),
      queue_(static_cast<std::uint32_t>(number), Time{4096}),
      payloads_(payloads),
      listener_(listener),
      last_progress_(last_progress),
      store_(parameters.memory.hbm.capacity),
      memory_(parameters.memory),
      watches_(static_cast<std::size_t>(parameters.die.aiv)),
      causality_(false) {
  for (int n = 0; n < parameters.die.aiv; ++n) {
    cores_.push_back(std::make_unique<Core>(static_cast<std::uint16_t>(n), *this));
    Core& core = *cores_.back();
    core.aiv().set_options(options.aiv);
    touched_.push_back({static_cast<const char*>(core.aiv().engine_state(0)),
                        static_cast<const char*>(core.aiv().engine_state(1)),
                        reinterpret_cast<const char*>(&core.scalar())});
  }
  if (options.causality) trace();
}

Die::~Die() = default;

std::uint64_t Die::allocatable() const {
  return store_.capacity() - std::min(store_.capacity() / 2, kPrivateArea);
}

std::uint64_t Die::private_offset(std::uint16_t core, std::uint64_t address, bool instruction) const {
  const std::uint64_t area = store_.capacity() - allocatable();
  // Instructions are fetched from the one image that all cores share.
  const std::uint64_t index = instruction ? 0 : core + std::uint64_t{1};
  return allocatable() + (index * CM384_PRIVATE_BYTES + (address - CM384_PRIVATE_BASE)) % area;
}

std::uint64_t Die::sys_count(Time at) const {
  return static_cast<std::uint64_t>(at.ps / (1'000'000'000'000 / parameters_.die.sys_count.hertz));
}

// --- tasks
// ---------------------------------------------------------------------------------------------------------

std::uint32_t Die::launch(LaunchRequest request, Time at) {
  if (request.cores.empty()) throw InputError(fmt::format("launch on die {}: no cores named", number_));
  std::vector<bool> taken(cores_.size(), false);
  for (const std::uint16_t core : request.cores) {
    if (core >= cores_.size())
      throw InputError(fmt::format("launch on die {}: core {} does not exist; allowed: 0 to {}", number_,
                                   core, cores_.size() - 1));
    if (taken[core]) throw InputError(fmt::format("launch on die {}: core {} is named twice", number_, core));
    taken[core] = true;
  }
  Task task;
  task.number = launches_++;
  task.request = std::move(request);
  task.record.launch = task.number;
  task.record.task_start = at;
  pending_.push_back(std::move(task));
  if (pending_.size() == 1) queue_.push(at + parameters_.launch.block_launch, kLaunchUnit, 0);
  return launches_ - 1;
}

void Die::start_task() {
  Task& task = pending_.front();
  const auto& cores = task.request.cores;
  task.running = static_cast<std::uint32_t>(cores.size());
  task.started = true;
  task.record.first_instruction = now();
  task.record.blocks = task.running;
  last_progress_ = std::max(last_progress_, now());
  listener_.launch_started(number_, task.record);
  barrier_arrivals_.fill(0);
  for (std::uint32_t index = 0; index < cores.size(); ++index) {
    Core& core = *cores_[cores[index]];
    core.set_launch(task.number);
    core.start_block(task.request.program,
                     {index, static_cast<std::uint32_t>(cores.size()), task.request.arguments}, now());
  }
}

void Die::block_ended(Core& core) {
  Task& task = pending_.front();
  task.record.last_retired = std::max(task.record.last_retired, core.last_retired());
  for (std::size_t p = 0; p < kPhases; ++p) task.record.phase_total[p] += core.phase_totals()[p];
  if (--task.running != 0) return;
  task.record.task_end = std::max(now(), task.record.last_retired) + parameters_.launch.block_teardown;
  queue_.push(task.record.task_end, kLaunchUnit, 1);
}

void Die::end_task() {
  const LaunchRecord record = pending_.front().record;
  pending_.pop_front();
  last_progress_ = std::max(last_progress_, now());
  if (!pending_.empty()) {
    Task& next = pending_.front();
    next.record.task_start = std::max(next.record.task_start, now());
    queue_.push(next.record.task_start + parameters_.launch.block_launch, kLaunchUnit, 0);
  }
  listener_.launch_finished(number_, record);
}

std::uint64_t Die::instructions() const {
  std::uint64_t sum = 0;
  for (const auto& core : cores_) sum += core->instructions();
  return sum;
}

std::string Die::report() const {
  std::string text;
  for (const auto& core : cores_) {
    if (core->busy()) text += core->report() + "\n";
  }
  return text;
}

// --- events
// --------------------------------------------------------------------------------------------------------

void Die::handle(const sim::Event& event) {
  if (event.unit == kLaunchUnit) {
    event.what == 0 ? start_task() : end_task();
    return;
  }
  Core& core = *cores_[event.unit];
  switch (event.what) {
    case kRunScalar:
      core.run_scalar();
      break;
    case kFlagArrives:
      core.aiv().cross_core_flag(static_cast<std::uint32_t>(event.argument), 1, event.at);
      break;
    default:
      core.aiv().handle(event.what, event.argument, event.at);
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

void Die::cross_core_set(std::uint16_t core, std::uint32_t mode, std::uint32_t flag) {
  last_progress_ = std::max(last_progress_, now());
  if (mode == 1) {
    // The two AIVs of a group.
    const Time at = now() + parameters_.die.cross_core_flag_latency;
    for (const std::uint32_t member : {core & ~1u, core | 1u}) {
      if (member < cores_.size()) queue_.push(at, member, kFlagArrives, flag);
    }
    return;
  }
  // Mode 0: a barrier of all blocks of the launch. Counted in rounds, so that a fast core may already set for
  // the next one.
  const Task& task = pending_.front();
  if (++barrier_arrivals_[flag] < task.request.cores.size()) return;
  barrier_arrivals_[flag] -= static_cast<std::uint32_t>(task.request.cores.size());
  const Time at = now() + parameters_.die.sync_all_latency;
  for (const std::uint16_t member : task.request.cores) queue_.push(at, member, kFlagArrives, flag);
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
  watches_.written(offset, bytes, [this](std::uint16_t core) { cores_[core]->aiv().watched_write(now()); });
}

// What a core writes carries on what it had seen; one that has seen nothing leaves the rest of the line's
// cause.
void Die::written_by(const LocalAccess& access) {
  if (const auto cause = causes_[access.core].foreign) store_.set_last_writer(access.offset, cause);
}

Time Die::access(const LocalAccess& access, std::byte* bytes, sim::TagMask& tags) {
  check(access);
  if (access.write) {
    store_.write(access.offset, bytes, access.bytes, tags);
    if (causality_) written_by(access);
    written(access.offset, access.bytes);
  } else {
    tags = store_.read(access.offset, bytes, access.bytes);
    if (causality_) {
      if (const auto writer = store_.last_writer(access.offset)) causes_[access.core].foreign = writer;
    }
  }
  return memory_.access({access.offset, access.bytes, access.write, access.allocate, access.core, access.at});
}

void Die::expect(std::uint64_t offset) const {
  if (!store_.contains(offset, 1)) return;
  memory_.prefetch(offset);
  store_.prefetch(offset);
}

Time Die::private_access(const LocalAccess& access) {
  return memory_.access({access.offset, access.bytes, access.write, access.allocate, access.core, access.at});
}

Time Die::atomic_add(const LocalAccess& access, const std::byte* bytes, bool floating) {
  check(access);
  store_.atomic_add(access.offset, bytes, access.bytes, 0, floating, nullptr);
  if (causality_) written_by(access);
  written(access.offset, access.bytes);
  return memory_.atomic_add({access.offset, access.bytes, true, access.allocate, access.core, access.at});
}

// --- the socket
// ----------------------------------------------------------------------------------------------------

void Die::submit(const sim::Request& request) {
  if (port_ == nullptr)
    throw MachineError(
        fmt::format("die {}: access to {:#x}, but the die stands alone", number_, request.address));
  port_->submit(request);
}

void Die::trace() {
  if (std::exchange(causality_, true)) return;
  store_.enable_last_writer();
  causes_.resize(cores_.size());
}

sim::TransactionId Die::new_transaction(std::uint16_t core, const TransactionStart& start) {
  const sim::TransactionId id = (static_cast<std::uint64_t>(number_ + 1) << 48) | ++last_transaction_;
  if (!causality_) return id;
  Causes& causes = causes_[core];
  std::erase_if(causes.ahead, [&](const TransactionCompleted& t) {
    if (t.at > now()) return false;
    if (causes.previous.at <= t.at) causes.previous = t;
    return true;
  });
  listener_.transaction_begun({id, causes.foreign, causes.previous.id, start.address, start.bytes, number_,
                               core, start.operation, now()});
  return id;
}

void Die::transaction_completed(std::uint16_t core, sim::TransactionId transaction, Time at) {
  if (!causality_) return;
  const TransactionCompleted done{transaction, number_, core, at};
  causes_[core].ahead.push_back(done);
  listener_.transaction_completed(done);
}

void Die::completed(const sim::Completion& completion, Time at) {
  if (completion.outcome != sim::Outcome::done)
    throw MachineError(
        fmt::format("die {} core {}: the target of a remote access has no memory at that address; {}",
                    number_, completion.core, cores_[completion.core]->scalar().location()));
  cores_[completion.core]->aiv().completed(completion, at);
}

// Lines are spread over the ports; one line always comes by the same, which so holds it.
int Die::external_port(std::uint64_t offset) const {
  return static_cast<int>(offset / 512 %
                          static_cast<std::uint64_t>(parameters_.memory.on_die_network.external_ports));
}

Time Die::access(sim::Request& request, sim::Outcome& outcome) {
  if (!store_.contains(request.address, request.bytes)) {
    payloads_.release(request.payload);
    outcome = sim::Outcome::address_fault;
    return request.at;
  }
  outcome = sim::Outcome::done;
  MemoryAccess access{request.address,
                      request.bytes,
                      request.operation != sim::Operation::read,
                      true,
                      memory_.external_requester(external_port(request.address)),
                      request.at};
  const auto bytes_of = [this](const sim::Payload& payload) {
    return payload.chunk == sim::kNoChunk ? nullptr : payloads_.bytes(payload.chunk);
  };
  switch (request.operation) {
    case sim::Operation::read: {
      request.payload.chunk = payloads_.allocate();
      request.payload.tags =
          store_.read(request.address, payloads_.bytes(request.payload.chunk), request.bytes);
      if (request.payload.tags == sim::all_tags(request.bytes)) payloads_.release(request.payload);
      return memory_.access(access);
    }
    case sim::Operation::write: {
      store_.write(request.address, bytes_of(request.payload), request.bytes, request.payload.tags);
      payloads_.release(request.payload);
      if (causality_) store_.set_last_writer(request.address, request.transaction);
      written(request.address, request.bytes);
      return memory_.access(access);
    }
    case sim::Operation::atomic_add_s32:
    case sim::Operation::atomic_add_f32: {
      store_.atomic_add(request.address, bytes_of(request.payload), request.bytes, request.payload.tags,
                        request.operation == sim::Operation::atomic_add_f32, nullptr);
      payloads_.release(request.payload);
      if (causality_) store_.set_last_writer(request.address, request.transaction);
      written(request.address, request.bytes);
      return memory_.atomic_add(access);
    }
  }
  return request.at;
}

}  // namespace cm384::npu
