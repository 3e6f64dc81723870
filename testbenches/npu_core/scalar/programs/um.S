#include "p_environment.inc"
BEGIN
  RR(2, mulh, 0x4000000000000000, 0x8000000000000000, 0x8000000000000000)
  RR(3, mulhu, 0x4000000000000000, 0x8000000000000000, 0x8000000000000000)
  RR(4, mulhsu, 0xc000000000000000, 0x8000000000000000, 0x8000000000000000)
  RR(5, mulhsu, -1, -1, -1)
  RR(6, mulhu, 0xfffffffffffffffe, -1, -1)
  RR(7, mulh, 0, -1, -1)
  RR(8, mulw, 0xffffffff80000000, 0x40000000, 2)
  RR(9, mul, 1, -1, -1)
  // division by zero
  RR(10, div, -1, 7, 0)
  RR(11, divu, -1, 7, 0)
  RR(12, rem, 7, 7, 0)
  RR(13, remu, 7, 7, 0)
  RR(14, divw, -1, 7, 0)
  RR(15, divuw, -1, 7, 0)
  RR(16, remw, 0xffffffff80000000, 0x80000000, 0)
  RR(17, remuw, 0xffffffff80000000, 0x80000000, 0)
  // overflow
  RR(20, div, 0x8000000000000000, 0x8000000000000000, -1)
  RR(21, rem, 0, 0x8000000000000000, -1)
  RR(22, divw, 0xffffffff80000000, 0xffffffff80000000, -1)
  RR(23, remw, 0, 0xffffffff80000000, -1)
  // signs
  RR(30, div, -3, -20, 6)
  RR(31, rem, -2, -20, 6)
  RR(32, div, -3, 20, -6)
  RR(33, rem, 2, 20, -6)
  RR(34, divuw, 0x7fffffff, 0xffffffffffffffff, 2)
  RR(35, divuw, -1, -1, 1)
END
