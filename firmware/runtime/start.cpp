// First instructions of a block. The simulator starts every block here with fresh private memory, so there is
// no .bss to clear.
#include "firmware/abi/isa.h"

#define CM384_TEXT(x) CM384_TEXT_(x)
#define CM384_TEXT_(x) #x

static_assert(CM384_CLASS_SYNC == 0 && CM384_DCCI == 7 && CM384_HOST_EXIT == 0, "written out below");

asm(R"(
  .section .text.start, "ax"
  .globl _start
  .type _start, @function
_start:
  .option push
  .option norelax
  la gp, __global_pointer$
  .option pop
  la sp, __stack_top
  li t0, 0x6000             # mstatus.FS: floating point on
  csrs mstatus, t0
  # The host may have rewritten an argument block that the data cache still holds from an earlier launch.
  .insn r4 )" CM384_TEXT(CM384_OPCODE_PIPE) R"(, 0, 0, x7, x0, x0, x0
  csrr a0, )" CM384_TEXT(CM384_CSR_ARGUMENTS) R"(
  call kernel_main
  .insn r )" CM384_TEXT(CM384_OPCODE_HOST) R"(, 0, 0, x0, x0, x0    # exit, status 0
1:
  j 1b
  .size _start, . - _start
  .text
)");
