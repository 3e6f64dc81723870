#include "p_environment.inc"
#define NAN 0x7fc00000
#define SNAN 0x7f800001
#define INF 0x7f800000
#define NINF 0xffffffffff800000
#define NZERO 0xffffffff80000000
BEGIN
  FF(2, fadd.s, 0x40600000, 0, 0x40200000, 0x3f800000)
  FF(3, fadd.s, 0xffffffffc49a4000, 1, 0xc49a6333, 0x3f8ccccd)
  FF(4, fsub.s, NAN, 16, INF, INF)
  FF(5, fmul.s, 0x7f800000, 5, 0x7f7fffff, 0x7f7fffff)
  FF(6, fmul.s, 0, 3, 0x00800000, 0x00000001)
  FF(7, fdiv.s, INF, 8, 0x3f800000, 0)
  FF(8, fdiv.s, NAN, 16, 0, 0)
  FF(9, fdiv.s, 0x3eaaaaab, 1, 0x3f800000, 0x40400000)
  FF(10, fadd.s, NAN, 16, SNAN, 0x3f800000)
  FF(11, fadd.s, NAN, 0, 0xffc12345, 0x3f800000)
  F1(12, fsqrt.s, 0x3fb504f3, 1, 0x40000000)
  F1(13, fsqrt.s, NAN, 16, 0xbf800000)
  F1(14, fsqrt.s, NZERO, 0, 0x80000000)
  FF(20, fmin.s, 0x3f800000, 0, 0x40200000, 0x3f800000)
  FF(21, fmax.s, 0x3f800000, 16, SNAN, 0x3f800000)
  FF(22, fmax.s, NAN, 0, NAN, NAN)
  FF(23, fmin.s, NZERO, 0, 0, 0x80000000)
  FF(24, fmax.s, 0, 0, 0x80000000, 0)
  // conversions saturate
  FX(30, fcvt.w.s, 0x7fffffff, 16, 0x4f000000, rtz)
  FX(31, fcvt.w.s, 0xffffffff80000000, 0, 0xcf000000, rtz)
  FX(32, fcvt.w.s, 0x7fffffff, 16, NAN, rtz)
  FX(33, fcvt.wu.s, 0, 16, 0xbf800000, rtz)
  FX(34, fcvt.wu.s, 0, 1, 0xbf666666, rtz)
  FX(35, fcvt.wu.s, -1, 16, INF, rtz)
  FX(36, fcvt.wu.s, 0xffffffff80000000, 0, 0x4f000000, rtz)
  FX(37, fcvt.lu.s, -1, 16, 0x5f800000, rtz)
  FX(38, fcvt.l.s, 0x8000000000000000, 16, NINF, rtz)
  FX(39, fcvt.w.s, 2, 1, 0x40200000, rne)
  FX(40, fcvt.w.s, 3, 1, 0x40200000, rmm)
  FX(41, fcvt.w.s, -3, 1, 0xc0200000, rdn)
  FX(42, fcvt.w.s, -2, 1, 0xc0200000, rup)
  FX(43, fcvt.w.s, 0, 1, 1, rne)
  CHECK(44, a4, 0x5f800000, li a1, -1; fcvt.s.lu fa0, a1; fmv.x.w a4, fa0)
  CHECK(45, a4, 0xffffffffc0000000, li a1, -2; fcvt.s.w fa0, a1; fmv.x.w a4, fa0)
  CHECK(46, a4, 0x4b800000, li a1, 16777217; fcvt.s.l fa0, a1, rdn; fmv.x.w a4, fa0)
  CHECK(47, a4, 0x4b800001, li a1, 16777217; fcvt.s.l fa0, a1, rup; fmv.x.w a4, fa0)
  // fused multiply-add, classify, compare, moves
  CHECK(50, a4, 0x40600000, li a1, 0x3f800000; fmv.w.x fa1, a1; li a1, 0x40200000; fmv.w.x fa2, a1; fmadd.s fa0, fa1, fa2, fa1; fmv.x.w a4, fa0)
  CHECK(51, a4, 0xffffffffc0600000, fnmadd.s fa0, fa1, fa2, fa1; fmv.x.w a4, fa0)
  CHECK(52, a4, 0x3fc00000, fmsub.s fa0, fa1, fa2, fa1; fmv.x.w a4, fa0)
  CHECK(53, a4, 0xffffffffbfc00000, fnmsub.s fa0, fa1, fa2, fa1; fmv.x.w a4, fa0)
  CHECK(54, a4, 256, li a1, SNAN; fmv.w.x fa1, a1; fclass.s a4, fa1)
  CHECK(55, a4, 16, csrwi fflags, 0; fmv.w.x fa2, zero; flt.s a4, fa1, fa2; csrr a4, fflags)
  CHECK(56, a4, 0, li a1, NAN; fmv.w.x fa1, a1; csrwi fflags, 0; feq.s a4, fa1, fa2; csrr a4, fflags)
  CHECK(57, a4, 0x12345678, la a1, data; flw fa3, 0(a1); fsw fa3, 8(a1); lw a4, 8(a1))
  CHECK(58, a4, 0xe5, li a1, 0xe5; csrw fcsr, a1; csrr a4, fcsr)
  csrwi frm, 0
END
.data
.align 3
data: .word 0x12345678, 0, 0, 0
