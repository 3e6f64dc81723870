#include "p_environment.inc"
BEGIN
  .option push
  .option rvc
  CHECK(2, a4, 1024, la sp, stack; c.addi4spn a4, sp, 1020; c.addi4spn a5, sp, 4; la t0, stack; sub a4, a4, t0; c.addi a4, 4)
  CHECK(3, a4, 496, la sp, stack; c.addi16sp sp, 496; la t0, stack; sub a4, sp, t0)
  CHECK(4, a4, -512, la sp, stack + 512; c.addi16sp sp, -512; la t0, stack + 512; sub a4, sp, t0)
  CHECK(5, a4, 0xfffffffffedcba98, la a1, stack; li a0, 0xfedcba98; c.sw a0, 4(a1); c.lw a4, 4(a1); c.nop)
  CHECK(6, a4, 0x1122334455667788, la a1, stack; li a0, 0x1122334455667788; c.sd a0, 248(a1); c.ld a4, 248(a1))
  CHECK(7, a4, 0x88, la sp, stack; c.sdsp a0, 504(sp); ld a5, 504(sp); andi a4, a5, 0xff)
  CHECK(8, a4, 0x55667788, c.swsp a0, 252(sp); c.lwsp a4, 252(sp); c.ldsp a5, 504(sp))
  CHECK(9, a4, -15, c.li a4, -15)
  CHECK(10, a4, 0xffffffffffff2000, c.lui a4, 0xffff2)
  CHECK(11, a4, 0x000fffffffffff7f, c.li a4, -1; li s0, 0xfff; slli s0, s0, 52; xor a4, a4, s0; xori a4, a4, 0x80)
  CHECK(12, s0, 0xffffffffffffffff, li s0, -4096; c.srai s0, 12)
  CHECK(13, s0, 0x000fffffffffffff, li s0, -4096; c.srli s0, 12)
  CHECK(14, s0, 0x10, li s0, 0x1f0; c.andi s0, 0x10)
  CHECK(15, s1, 14, li s1, 20; li a0, 6; c.sub s1, a0)
  CHECK(16, s1, 18, li s1, 20; li a0, 6; c.xor s1, a0)
  CHECK(17, s1, 22, li s1, 20; li a0, 6; c.or s1, a0)
  CHECK(18, s1, 4, li s1, 20; li a0, 6; c.and s1, a0)
  CHECK(19, s1, 0xffffffff80000000, li s1, 0x7fffffff; li a0, -1; c.subw s1, a0)
  CHECK(20, s1, 0xffffffff80000000, li s1, 0x7fffffff; li a0, 1; c.addw s1, a0)
  CHECK(21, s0, 0x12340, li s0, 0x1234; c.slli s0, 4)
  CHECK(22, a4, 0, li a4, 0; c.j 1f; c.addi a4, 1; 1:)
  CHECK(23, a5, 0, li a5, 0; c.beqz a5, 1f; c.addi a5, 1; 1:)
  CHECK(24, a5, 1, li a5, 0; c.bnez a5, 1f; c.addi a5, 1; 1:)
  CHECK(25, a4, 7, li a4, 3; la t0, 1f; c.jalr t0; c.addi a4, 4; c.j 2f; 1: c.jr ra; 2:)
  CHECK(26, a4, 12, li t0, 12; c.mv a4, t0)
  CHECK(27, a4, 24, c.add a4, t0)
  CHECK(28, a4, -4, li a4, 3; c.addiw a4, -7)
  .option pop
END
.data
.align 12
stack: .skip 4096
