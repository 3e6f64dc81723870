// Control and status registers.
#include "firmware/abi/isa.h"
#include "npu_core/scalar/decode.h"
#include "npu_core/scalar/float_environment.h"
#include "npu_core/scalar/scalar_core.h"

namespace cm384::npu {
namespace {

constexpr std::uint64_t bit(char letter) {
  return std::uint64_t{1} << (letter - 'A');
}
constexpr std::uint64_t kMisa =
    std::uint64_t{2} << 62 | bit('A') | bit('C') | bit('F') | bit('I') | bit('M') | bit('U') | bit('X');
// MIE, MPIE, MPP, FS are kept; FS also shows as SD.
constexpr std::uint64_t kMstatusMask = 1u << 3 | 1u << 7 | 3u << 11 | 3u << 13 | 1u << 17;

// Registers that exist, read as zero and ignore writes: address translation, PMP, non-maskable interrupts,
// delegation, supervisor and environment configuration, debug triggers, event counters.
bool is_stub(std::uint32_t number) {
  const auto within = [&](std::uint32_t low, std::uint32_t high) { return number >= low && number <= high; };
  return within(0x100, 0x106) || number == 0x10a || within(0x140, 0x144) || number == 0x14d ||
         number == 0x180 || number == 0x303 || number == 0x306 || number == 0x30a || number == 0x310 ||
         within(0x320, 0x33f) || number == 0x344 || within(0x3a0, 0x3ef) || within(0x740, 0x744) ||
         number == 0x747 || within(0x757, 0x757) || within(0x7a0, 0x7a8) || within(0xb03, 0xb1f) ||
         within(0xc03, 0xc1f) || within(0xf11, 0xf13) || number == 0xf15;
}

}  // namespace

bool ScalarCore::csr(const Operation& op) {
  const std::uint32_t raw = raw_of(op), number = raw >> 20, function = (raw >> 12) & 3;
  const std::uint64_t source = op.kind == Kind::csri ? op.rs1 : x_[op.rs1];
  const bool writes = function == 1 || op.rs1 != 0;
  const bool read_only = (number >> 10) == 3;
  if (((number >> 8) & 3) > state_.privilege || (writes && read_only)) return false;
  std::uint64_t old = 0;
  if (!read_csr(number, old)) return false;
  if (writes) {
    const std::uint64_t value = function == 1 ? source : function == 2 ? old | source : old & ~source;
    if (!write_csr(number, value)) return false;
  }
  x_[op.rd] = old;
  // Accrued float flags of payload values are payload too.
  const bool is_flags = number == 0x001 || number == 0x003;
  if (is_flags && (taint_ & 1) != 0 && op.rd != 32) taint_ |= std::uint64_t{1} << op.rd;
  if (is_flags && writes && function == 1) taint_ &= ~std::uint64_t{1};
  return true;
}

bool ScalarCore::read_csr(std::uint32_t number, std::uint64_t& value) {
  switch (number) {
    case 0x001:
      collect_float_flags();
      value = state_.float_flags;
      return true;
    case 0x002:
      value = state_.rounding;
      return true;
    case 0x003:
      collect_float_flags();
      value = state_.fcsr();
      return true;
    case 0x105:
      value = state_.stvec;
      return true;
    case 0x300:
      value = state_.mstatus | ((state_.mstatus & (3u << 13)) == (3u << 13) ? std::uint64_t{1} << 63 : 0);
      return true;
    case 0x301:
      value = kMisa;
      return true;
    case 0x302:
      value = state_.medeleg;
      return true;
    case 0x304:
      value = state_.mie;
      return true;
    case 0x305:
      value = state_.mtvec;
      return true;
    case 0x340:
      value = state_.mscratch;
      return true;
    case 0x341:
      value = state_.mepc;
      return true;
    case 0x342:
      value = state_.mcause;
      return true;
    case 0x343:
      value = state_.mtval;
      return true;
    case 0xb00:
    case 0xc00:
    case CM384_CSR_CYCLE:
      value = static_cast<std::uint64_t>(cycle_);
      return true;
    case 0xb02:
    case 0xc02:
      value = instructions_;
      return true;
    case 0xc01:
      return read_environment_csr(CM384_CSR_SYS_COUNT, value);
    case 0xf14:
      value = number_;
      return true;
    case CM384_CSR_BLOCK_INDEX:
    case CM384_CSR_BLOCK_COUNT:
    case CM384_CSR_ARGUMENTS:
    case CM384_CSR_SYS_COUNT:
    case CM384_CSR_CORE:
    case CM384_CSR_DIE:
    case CM384_CSR_CORE_KIND:
    case CM384_CSR_SUB_BLOCK:
    case CM384_CSR_MERGED:
      return read_environment_csr(number, value);
    default:
      value = 0;
      return is_stub(number);
  }
}

bool ScalarCore::read_environment_csr(std::uint32_t number, std::uint64_t& value) {
  collect_float_flags();
  value = environment_.csr(number, cycle_);
  FloatEnvironment::clear();
  return true;
}

bool ScalarCore::write_csr(std::uint32_t number, std::uint64_t value) {
  switch (number) {
    case 0x001:
      FloatEnvironment::clear();
      state_.float_flags = static_cast<std::uint8_t>(value & 31);
      return true;
    case 0x002:
      state_.rounding = static_cast<std::uint8_t>(value & 7);
      return true;
    case 0x003:
      FloatEnvironment::clear();
      state_.set_fcsr(static_cast<std::uint32_t>(value));
      return true;
    case 0x105:
      state_.stvec = value;
      return true;
    case 0x300:
      state_.mstatus = value & kMstatusMask;
      // Machine and user mode exist.
      if ((state_.mstatus & (3u << 11)) != (3u << 11)) state_.mstatus &= ~std::uint64_t{3u << 11};
      return true;
    case 0x302:  // kept, but every trap goes to machine mode
      state_.medeleg = value;
      return true;
    case 0x304:
      state_.mie = value;
      return true;
    case 0x305:
      state_.mtvec = value & ~std::uint64_t{3};
      return true;
    case 0x340:
      state_.mscratch = value;
      return true;
    case 0x341:
      state_.mepc = value & ~std::uint64_t{1};
      return true;
    case 0x342:
      state_.mcause = value;
      return true;
    case 0x343:
      state_.mtval = value;
      return true;
    case 0x301:
    case 0xb00:
    case 0xb02:
      return true;
    default:
      return is_stub(number);
  }
}

}  // namespace cm384::npu
