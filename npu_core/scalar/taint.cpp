// Payload mode `control`: what a value computed from payload may be used for.
#include <fmt/format.h>

#include "base/text/error.h"
#include "firmware/abi/isa.h"
#include "npu_core/scalar/decode.h"
#include "npu_core/scalar/hart.h"
#include "npu_core/scalar/scalar_core.h"

namespace cm384::npu {
namespace {

std::uint64_t x_bit(unsigned index) {
  return index == 0 ? 0 : std::uint64_t{1} << index;
}

// Whether rs2 of the pipe instruction is a scalar that the pipe computes with.
bool takes_scalar(std::uint32_t raw) {
  const std::uint32_t instruction_class = (raw >> 12) & 7, operation = (raw >> 7) & 31;
  if (instruction_class == CM384_CLASS_VECTOR) {
    switch (operation) {
      case CM384_VADDS:
      case CM384_VMULS:
      case CM384_VMAXS:
      case CM384_VMINS:
      case CM384_VDUP:
      case CM384_VAXPY:
      case CM384_VSHLS:
      case CM384_VSHRS:
        return true;
      default:
        return false;
    }
  }
  return instruction_class == CM384_CLASS_REDUCE && operation >= CM384_VCMPS_EQ &&
         operation <= CM384_VCMPS_GE;
}

bool raises_flags(Kind kind) {
  switch (kind) {
    case Kind::fsgnj:
    case Kind::fsgnjn:
    case Kind::fsgnjx:
    case Kind::fmv_x_w:
    case Kind::fmv_w_x:
    case Kind::fclass:
      return false;
    default:
      return kind >= Kind::fadd && kind <= Kind::fcvt_s_lu;
  }
}

}  // namespace

bool ScalarCore::needs_checks(const Block& block) const {
  return trace_ != nullptr || turn_ != nullptr || (taint_ & block.uses) != 0;
}

void ScalarCore::payload_error(const char* what) const {
  throw MachineError(
      fmt::format("{}: {} depends on tensor payload, which payload mode control does not "
                  "compute, at {}, cycle {}",
                  hart_name(number_), what, location(), cycle_));
}

bool ScalarCore::value_is_tainted(const Operation& op) const {
  const std::uint64_t bit = op.kind == Kind::fsw ? std::uint64_t{1} << (32 + op.rs2) : x_bit(op.rs2);
  return (taint_ & bit) != 0;
}

void ScalarCore::spread_taint(const Operation& op) {
  const OperandUse use = operand_use(op);
  const std::uint64_t sources = taint_ & use.reads;
  switch (op.kind) {
    case Kind::lb:
    case Kind::lh:
    case Kind::lw:
    case Kind::ld:
    case Kind::lbu:
    case Kind::lhu:
    case Kind::lwu:
    case Kind::flw:
      if (sources != 0) payload_error("a load's address");
      break;
    case Kind::sb:
    case Kind::sh:
    case Kind::sw:
    case Kind::sd:
    case Kind::fsw:
    case Kind::amo:
      if ((taint_ & x_bit(op.rs1)) != 0) payload_error("a store's address");
      return;
    case Kind::beq:
    case Kind::bne:
    case Kind::blt:
    case Kind::bge:
    case Kind::bltu:
    case Kind::bgeu:
      if (sources != 0) payload_error("a branch");
      return;
    case Kind::jalr:
      if (sources != 0) payload_error("a jump target");
      break;
    case Kind::csr:
      if (sources != 0) payload_error("a CSR write");
      break;
    case Kind::host:
      if (sources != 0) payload_error("an argument of a host call");
      break;
    case Kind::dcci:
      if (sources != 0) payload_error("an operand of a cache clean");
      return;
    case Kind::pipe:
      if ((taint_ & (x_bit(op.rs1) | x_bit(op.rs3))) != 0 ||
          ((taint_ & x_bit(op.rs2)) != 0 && !takes_scalar(raw_of(op)))) {
        payload_error("an operand of a pipe instruction");
      }
      return;
    default:
      if (sources != 0) {
        taint_ |= use.writes;
        if (raises_flags(op.kind)) taint_ |= 1;
        return;
      }
      break;
  }
  taint_ &= ~use.writes;
}

}  // namespace cm384::npu
