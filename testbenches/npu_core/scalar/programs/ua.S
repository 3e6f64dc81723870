#include "p_environment.inc"
BEGIN
#define AMO(n, inst, old, result, operand)                                                         \
  CHECK(n, a4, old, la a3, word; li a1, operand; inst a4, a1, (a3))                                 \
  CHECK(n, a4, result, ld a4, 0(a3))
  AMO(2, amoadd.w, 0xffffffff80000000, 0x7ffff800, 0xfffffffffffff800)
  AMO(3, amoadd.d, 0x7ffff800, 0x80000000, 0x800)
  AMO(4, amoswap.d, 0x80000000, 0xfffffffffffffff5, -11)
  AMO(5, amomax.d, -11, 3, 3)
  AMO(6, amomin.d, 3, -5, -5)
  AMO(7, amomaxu.d, -5, -5, 3)
  AMO(8, amominu.d, -5, 3, 3)
  AMO(9, amoor.d, 3, 0x13, 0x10)
  AMO(10, amoand.d, 0x13, 0x11, 0x11)
  AMO(11, amoxor.d, 0x11, 0x10, 0x01)
  AMO(12, amomin.w, 0x10, 0xfffffffe, -2)
  AMO(13, amomaxu.w, -2, 0xfffffffe, 7)
  AMO(14, amominu.w, -2, 7, 7)
  AMO(15, amomax.w, 7, 9, 9)
  AMO(16, amoswap.w, 9, 0x80000000, 0x80000000)
  CHECK(20, a4, 1, la a3, word; sc.w a4, zero, (a3))
  CHECK(21, a4, 0, la a3, word; lr.d a2, (a3); li a1, 77; sc.d a4, a1, (a3))
  CHECK(22, a4, 77, ld a4, 0(a3))
  CHECK(23, a4, 1, sc.d a4, zero, (a3))
  CHECK(24, a4, 1, la a3, word; addi a5, a3, 512; lr.w a2, (a3); sc.w a4, zero, (a5))
END
.data
.align 3
word: .dword 0x80000000
.skip 1024
