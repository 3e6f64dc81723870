#include "npu_core/scalar/decode.h"

#include "firmware/abi/isa.h"

namespace cm384::npu {
namespace {

struct Fields {
  std::uint32_t raw;
  std::uint32_t opcode() const { return raw & 0x7f; }
  std::uint32_t funct3() const { return (raw >> 12) & 7; }
  std::uint32_t funct7() const { return raw >> 25; }
  std::uint32_t rs2() const { return (raw >> 20) & 31; }
  std::int64_t i() const { return static_cast<std::int32_t>(raw) >> 20; }
  std::int64_t s() const {
    return (static_cast<std::int32_t>(raw & 0xfe000000u) >> 20) | static_cast<std::int32_t>((raw >> 7) & 31);
  }
  std::int64_t b() const {
    const std::uint32_t value =
        ((raw >> 31) << 12) | ((raw >> 7 & 1) << 11) | ((raw >> 25 & 0x3f) << 5) | ((raw >> 8 & 15) << 1);
    return static_cast<std::int32_t>(value << 19) >> 19;
  }
  std::int64_t u() const { return static_cast<std::int32_t>(raw & 0xfffff000u); }
  std::int64_t j() const {
    const std::uint32_t value = ((raw >> 31) << 20) | ((raw >> 12 & 0xff) << 12) | ((raw >> 20 & 1) << 11) |
                                ((raw >> 21 & 0x3ff) << 1);
    return static_cast<std::int32_t>(value << 11) >> 11;
  }
};

Kind op_kind(const Fields& f) {
  static constexpr Kind kBase[8] = {Kind::add,  Kind::sll, Kind::slt, Kind::sltu,
                                    Kind::xor_, Kind::srl, Kind::or_, Kind::and_};
  static constexpr Kind kMultiply[8] = {Kind::mul, Kind::mulh, Kind::mulhsu, Kind::mulhu,
                                        Kind::div, Kind::divu, Kind::rem,    Kind::remu};
  if (f.funct7() == 0) return kBase[f.funct3()];
  if (f.funct7() == 1) return kMultiply[f.funct3()];
  if (f.funct7() == 0x20 && f.funct3() == 0) return Kind::sub;
  if (f.funct7() == 0x20 && f.funct3() == 5) return Kind::sra;
  return Kind::illegal;
}

Kind op32_kind(const Fields& f) {
  switch (f.funct7() << 3 | f.funct3()) {
    case 0 << 3 | 0:
      return Kind::addw;
    case 0 << 3 | 1:
      return Kind::sllw;
    case 0 << 3 | 5:
      return Kind::srlw;
    case 0x20 << 3 | 0:
      return Kind::subw;
    case 0x20 << 3 | 5:
      return Kind::sraw;
    case 1 << 3 | 0:
      return Kind::mulw;
    case 1 << 3 | 4:
      return Kind::divw;
    case 1 << 3 | 5:
      return Kind::divuw;
    case 1 << 3 | 6:
      return Kind::remw;
    case 1 << 3 | 7:
      return Kind::remuw;
    default:
      return Kind::illegal;
  }
}

void immediate_operation(const Fields& f, Operation& op) {
  static constexpr Kind kKinds[8] = {Kind::addi, Kind::slli, Kind::slti, Kind::sltiu,
                                     Kind::xori, Kind::srli, Kind::ori,  Kind::andi};
  op.kind = kKinds[f.funct3()];
  op.immediate = f.i();
  if (f.funct3() == 1 || f.funct3() == 5) {
    const std::uint32_t high = f.raw >> 26;
    op.immediate = (f.raw >> 20) & 63;
    if (f.funct3() == 5 && high == 0x10) {
      op.kind = Kind::srai;
    } else if (high != 0) {
      op.kind = Kind::illegal;
    }
  }
  if (op.kind == Kind::addi && op.rs1 == 0) op.kind = Kind::li;
  if (op.kind == Kind::addi && op.immediate == 0) op.kind = Kind::mv;
}

void immediate32_operation(const Fields& f, Operation& op) {
  op.immediate = f.rs2();
  const std::uint32_t selector = f.funct7() << 3 | f.funct3();
  if (f.funct3() == 0) {
    op.kind = Kind::addiw;
    op.immediate = f.i();
  } else if (selector == 1) {
    op.kind = Kind::slliw;
  } else if (selector == 5) {
    op.kind = Kind::srliw;
  } else if (selector == (0x20 << 3 | 5)) {
    op.kind = Kind::sraiw;
  }
}

Kind amo_kind(const Fields& f) {
  if (f.funct3() != 2 && f.funct3() != 3) return Kind::illegal;
  switch (f.raw >> 27) {
    case 0x02:
      return f.rs2() == 0 ? Kind::amo : Kind::illegal;
    case 0x00:
    case 0x01:
    case 0x03:
    case 0x04:
    case 0x08:
    case 0x0c:
    case 0x10:
    case 0x14:
    case 0x18:
    case 0x1c:
      return Kind::amo;
    default:
      return Kind::illegal;
  }
}

bool has_rounding(Kind kind) {
  switch (kind) {
    case Kind::fadd:
    case Kind::fsub:
    case Kind::fmul:
    case Kind::fdiv:
    case Kind::fsqrt:
    case Kind::fmadd:
    case Kind::fmsub:
    case Kind::fnmsub:
    case Kind::fnmadd:
    case Kind::fcvt_w_s:
    case Kind::fcvt_wu_s:
    case Kind::fcvt_l_s:
    case Kind::fcvt_lu_s:
    case Kind::fcvt_s_w:
    case Kind::fcvt_s_wu:
    case Kind::fcvt_s_l:
    case Kind::fcvt_s_lu:
      return true;
    default:
      return false;
  }
}

Kind float_kind(const Fields& f) {
  static constexpr Kind kToInteger[4] = {Kind::fcvt_w_s, Kind::fcvt_wu_s, Kind::fcvt_l_s, Kind::fcvt_lu_s};
  static constexpr Kind kFromInteger[4] = {Kind::fcvt_s_w, Kind::fcvt_s_wu, Kind::fcvt_s_l, Kind::fcvt_s_lu};
  static constexpr Kind kSign[3] = {Kind::fsgnj, Kind::fsgnjn, Kind::fsgnjx};
  static constexpr Kind kCompare[3] = {Kind::fle, Kind::flt, Kind::feq};
  switch (f.funct7()) {
    case 0x00:
      return Kind::fadd;
    case 0x04:
      return Kind::fsub;
    case 0x08:
      return Kind::fmul;
    case 0x0c:
      return Kind::fdiv;
    case 0x2c:
      return f.rs2() == 0 ? Kind::fsqrt : Kind::illegal;
    case 0x10:
      return f.funct3() < 3 ? kSign[f.funct3()] : Kind::illegal;
    case 0x14:
      return f.funct3() == 0 ? Kind::fmin : f.funct3() == 1 ? Kind::fmax : Kind::illegal;
    case 0x50:
      return f.funct3() < 3 ? kCompare[f.funct3()] : Kind::illegal;
    case 0x60:
      return f.rs2() < 4 ? kToInteger[f.rs2()] : Kind::illegal;
    case 0x68:
      return f.rs2() < 4 ? kFromInteger[f.rs2()] : Kind::illegal;
    case 0x70:
      if (f.rs2() != 0) return Kind::illegal;
      return f.funct3() == 0 ? Kind::fmv_x_w : f.funct3() == 1 ? Kind::fclass : Kind::illegal;
    case 0x78:
      return f.rs2() == 0 && f.funct3() == 0 ? Kind::fmv_w_x : Kind::illegal;
    default:
      return Kind::illegal;
  }
}

void float_operation(const Fields& f, Operation& op) {
  if (has_rounding(op.kind)) {
    const std::uint32_t rounding = f.funct3();
    if (rounding == 5 || rounding == 6) op.kind = Kind::illegal;
    op.immediate = static_cast<std::int64_t>(f.raw) << 8 | (rounding == 7 ? 0 : rounding);
  } else {
    op.immediate = static_cast<std::int64_t>(f.raw) << 8;
  }
}

void system_operation(const Fields& f, Operation& op) {
  op.immediate = static_cast<std::int64_t>(f.raw) << 8;
  if (f.funct3() == 0) {
    switch (f.raw) {
      case 0x00000073:
        op.kind = Kind::ecall;
        return;
      case 0x00100073:
        op.kind = Kind::ebreak;
        return;
      case 0x30200073:
        op.kind = Kind::mret;
        return;
      case 0x10500073:  // wfi: no interrupt ever comes, so it does not wait
        op.kind = Kind::nop;
        return;
      default:
        op.kind = f.funct7() == 9 ? Kind::nop : Kind::illegal;  // sfence.vma: there is no translation
        return;
    }
  }
  op.kind = f.funct3() == 4 ? Kind::illegal : (f.funct3() & 4) != 0 ? Kind::csri : Kind::csr;
}

}  // namespace

Operation decode(std::uint32_t raw, std::uint64_t pc) {
  static constexpr Kind kLoads[8] = {Kind::lb,  Kind::lh,  Kind::lw,  Kind::ld,
                                     Kind::lbu, Kind::lhu, Kind::lwu, Kind::illegal};
  static constexpr Kind kStores[8] = {Kind::sb,      Kind::sh,      Kind::sw,      Kind::sd,
                                      Kind::illegal, Kind::illegal, Kind::illegal, Kind::illegal};
  static constexpr Kind kBranches[8] = {Kind::beq, Kind::bne, Kind::illegal, Kind::illegal,
                                        Kind::blt, Kind::bge, Kind::bltu,    Kind::bgeu};
  static constexpr Kind kFused[4] = {Kind::fmadd, Kind::fmsub, Kind::fnmsub, Kind::fnmadd};
  const Fields f{raw};
  Operation op;
  op.rd = static_cast<std::uint8_t>((raw >> 7) & 31);
  op.rs1 = static_cast<std::uint8_t>((raw >> 15) & 31);
  op.rs2 = static_cast<std::uint8_t>((raw >> 20) & 31);
  op.rs3 = static_cast<std::uint8_t>(raw >> 27);
  switch (f.opcode()) {
    case 0x33:
      op.kind = op_kind(f);
      if (op.kind == Kind::add && op.rs1 == 0) {  // c.mv
        op.kind = Kind::mv;
        op.rs1 = op.rs2;
      }
      break;
    case 0x3b:
      op.kind = op32_kind(f);
      break;
    case 0x13:
      immediate_operation(f, op);
      break;
    case 0x1b:
      immediate32_operation(f, op);
      break;
    case 0x37:
      op.kind = Kind::li;
      op.immediate = f.u();
      break;
    case 0x17:
      op.kind = Kind::li;
      op.immediate = static_cast<std::int64_t>(pc + static_cast<std::uint64_t>(f.u()));
      break;
    case 0x6f:
      op.kind = Kind::jal;
      op.immediate = static_cast<std::int64_t>(pc + static_cast<std::uint64_t>(f.j()));
      break;
    case 0x67:
      op.kind = f.funct3() == 0 ? Kind::jalr : Kind::illegal;
      op.immediate = f.i();
      break;
    case 0x63:
      op.kind = kBranches[f.funct3()];
      op.immediate = static_cast<std::int64_t>(pc + static_cast<std::uint64_t>(f.b()));
      break;
    case 0x03:
      op.kind = kLoads[f.funct3()];
      op.immediate = f.i();
      break;
    case 0x23:
      op.kind = kStores[f.funct3()];
      op.immediate = f.s();
      break;
    case 0x07:
      op.kind = f.funct3() == 2 ? Kind::flw : Kind::illegal;
      op.immediate = f.i();
      break;
    case 0x27:
      op.kind = f.funct3() == 2 ? Kind::fsw : Kind::illegal;
      op.immediate = f.s();
      break;
    case 0x2f:
      op.kind = amo_kind(f);
      op.immediate = static_cast<std::int64_t>(raw) << 8;
      break;
    case 0x53:
      op.kind = float_kind(f);
      float_operation(f, op);
      break;
    case 0x43:
    case 0x47:
    case 0x4b:
    case 0x4f:
      op.kind = ((raw >> 25) & 3) == 0 ? kFused[(f.opcode() >> 2) & 3] : Kind::illegal;
      float_operation(f, op);
      break;
    case 0x0f:
      op.kind = f.funct3() == 0 ? Kind::fence : f.funct3() == 1 ? Kind::fence_i : Kind::illegal;
      break;
    case 0x73:
      system_operation(f, op);
      break;
    case CM384_OPCODE_PIPE:
      op.kind = f.funct3() == CM384_CLASS_SYNC && op.rd == CM384_DCCI ? Kind::dcci : Kind::pipe;
      op.immediate = static_cast<std::int64_t>(raw) << 8;
      break;
    case CM384_OPCODE_HOST:
      op.kind = f.funct3() == 0 ? Kind::host : Kind::illegal;
      op.immediate = static_cast<std::int64_t>(raw) << 8;
      break;
    default:
      break;
  }
  if (op.kind == Kind::illegal) op.immediate = static_cast<std::int64_t>(raw) << 8;
  if (op.rd == 0 && writes_x(op.kind)) op.rd = 32;
  return op;
}

}  // namespace cm384::npu
