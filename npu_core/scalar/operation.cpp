// What a decoded operation reads, writes and is called.
#include "npu_core/scalar/decode.h"

namespace cm384::npu {
namespace {

enum class Format : std::uint8_t { N, R, I, U, L, LF, S, SF, B, FR, F1, FM, FC, FX, XF, P };

constexpr Format kFormats[] = {
#define OPERATION(name, format, latency) Format::format,
#include "npu_core/scalar/operations.def"
#undef OPERATION
};
constexpr const char* kMnemonics[] = {
#define OPERATION(name, format, latency) #name,
#include "npu_core/scalar/operations.def"
#undef OPERATION
};

}  // namespace

bool writes_x(Kind kind) {
  const Format format = kFormats[static_cast<std::size_t>(kind)];
  return format == Format::R || format == Format::I || format == Format::U || format == Format::L ||
         format == Format::FC || format == Format::FX;
}

OperandUse operand_use(const Operation& op) {
  const auto x = [](unsigned index) -> std::uint64_t {
    return index == 0 || index > 31 ? 0 : std::uint64_t{1} << index;
  };
  const auto f = [](unsigned index) -> std::uint64_t { return std::uint64_t{1} << (32 + index); };
  switch (kFormats[static_cast<std::size_t>(op.kind)]) {
    case Format::N:
      return {};
    case Format::R:
      return {x(op.rs1) | x(op.rs2), x(op.rd)};
    case Format::I:
    case Format::L:
      return {x(op.rs1), x(op.rd)};
    case Format::U:
      return {0, x(op.rd)};
    case Format::LF:
      return {x(op.rs1), f(op.rd)};
    case Format::S:
    case Format::B:
      return {x(op.rs1) | x(op.rs2), 0};
    case Format::SF:
      return {x(op.rs1) | f(op.rs2), 0};
    case Format::FR:
      return {f(op.rs1) | f(op.rs2), f(op.rd)};
    case Format::F1:
      return {f(op.rs1), f(op.rd)};
    case Format::FM:
      return {f(op.rs1) | f(op.rs2) | f(op.rs3), f(op.rd)};
    case Format::FC:
      return {f(op.rs1) | f(op.rs2), x(op.rd)};
    case Format::FX:
      return {f(op.rs1), x(op.rd)};
    case Format::XF:
      return {x(op.rs1), f(op.rd)};
    case Format::P:
      return {x(op.rs1) | x(op.rs2) | x(op.rs3), 0};
  }
  return {};
}

const char* mnemonic(Kind kind) {
  return kMnemonics[static_cast<std::size_t>(kind)];
}

unsigned access_bytes(Kind kind) {
  switch (kind) {
    case Kind::lb:
    case Kind::lbu:
    case Kind::sb:
      return 1;
    case Kind::lh:
    case Kind::lhu:
    case Kind::sh:
      return 2;
    case Kind::lw:
    case Kind::lwu:
    case Kind::sw:
    case Kind::flw:
    case Kind::fsw:
      return 4;
    case Kind::ld:
    case Kind::sd:
      return 8;
    default:
      return 0;
  }
}

bool ends_block(Kind kind) {
  switch (kind) {
    case Kind::beq:
    case Kind::bne:
    case Kind::blt:
    case Kind::bge:
    case Kind::bltu:
    case Kind::bgeu:
    case Kind::jal:
    case Kind::jalr:
    case Kind::fence_i:
    case Kind::ecall:
    case Kind::ebreak:
    case Kind::mret:
    case Kind::illegal:
    case Kind::fetch_fault:
      return true;
    default:
      return false;
  }
}

}  // namespace cm384::npu
