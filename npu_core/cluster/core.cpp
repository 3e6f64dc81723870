#include "npu_core/cluster/core.h"

#include <fmt/format.h>

#include <utility>

#include "base/text/error.h"
#include "firmware/abi/isa.h"
#include "npu_core/die/die.h"
#include "npu_core/scalar/gdb_stub.h"
#include "npu_core/scalar/hart.h"

namespace cm384::npu {
namespace {

// How far a scalar unit may run ahead of its die, in core cycles. Results do not depend on it: what is shared
// synchronises on its own; it only bounds the work of one event.
constexpr std::int64_t kQuantumCycles = 4096;

}  // namespace

Core::Core(std::uint16_t number, Die& die, std::unique_ptr<CorePipes> pipes)
    : number_(number),
      die_(die),
      scalar_(die.parameters().scalar, *this,
              static_cast<std::uint32_t>(die.number()) * kHartsPerDie + number),
      pipes_(std::move(pipes)) {
  if (pipes_->scalar_buffer() != nullptr) finder_ = std::make_unique<PollFinder>(scalar_, aiv());
}

void Core::start_block(const std::shared_ptr<Program>& program, const BlockIdentity& block, Time at,
                       std::uint64_t preloaded) {
  program_ = program;
  block_ = block;
  busy_ = true;
  waiting_ = false;
  started_ = at;
  phase_ = -1;
  acts_at_.reset();
  phases_.fill(Time{});
  pipes_->set_order(program->rules().order);
  pipes_->set_hazard_listener(program->rules().list_hazards ? &program->log() : nullptr);
  pipes_->reset();
  if (finder_ != nullptr) finder_->forget();
  earlier_instructions_ += scalar_.instructions();
  earlier_ += scalar_.counters();
  scalar_.start(program, die_.clock().tick_at_or_after(at));
  if (preloaded > 0) scalar_.preload(preloaded);
  run_scalar();
}

void Core::run_scalar() {
  if (!busy_) return;
  try {
    run_until_it_stops();
  } catch (const PipeFault& fault) {
    rethrow(fault);
  }
}

void Core::run_until_it_stops() {
  waiting_ = false;
  const std::int64_t limit = die_.clock().tick_at_or_after(die_.now()) + kQuantumCycles;
  switch (debugger_ != nullptr ? debugger_->run(scalar_, limit) : scalar_.run(limit)) {
    case Stop::limit:
      die_.cluster().schedule_scalar(
          number_, std::max(die_.now(), die_.clock().start(scalar_.cycle() - kQuantumCycles / 2)));
      break;
    case Stop::parked:
      waiting_ = true;
      break;
    case Stop::ended:
      busy_ = false;
      ended_ = die_.clock().start(scalar_.cycle());
      if (const OrderWaits* waits = pipes_->order_waits()) program_->log().add(*waits);
      if (program_->rules().write_back) program_->log().add_written_lines(scalar_.counters().written_at_end);
      if (phase_ >= 0) phases_[static_cast<std::size_t>(phase_)] += ended_ - phase_since_;
      if (debugger_ != nullptr) debugger_->ended(0);
      die_.cluster().block_ended(*this);
      break;
    case Stop::breakpoint:  // only under a debugger, which does not return it
    case Stop::stored:      // only where a word is watched
      break;
  }
}

void Core::wake(std::int64_t cycle) {
  scalar_.resume(cycle);
  die_.cluster().schedule_scalar(number_, std::max(die_.now(), die_.clock().start(cycle)));
}

Time Core::fetch_stall() const {
  return die_.clock().start(static_cast<std::int64_t>(scalar_.counters().instruction_stall_cycles));
}

IssueAnswer Core::pipe(const PipeInstruction& instruction, std::int64_t cycle) {
  if (instruction.instruction_class == CM384_CLASS_SYNC && instruction.operation == CM384_PHASE) {
    mark_phase(static_cast<std::uint32_t>(instruction.a), die_.clock().start(cycle));
    pipes_->mark_phase(static_cast<std::uint32_t>(instruction.a), cycle);
    return IssueAnswer::at(cycle);
  }
  if (instruction.instruction_class == CM384_CLASS_MTE && finder_ != nullptr &&
      finder_->parks(instruction, cycle))
    return IssueAnswer::park();
  return pipes_->issue(instruction, cycle);
}

void Core::mark_phase(std::uint32_t phase, Time at) {
  if (phase >= kPhases)
    throw MachineError(fmt::format("die {} core {}: phase mark {} is out of range; allowed: 0 to {}; {}",
                                   die_.number(), number_, phase, kPhases - 1, scalar_.location()));
  if (phase_ >= 0) phases_[static_cast<std::size_t>(phase_)] += at - phase_since_;
  phase_ = static_cast<std::int32_t>(phase);
  phase_since_ = at;
}

IssueAnswer Core::host_call(std::uint32_t number, std::uint64_t a, std::uint64_t b, std::int64_t cycle,
                            std::uint64_t& result) {
  result = 0;
  switch (number) {
    case CM384_HOST_EXIT: {
      const IssueAnswer drained = pipes_->drain(cycle);
      if (!drained.parked && static_cast<std::int64_t>(a) != 0)
        throw MachineError(fmt::format("die {} core {}: the kernel exited with status {}; {}", die_.number(),
                                       number_, static_cast<std::int64_t>(a), scalar_.location()));
      return drained;
    }
    case CM384_HOST_WRITE:
      die_.listener().kernel_output(die_.number(), number_, text_at(a, b));
      return IssueAnswer::at(cycle);
    case CM384_HOST_ABORT:
      throw MachineError(fmt::format("die {} core {}: the kernel gave up: {}; {}", die_.number(), number_,
                                     text_at(a, 0), scalar_.location()));
    default:
      throw MachineError(fmt::format("die {} core {}: host call {} does not exist; {}", die_.number(),
                                     number_, number, scalar_.location()));
  }
}

std::string Core::text_at(std::uint64_t address, std::uint64_t bytes) const {
  constexpr std::uint64_t kLongest = 4096;
  std::string text;
  const std::uint64_t limit = bytes == 0 ? kLongest : std::min(bytes, kLongest);
  for (std::uint64_t i = 0; i < limit; ++i) {
    std::byte c{};
    if (!const_cast<ScalarCore&>(scalar_).read_memory(address + i, {&c, 1})) break;
    if (bytes == 0 && c == std::byte{0}) break;
    text.push_back(static_cast<char>(c));
  }
  return text;
}

IssueAnswer Core::fill(std::uint64_t address, FillKind kind, std::int64_t cycle, std::byte* line,
                       std::uint32_t bytes, sim::TagMask& tags) {
  const Time at = die_.clock().start(cycle);
  if (at > die_.now()) {
    // The die's memory serves requests in order of time: come back when its time has reached the core's.
    die_.cluster().schedule_scalar(number_, at);
    return IssueAnswer::park();
  }
  const bool write = kind == FillKind::write_back;
  LocalAccess access{0, bytes, number_, write, true, die_.now()};
  Time done;
  if (!cm384_is_gm(address)) {
    access.offset = die_.memory_system().private_offset(number_, address, kind == FillKind::instruction);
    done = die_.memory_system().private_access(access);
  } else {
    access.offset = local_offset(address);
    if (write) return act(access, false, cycle, [&] { die_.memory_system().write(access, line, tags); });
    done = die_.memory_system().access(access, line, tags);
  }
  if (DieTracer* tracer = die_.transactions().tracer())
    tracer->filled(access, kind == FillKind::instruction, cycle, done);
  return IssueAnswer::at(std::max(cycle, die_.clock().tick_at_or_after(done)));
}

// What others see of a write happens when it is complete: the scalar unit, which waits for that, comes back
// then.
template <class Action>
IssueAnswer Core::act(const LocalAccess& access, bool atomic, std::int64_t cycle, const Action& action) {
  if (!acts_at_) {
    acts_at_ = die_.memory_system().scalar_write(access, atomic);
    if (DieTracer* tracer = die_.transactions().tracer()) tracer->filled(access, false, cycle, *acts_at_);
    if (*acts_at_ > die_.now()) {
      die_.cluster().schedule_scalar(number_, *acts_at_);
      return IssueAnswer::park();
    }
  }
  action();
  return IssueAnswer::at(std::max(cycle, die_.clock().tick_at_or_after(*std::exchange(acts_at_, {}))));
}

// Of an address in global memory.
std::uint64_t Core::local_offset(std::uint64_t address) const {
  if (!die_.memory_system().is_local(address))
    throw MachineError(
        fmt::format("die {} core {}: the scalar unit reaches only its own die's memory, not {:#x}; {}",
                    die_.number(), number_, address, scalar_.location()));
  return cm384_gm_offset(address);
}

IssueAnswer Core::atomic(std::uint64_t address, const AtomicUpdate& update, std::int64_t cycle,
                         std::uint64_t& old, bool& payload) {
  const Time at = die_.clock().start(cycle);
  if (at > die_.now()) {
    die_.cluster().schedule_scalar(number_, at);
    return IssueAnswer::park();
  }
  const LocalAccess access{local_offset(address), update.bytes, number_, true, true, die_.now()};
  return act(access, true, cycle, [&] { old = die_.memory_system().atomic_update(access, update, payload); });
}

LocalBuffer& Core::scalar_buffer() {
  LocalBuffer* buffer = pipes_->scalar_buffer();
  if (buffer == nullptr)
    throw MachineError(fmt::format("die {} core {}: a cube core has no UBuffer for its scalar unit; {}",
                                   die_.number(), number_, scalar_.location()));
  return *buffer;
}

IssueAnswer Core::ubuffer_order(std::uint32_t offset, std::uint32_t bytes, bool write, std::int64_t cycle) {
  return pipes_->scalar_access({offset, offset + bytes, write}, scalar_.pc(), cycle);
}

bool Core::ubuffer_load(std::uint32_t offset, std::uint32_t bytes, std::int64_t, std::byte* to) {
  LocalBuffer& buffer = scalar_buffer();
  pipes_->check_scalar_access(offset, bytes, false, scalar_.pc());
  buffer.load(offset, to, bytes);
  return buffer.payload(offset, bytes);
}

void Core::ubuffer_store(std::uint32_t offset, std::uint32_t bytes, std::int64_t, const std::byte* from,
                         bool payload) {
  LocalBuffer& buffer = scalar_buffer();
  pipes_->check_scalar_access(offset, bytes, true, scalar_.pc());
  buffer.store(offset, from, bytes);
  payload ? buffer.set_payload(offset, bytes, true) : buffer.set_plain(offset, bytes);
}

std::uint64_t Core::csr(std::uint32_t number, std::int64_t cycle) {
  switch (number) {
    case CM384_CSR_BLOCK_INDEX:
      return block_.index;
    case CM384_CSR_BLOCK_COUNT:
      return block_.count;
    case CM384_CSR_ARGUMENTS:
      return block_.arguments;
    case CM384_CSR_SYS_COUNT:
      return die_.sys_count(die_.clock().start(cycle));
    case CM384_CSR_CORE:
      return number_;
    case CM384_CSR_CORE_KIND:
      return die_.cluster().is_cube(number_) ? 1 : 0;
    case CM384_CSR_SUB_BLOCK:
      return block_.sub_block;
    case CM384_CSR_MERGED:
      return pipes_->merged(scalar_.pc());
    case CM384_CSR_DIE:
      return static_cast<std::uint64_t>(die_.number());
    default:
      return 0;
  }
}

void Core::page_allocated() {
  die_.progressed();
}

std::string Core::place_text(std::uint64_t pc) const {
  return program_ == nullptr ? pc_text(pc) : program_->image().describe(pc);
}

void Core::rethrow(const PipeFault& fault) {
  const std::string report = fmt::format("die {} core {}: {}", die_.number(), number_,
                                         fault.text([this](std::uint64_t pc) { return place_text(pc); }));
  if (debugger_ != nullptr) debugger_->faulted(scalar_, report);
  throw MachineError(report);
}

bool Core::peek(std::uint64_t address, std::byte& to) const {
  const std::uint64_t offset = cm384_gm_offset(address);
  const BackingStore* store = die_.listener().memory_of(address);
  if (store == nullptr || !store->contains(offset, 1)) return false;
  store->read_bytes(offset, &to, 1);
  return true;
}

bool Core::poke(std::uint64_t address, std::byte from) {
  const std::uint64_t offset = cm384_gm_offset(address);
  BackingStore* store = die_.listener().memory_of(address);
  if (store == nullptr || !store->contains(offset, 1)) return false;
  store->write_bytes(offset, &from, 1);
  return true;
}

std::string Core::report() const {
  std::string pipes = pipes_->waiting_for([this](std::uint64_t pc) { return place_text(pc); });
  while (!pipes.empty() && pipes.back() == '\n') pipes.pop_back();
  for (std::size_t at = 0; (at = pipes.find('\n', at)) != std::string::npos;) pipes.replace(at, 1, "; ");
  return fmt::format("die {} core {}: {} since {:.3f} us{}{}", die_.number(), number_, scalar_.location(),
                     die_.clock().start(scalar_.cycle()).us(), pipes.empty() ? "" : "; ", pipes);
}

}  // namespace cm384::npu
