#include "p_environment.inc"
BEGIN
  // sign extension and overflow
  RR(2, add, 0x8000000000000000, 0x7fffffffffffffff, 1)
  RR(3, addw, 0xffffffff80000000, 0x7fffffff, 1)
  RR(4, subw, 0x7fffffff, 0xffffffff80000000, 1)
  RR(5, sub, 1, 0, -1)
  RR(6, sll, 0x8000000000000000, 1, 63)
  RR(7, sll, 2, 1, 65)
  RR(8, sllw, 0xffffffff80000000, 1, 31)
  RR(9, sllw, 2, 1, 33)
  RR(10, sra, -1, 0x8000000000000000, 63)
  RR(11, srl, 1, 0x8000000000000000, 63)
  RR(12, sraw, -1, 0xffffffff80000000, 31)
  RR(13, srlw, 1, 0x1280000000, 31)
  RR(14, slt, 1, -1, 0)
  RR(15, sltu, 0, -1, 0)
  RI(16, sltiu, 1, 5, -1)
  RI(17, slti, 0, 5, -1)
  RI(18, addiw, 0xffffffff80000000, 0x7fffffff, 1)
  RI(19, xori, ~0x55, 0x55, -1)
  RI(20, srai, 0xffffffffc0000000, 0xffffffff80000000, 1)
  RI(21, sraiw, 0xffffffffc0000000, 0x80000000, 1)
  RI(22, srliw, 0x40000000, 0xffffffff80000000, 1)
  CHECK(23, a4, 0, li a1, 7; add zero, a1, a1; mv a4, zero)
  CHECK(24, a4, 0xffffffff80000000, lui a4, 0x80000)
  // loads and stores, each width, misaligned over a line and over a page
  CHECK(30, a4, -2, la a1, data; lb a4, 0(a1))
  CHECK(31, a4, 0xfe, la a1, data; lbu a4, 0(a1))
  CHECK(32, a4, 0xffffffffffff80fe, la a1, data; lh a4, 0(a1))
  CHECK(33, a4, 0x80fe, la a1, data; lhu a4, 0(a1))
  CHECK(34, a4, 0xffffffff800180fe, la a1, data; lw a4, 0(a1))
  CHECK(35, a4, 0x800180fe, la a1, data; lwu a4, 0(a1))
  CHECK(36, a4, 0x00332211018000ff, la a1, data; li a2, 0xff; sb a2, 0(a1); sb zero, 1(a1); li a2, 0x80; sb a2, 2(a1); li a2, 1; sb a2, 3(a1); li a2, 0x332211; sw a2, 4(a1); ld a4, 0(a1))
  CHECK(37, a4, 0x1122334455667788, la a1, page - 3; li a2, 0x1122334455667788; sd a2, 0(a1); ld a4, 0(a1))
  CHECK(38, a4, 0x66, la a1, page - 3; lbu a4, 2(a1))
  CHECK(39, a4, 0x55, la a1, page; lbu a4, 0(a1))
  CHECK(40, a4, 0x3344, la a1, page + 61; li a2, 0x11223344; sw a2, 0(a1); lhu a4, 0(a1))
  CHECK(41, a4, 0x11, la a1, page + 64; lbu a4, 0(a1))
  CHECK(42, a4, -8531, la a1, page + 127; li a2, 0xdead; sh a2, 0(a1); lh a4, 0(a1))
  // jumps
  CHECK(50, a4, 0, li a4, 0; la t0, 1f; jalr t1, 1(t0); li a4, 1; 1:)
  CHECK(51, a4, 3, li a4, 0; jal ra, 1f; addi a4, a4, 1; j 2f; 1: addi a4, a4, 2; ret; 2:)
  // self-modifying code takes effect after fence.i, in this core alone
  CHECK(60, a4, 321, li a4, 0; la a1, patch; la a2, replacement; lw a3, 0(a2); jal ra, patch; sw a3, 0(a1); fence.i; jal ra, patch)
  j end
  .align 4
patch:
  .option push
  .option norvc
  addi a4, a4, 123
  .option pop
  ret
  .align 4
replacement:
  .option push
  .option norvc
  addi a4, a4, 198
  .option pop
end:
END
.data
.align 6
data: .dword 0x33221180800180fe
.align 12
.skip 4093
.byte 0, 0, 0
page: .skip 4096
