// RV64C: compressed instructions as their 32-bit equivalents. Without D, so C.FLD and the like are illegal.
#include "npu_core/scalar/decode.h"

namespace cm384::npu {
namespace {

std::uint32_t i_type(std::uint32_t imm, std::uint32_t rs1, std::uint32_t funct3, std::uint32_t rd,
                     std::uint32_t opcode) {
  return (imm & 0xfff) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode;
}
std::uint32_t s_type(std::uint32_t imm, std::uint32_t rs2, std::uint32_t rs1, std::uint32_t funct3) {
  return ((imm >> 5) & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | (imm & 31) << 7 | 0x23;
}
std::uint32_t r_type(std::uint32_t funct7, std::uint32_t rs2, std::uint32_t rs1, std::uint32_t funct3,
                     std::uint32_t rd, std::uint32_t opcode) {
  return funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode;
}
std::uint32_t branch(std::uint32_t imm, std::uint32_t rs1, std::uint32_t funct3) {
  return ((imm >> 12) & 1) << 31 | ((imm >> 5) & 0x3f) << 25 | rs1 << 15 | funct3 << 12 |
         ((imm >> 1) & 15) << 8 | ((imm >> 11) & 1) << 7 | 0x63;
}
std::uint32_t jump(std::uint32_t imm, std::uint32_t rd) {
  return ((imm >> 20) & 1) << 31 | ((imm >> 1) & 0x3ff) << 21 | ((imm >> 11) & 1) << 20 |
         ((imm >> 12) & 0xff) << 12 | rd << 7 | 0x6f;
}

std::uint32_t bits(std::uint32_t c, int high, int low) {
  return (c >> low) & ((1u << (high - low + 1)) - 1);
}
std::uint32_t sign_extend(std::uint32_t value, int width) {
  const std::uint32_t sign = 1u << (width - 1);
  return (value ^ sign) - sign;
}

std::uint32_t quadrant0(std::uint32_t c) {
  const std::uint32_t rd = 8 + bits(c, 4, 2), rs1 = 8 + bits(c, 9, 7);
  const std::uint32_t word = bits(c, 12, 10) << 3 | bits(c, 6, 6) << 2 | bits(c, 5, 5) << 6;
  const std::uint32_t dword = bits(c, 12, 10) << 3 | bits(c, 6, 5) << 6;
  switch (bits(c, 15, 13)) {
    case 0: {  // c.addi4spn
      const std::uint32_t imm =
          bits(c, 12, 11) << 4 | bits(c, 10, 7) << 6 | bits(c, 6, 6) << 2 | bits(c, 5, 5) << 3;
      return imm == 0 ? 0 : i_type(imm, 2, 0, rd, 0x13);
    }
    case 2:
      return i_type(word, rs1, 2, rd, 0x03);
    case 3:
      return i_type(dword, rs1, 3, rd, 0x03);
    case 6:
      return s_type(word, rd, rs1, 2);
    case 7:
      return s_type(dword, rd, rs1, 3);
    default:
      return 0;
  }
}

std::uint32_t quadrant1_arithmetic(std::uint32_t c, std::uint32_t imm6) {
  const std::uint32_t rd = 8 + bits(c, 9, 7), rs2 = 8 + bits(c, 4, 2);
  const std::uint32_t shift = bits(c, 12, 12) << 5 | bits(c, 6, 2);
  switch (bits(c, 11, 10)) {
    case 0:
      return i_type(shift, rd, 5, rd, 0x13);
    case 1:
      return i_type(0x400 | shift, rd, 5, rd, 0x13);
    case 2:
      return i_type(imm6, rd, 7, rd, 0x13);
    default:
      break;
  }
  switch (bits(c, 12, 12) << 2 | bits(c, 6, 5)) {
    case 0:
      return r_type(0x20, rs2, rd, 0, rd, 0x33);
    case 1:
      return r_type(0, rs2, rd, 4, rd, 0x33);
    case 2:
      return r_type(0, rs2, rd, 6, rd, 0x33);
    case 3:
      return r_type(0, rs2, rd, 7, rd, 0x33);
    case 4:
      return r_type(0x20, rs2, rd, 0, rd, 0x3b);
    case 5:
      return r_type(0, rs2, rd, 0, rd, 0x3b);
    default:
      return 0;
  }
}

std::uint32_t quadrant1(std::uint32_t c) {
  const std::uint32_t rd = bits(c, 11, 7);
  const std::uint32_t imm6 = sign_extend(bits(c, 12, 12) << 5 | bits(c, 6, 2), 6);
  switch (bits(c, 15, 13)) {
    case 0:
      return i_type(imm6, rd, 0, rd, 0x13);
    case 1:
      return rd == 0 ? 0 : i_type(imm6, rd, 0, rd, 0x1b);
    case 2:
      return i_type(imm6, 0, 0, rd, 0x13);
    case 3: {
      if (rd == 2) {  // c.addi16sp
        const std::uint32_t imm = sign_extend(bits(c, 12, 12) << 9 | bits(c, 6, 6) << 4 | bits(c, 5, 5) << 6 |
                                                  bits(c, 4, 3) << 7 | bits(c, 2, 2) << 5,
                                              10);
        return imm == 0 ? 0 : i_type(imm, 2, 0, 2, 0x13);
      }
      return imm6 == 0 ? 0 : (imm6 << 12 & 0xfffff000u) | rd << 7 | 0x37;
    }
    case 4:
      return quadrant1_arithmetic(c, imm6);
    case 5: {
      const std::uint32_t imm = sign_extend(
          bits(c, 12, 12) << 11 | bits(c, 11, 11) << 4 | bits(c, 10, 9) << 8 | bits(c, 8, 8) << 10 |
              bits(c, 7, 7) << 6 | bits(c, 6, 6) << 7 | bits(c, 5, 3) << 1 | bits(c, 2, 2) << 5,
          12);
      return jump(imm, 0);
    }
    default: {
      const std::uint32_t imm = sign_extend(bits(c, 12, 12) << 8 | bits(c, 11, 10) << 3 | bits(c, 6, 5) << 6 |
                                                bits(c, 4, 3) << 1 | bits(c, 2, 2) << 5,
                                            9);
      return branch(imm, 8 + bits(c, 9, 7), bits(c, 15, 13) == 6 ? 0 : 1);
    }
  }
}

std::uint32_t quadrant2(std::uint32_t c) {
  const std::uint32_t rd = bits(c, 11, 7), rs2 = bits(c, 6, 2);
  switch (bits(c, 15, 13)) {
    case 0:
      return i_type(bits(c, 12, 12) << 5 | rs2, rd, 1, rd, 0x13);
    case 2:
      return rd == 0 ? 0
                     : i_type(bits(c, 12, 12) << 5 | bits(c, 6, 4) << 2 | bits(c, 3, 2) << 6, 2, 2, rd, 0x03);
    case 3:
      return rd == 0 ? 0
                     : i_type(bits(c, 12, 12) << 5 | bits(c, 6, 5) << 3 | bits(c, 4, 2) << 6, 2, 3, rd, 0x03);
    case 4:
      if (bits(c, 12, 12) == 0) {
        if (rs2 != 0) return r_type(0, rs2, 0, 0, rd, 0x33);
        return rd == 0 ? 0 : i_type(0, rd, 0, 0, 0x67);
      }
      if (rs2 != 0) return r_type(0, rs2, rd, 0, rd, 0x33);
      return rd == 0 ? 0x00100073 : i_type(0, rd, 0, 1, 0x67);
    case 6:
      return s_type(bits(c, 12, 9) << 2 | bits(c, 8, 7) << 6, rs2, 2, 2);
    case 7:
      return s_type(bits(c, 12, 10) << 3 | bits(c, 9, 7) << 6, rs2, 2, 3);
    default:
      return 0;
  }
}

}  // namespace

std::uint32_t expand(std::uint16_t raw) {
  switch (raw & 3) {
    case 0:
      return quadrant0(raw);
    case 1:
      return quadrant1(raw);
    default:
      return quadrant2(raw);
  }
}

}  // namespace cm384::npu
