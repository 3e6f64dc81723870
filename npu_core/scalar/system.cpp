// What leaves the plain instruction set: pipe instructions, host calls, traps; and the atomics.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/error.h"
#include "firmware/abi/isa.h"
#include "npu_core/scalar/decode.h"
#include "npu_core/scalar/float_environment.h"
#include "npu_core/scalar/hart.h"
#include "npu_core/scalar/scalar_core.h"

namespace cm384::npu {
namespace {

constexpr std::uint64_t kMie = 1u << 3, kMpie = 1u << 7, kMpp = 3u << 11;

std::uint64_t sign_extend_word(std::uint64_t value) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(value)));
}

template <class Signed, class Unsigned>
std::uint64_t combine(std::uint32_t function, std::uint64_t old, std::uint64_t operand) {
  const auto a = static_cast<Unsigned>(old), b = static_cast<Unsigned>(operand);
  const auto sa = static_cast<Signed>(a), sb = static_cast<Signed>(b);
  switch (function) {
    case 0x00:
      return static_cast<Unsigned>(a + b);
    case 0x04:
      return a ^ b;
    case 0x08:
      return a | b;
    case 0x0c:
      return a & b;
    case 0x10:
      return sa < sb ? a : b;
    case 0x14:
      return sa > sb ? a : b;
    case 0x18:
      return std::min(a, b);
    case 0x1c:
      return std::max(a, b);
    default:  // swap
      return b;
  }
}

const char* describe_cause(std::uint32_t cause) {
  switch (cause) {
    case 1:
      return "instruction fetch outside memory";
    case 2:
      return "illegal instruction";
    case 3:
      return "ebreak";
    case 4:
      return "misaligned load-reserved";
    case 5:
      return "load outside memory";
    case 6:
      return "misaligned atomic";
    case 7:
      return "store outside memory";
    default:
      return "ecall without a handler";
  }
}

}  // namespace

std::string ScalarCore::stack_fault() const {
  constexpr std::uint64_t kEnd = CM384_PRIVATE_BASE + CM384_PRIVATE_BYTES;
  if (!program_->has_stack()) return {};
  if (stack_in_program())
    return fmt::format(
        "; the stack has run out of its memory: its pointer, {:#x}, is within the program, which ends at "
        "{:#x}",
        x_[2], program_->text_high());
  if (PrivateMemory::contains(x_[2]) || x_[2] == kEnd) return {};
  return fmt::format("; the stack pointer, {:#x}, is outside of the stack's memory, which is below {:#x}",
                     x_[2], kEnd);
}

void ScalarCore::trap(std::uint32_t cause, std::uint64_t value) {
  if (state_.mtvec == 0) {
    const bool below = cause == 7 && stack_in_program();
    throw MachineError(fmt::format("{}: {} at {}, {} {:#x}, cycle {}{}", hart_name(number_),
                                   below ? "store below the stack" : describe_cause(cause), location(),
                                   cause == 2 ? "encoding" : "address", value, cycle_, stack_fault()));
  }
  ++counters_.traps;
  state_.mepc = pc_;
  state_.mcause = cause;
  state_.mtval = value;
  const std::uint64_t enabled = state_.mstatus & kMie;
  state_.mstatus = (state_.mstatus & ~(kMie | kMpie | kMpp)) | (enabled != 0 ? kMpie : 0) |
                   std::uint64_t{state_.privilege} << 11;
  state_.privilege = 3;
  pc_ = state_.mtvec & ~std::uint64_t{3};
  cycle_ += 1 + parameters_.trap;
}

void ScalarCore::return_from_trap() {
  const std::uint64_t enabled = state_.mstatus & kMpie;
  state_.privilege = static_cast<std::uint8_t>((state_.mstatus & kMpp) >> 11);
  state_.mstatus = (state_.mstatus & ~(kMie | kMpp)) | kMpie | (enabled != 0 ? kMie : 0);
  pc_ = state_.mepc & ~std::uint64_t{1};
  cycle_ += 1 + parameters_.trap;
}

std::uint64_t AtomicUpdate::operator()(std::uint64_t old) const {
  return bytes == 4 ? static_cast<std::uint32_t>(combine<std::int32_t, std::uint32_t>(function, old, operand))
                    : combine<std::int64_t, std::uint64_t>(function, old, operand);
}

