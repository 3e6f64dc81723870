#include "p_environment.inc"
BEGIN
  li a0, 1
  slli a0, a0, 62
.globl store
store: sd a0, 0(a0)
END
