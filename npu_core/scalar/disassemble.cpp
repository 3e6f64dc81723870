#include "npu_core/scalar/disassemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace cm384::npu {
namespace {

constexpr const char* kX[33] = {"zero", "ra", "sp", "gp", "tp",  "t0",  "t1", "t2", "s0", "s1", "a0",
                                "a1",   "a2", "a3", "a4", "a5",  "a6",  "a7", "s2", "s3", "s4", "s5",
                                "s6",   "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6", "zero"};

bool is_float(Kind kind) {
  return kind >= Kind::fadd && kind <= Kind::fcvt_s_lu;
}

bool has_immediate(Kind kind) {
  return (kind >= Kind::addi && kind <= Kind::li) || kind == Kind::jalr;
}

}  // namespace

std::string disassemble(const Operation& op) {
  std::string name = mnemonic(op.kind);
  if (name.back() == '_') name.pop_back();
  std::replace(name.begin(), name.end(), '_', '.');
  const std::uint32_t raw = raw_of(op);
  const unsigned bytes = access_bytes(op.kind);
  if (bytes != 0) {
    const bool store = op.kind == Kind::fsw || (op.kind >= Kind::sb && op.kind <= Kind::sd);
    const unsigned value = store ? op.rs2 : op.rd;
    const bool in_f = op.kind == Kind::flw || op.kind == Kind::fsw;
    return fmt::format("{} {},{}({})", name, in_f ? fmt::format("f{}", value) : kX[value], op.immediate,
                       kX[op.rs1]);
  }
  switch (op.kind) {
    case Kind::pipe:
    case Kind::dcci:
      return fmt::format("{} class {} op {} type {} {},{},{}", name, (raw >> 12) & 7, op.rd, (raw >> 25) & 3,
                         kX[op.rs1], kX[op.rs2], kX[op.rs3]);
    case Kind::host:
      return fmt::format("host {} {},{},{}", raw >> 25, kX[op.rd], kX[op.rs1], kX[op.rs2]);
    case Kind::csr:
      return fmt::format("csr {},{:#x},{}", kX[op.rd], raw >> 20, kX[op.rs1]);
    case Kind::csri:
      return fmt::format("csr {},{:#x},{}", kX[op.rd], raw >> 20, op.rs1);
    case Kind::jal:
      return fmt::format("jal {},{:#x}", kX[op.rd], op.immediate);
    case Kind::beq:
    case Kind::bne:
    case Kind::blt:
    case Kind::bge:
    case Kind::bltu:
    case Kind::bgeu:
      return fmt::format("{} {},{},{:#x}", name, kX[op.rs1], kX[op.rs2], op.immediate);
    case Kind::mv:
      return fmt::format("mv {},{}", kX[op.rd], kX[op.rs1]);
    case Kind::illegal:
      return fmt::format("illegal {:#x}", raw);
    default:
      break;
  }
  const OperandUse use = operand_use(op);
  std::string out = name;
  const char* separator = " ";
  const auto show = [&](unsigned index, bool x, bool f) {
    if (!x && !f) return;
    out += separator + (f ? fmt::format("f{}", index) : std::string(kX[index]));
    separator = ",";
  };
  const bool f_destination = (use.writes >> 32) != 0;
  if (use.reads != 0 || use.writes != 0) show(op.rd, !f_destination, f_destination);
  const bool f_sources = is_float(op.kind) && (use.reads >> 32) != 0;
  if (use.reads != 0) show(op.rs1, !f_sources, f_sources);
  const int sources = std::popcount(use.reads);
  if (!has_immediate(op.kind) && sources >= 2) show(op.rs2, !f_sources, f_sources);
  if (op.kind >= Kind::fmadd && op.kind <= Kind::fnmadd) show(op.rs3, false, true);
  if (has_immediate(op.kind)) out += fmt::format("{}{}", separator, op.immediate);
  return out;
}

}  // namespace cm384::npu