ScalarCore::Access ScalarCore::amo(const Operation& op) {
  const std::uint32_t raw = raw_of(op), function = raw >> 27;
  const bool word = ((raw >> 12) & 7) == 2;
  const unsigned bytes = word ? 4 : 8;
  const std::uint64_t address = x_[op.rs1];
  const bool is_load_reserved = function == 2, is_store_conditional = function == 3;
  if (address % bytes != 0) {
    fault_cause_ = is_load_reserved ? 4 : 6;
    fault_value_ = address;
    return Access::faulted;
  }
  const std::uint64_t granule = address / 64;
  const std::uint64_t operand_bit = op.rs2 == 0 ? 0 : std::uint64_t{1} << op.rs2;
  const std::uint64_t result_bit = op.rd == 32 ? 0 : std::uint64_t{1} << op.rd;
  const bool operand_tainted = (taint_ & operand_bit) != 0;
  if (is_store_conditional) {
    const bool succeeds = state_.reservation == granule;
    if (succeeds) {
      const Access access = store(address, bytes, x_[op.rs2], operand_tainted);
      if (access != Access::done) return access;
    }
    state_.reservation = ~std::uint64_t{0};
    x_[op.rd] = succeeds ? 0 : 1;
    taint_ &= ~result_bit;
    return Access::done;
  }
  std::uint64_t old = 0;
  bool tainted = false;
  const AtomicUpdate update{function, bytes, x_[op.rs2], operand_tainted};
  if (!is_load_reserved && is_global(address)) {
    const Access access = amo_in_memory(address, update, old, tainted);
    if (access != Access::done) return access;
  } else {
    Access access = load(address, bytes, old, tainted, is_load_reserved ? FillKind::load : FillKind::store);
    if (access != Access::done) return access;
    if (is_load_reserved) {
      state_.reservation = granule;
    } else {
      access = store(address, bytes, update(old), operand_tainted || (tainted && function != 1));
      if (access != Access::done) return access;
    }
  }
  x_[op.rd] = word ? sign_extend_word(old) : old;
  taint_ = tainted ? taint_ | result_bit : taint_ & ~result_bit;
  return Access::done;
}

ScalarCore::Access ScalarCore::pipe(const Operation& op) {
  static_assert(CM384_PRIVATE_BASE + CM384_PRIVATE_BYTES <= std::uint64_t{1} << 32);  // of the pc
  const std::uint32_t raw = raw_of(op);
  PipeInstruction instruction;
  instruction.instruction_class = static_cast<std::uint8_t>((raw >> 12) & 7);
  instruction.operation = op.rd;
  instruction.type = static_cast<std::uint8_t>((raw >> 25) & 3);
  instruction.a = x_[op.rs1];
  instruction.b = x_[op.rs2];
  instruction.c = x_[op.rs3];
  instruction.pc = static_cast<std::uint32_t>(pc_);
  instruction.tainted_scalar = op.rs2 != 0 && (taint_ >> op.rs2 & 1) != 0;
  collect_float_flags();
  const IssueAnswer answer = environment_.pipe(instruction, cycle_);
  FloatEnvironment::clear();
  if (answer.parked) return Access::parked;
  cycle_ = std::max(cycle_, answer.release_cycle - 1);
  return Access::done;
}

ScalarCore::Access ScalarCore::host_call(const Operation& op) {
  const std::uint32_t number = raw_of(op) >> 25;
  std::uint64_t result = 0;
  if (number == CM384_HOST_EXIT && program_->rules().write_back && write_back_all() == Access::parked)
    return Access::parked;
  collect_float_flags();
  const IssueAnswer answer = environment_.host_call(number, x_[op.rs1], x_[op.rs2], cycle_, result);
  FloatEnvironment::clear();
  if (answer.parked) return Access::parked;
  cycle_ = std::max(cycle_, answer.release_cycle - 1);
  x_[op.rd] = result;
  ended_ = number == CM384_HOST_EXIT;
  if (ended_) counters_.dirty_at_end = dirty_global_lines();
  return Access::done;
}

}  // namespace cm384::npu
