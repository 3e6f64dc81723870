// First instructions of a block. The simulator starts every block here with fresh private memory, so there is
// no .bss to clear.
#include "firmware/abi/isa.h"

#define CM384_TEXT(x) CM384_TEXT_(x)
#define CM384_TEXT_(x) #x

static_assert(CM384_CLASS_SYNC == 0 && CM384_DCCI == 7 && CM384_HOST_EXIT == 0, "written out below");

// Naked: no more than what is written here. Statements of their own, so that a profile has their lines.
extern "C" [[gnu::naked, gnu::used, gnu::section(".text.start")]] void _start() {
  asm(".option push\n.option norelax\nla gp, __global_pointer$\n.option pop");
  asm("la sp, __stack_top");
  asm("li t0, 0x6000\ncsrs mstatus, t0");  // mstatus.FS: floating point on
  // The host may have rewritten an argument block that the data cache still holds from an earlier launch.
  asm(".insn r4 " CM384_TEXT(CM384_OPCODE_PIPE) ", 0, 0, x7, x0, x0, x0");
  asm("csrr a0, " CM384_TEXT(CM384_CSR_ARGUMENTS));
  asm("call kernel_main");
  asm(".insn r " CM384_TEXT(CM384_OPCODE_HOST) ", 0, 0, x0, x0, x0");  // exit, status 0
  asm("1: j 1b");
}
