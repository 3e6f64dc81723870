// Calls the kernel of an image that has one as Ascend C writes it, `extern "C" __global__ void f(GM_ADDR
// ...)`, with the arguments of struct cm384_program: 8 in registers, 16 on the stack, of which it takes as
// many as it has. Weak: a kernel with a kernel_main of its own gets its argument block itself.
#include <stddef.h>

#include "firmware/abi/isa.h"
#include "firmware/abi/program.h"

#define CM384_TEXT(x) CM384_TEXT_(x)
#define CM384_TEXT_(x) #x
// In an image of both kinds of cores a core calls the kernel of its kind.
#ifdef CM384_KERNEL_OF_BOTH
#ifdef CM384_TYPED
#define CM384_AIC_ENTRY "cm384_typed_aic_entry"
#define CM384_AIV_ENTRY "cm384_typed_entry"
#else
#define CM384_AIC_ENTRY "cm384_aic_entry"
#define CM384_AIV_ENTRY "cm384_entry_begin"
#endif
#define CM384_CALL_KERNEL \
  "csrr t1, " CM384_TEXT(CM384_CSR_CORE_KIND) "\n" \
  "  beqz t1, 1f\n"                                 \
  "  call " CM384_AIC_ENTRY "\n"                    \
  "  j 2f\n"                                        \
  "1: call " CM384_AIV_ENTRY "\n"                   \
  "2:"
#else
// Of several functions marked __global__ the one that was chosen.
#ifndef CM384_ENTRY
#define CM384_ENTRY cm384_entry_begin
#endif
#define CM384_CALL_KERNEL "call " CM384_TEXT(CM384_ENTRY)
#endif

static_assert(CM384_PROGRAM_ARGUMENTS == 24 && offsetof(cm384_program, argument) == 0, "written out below");

asm(R"(
  .section .text.zz_arguments, "ax"
  .weak kernel_main
  .type kernel_main, @function
kernel_main:
  .globl cm384_weak_main
cm384_weak_main:
  addi sp, sp, -144
  sd ra, 128(sp)
  mv t0, a0
  .irp n, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23
  ld t1, \n * 8(t0)
  sd t1, (\n - 8) * 8(sp)
  .endr
  ld a0, 0(t0)
  ld a1, 8(t0)
  ld a2, 16(t0)
  ld a3, 24(t0)
  ld a4, 32(t0)
  ld a5, 40(t0)
  ld a6, 48(t0)
  ld a7, 56(t0)
  )" CM384_CALL_KERNEL R"(
  ld ra, 128(sp)
  addi sp, sp, 144
  ret
  .size kernel_main, . - kernel_main
  .text
)");
