// Pieces of code, each from a label to its ebreak, whose time, traps or payload a test looks at. Uncompressed and
// aligned to a cache line, so that a piece touches as few lines as its length says.
// As in firmware/abi/isa.h, which is C.
#define CM384_OPCODE_PIPE 0x2b
#define CM384_OPCODE_HOST 0x0b
#define CM384_CLASS_SYNC 0
#define CM384_CLASS_VECTOR 2
#define CM384_HOST_EXIT 0
#define CM384_HOST_WRITE 1

.option norvc
.text
.globl _start
_start: ebreak

#define SNIPPET(name) \
  .balign 64;         \
  .globl name;        \
  .type name, @function; \
  name:

#define PIPE(class, operation, rs1, rs2, rs3) .insn r4 CM384_OPCODE_PIPE, class, 0, x##operation, rs1, rs2, rs3

SNIPPET(eight_adds)
  .rept 8
  addi a0, a0, 1
  .endr
  ebreak

SNIPPET(after_eight_adds)
  addi a0, a0, 1
  addi a0, a0, 1
  ebreak

SNIPPET(four_lines)
  .rept 63
  addi a0, a0, 1
  .endr
  ebreak

SNIPPET(load_use)
  la a1, buffer
  ld a0, 0(a1)
  addi a0, a0, 1
  ebreak

SNIPPET(load_then_two_others)
  la a1, buffer
  ld a0, 0(a1)
  addi a2, a2, 1
  addi a2, a2, 1
  addi a0, a0, 1
  ebreak

SNIPPET(multiply_use)
  mul a0, a0, a0
  addi a0, a0, 1
  ebreak

SNIPPET(divide_use)
  div a0, a0, a0
  addi a0, a0, 1
  ebreak

SNIPPET(float_use)
  fadd.s fa0, fa0, fa0
  fadd.s fa1, fa0, fa0
  ebreak

SNIPPET(float_divide_use)
  fdiv.s fa0, fa0, fa0
  fadd.s fa1, fa0, fa0
  ebreak

SNIPPET(float_root_use)
  fsqrt.s fa0, fa0
  fadd.s fa1, fa0, fa0
  ebreak

SNIPPET(float_independent)
  fadd.s fa0, fa2, fa2
  fadd.s fa1, fa2, fa2
  ebreak

// The result of the multiply crosses the taken jump.
SNIPPET(carried)
  mul a0, a0, a0
  j 1f
1:
  addi a0, a0, 1
  ebreak

SNIPPET(forward_not_taken)
  bnez zero, 1f
1: ebreak

SNIPPET(forward_taken)
  beqz zero, 1f
  nop
1: ebreak

// A loop of 10 turns: 9 times backward taken, once not.
SNIPPET(loop_of_ten)
  li a0, 10
1: addi a0, a0, -1
  bnez a0, 1b
  ebreak

SNIPPET(call_and_return)
  jal ra, 1f
  ebreak
1: ret

SNIPPET(indirect_jump)
  la a0, 1f
  jr a0
1: ebreak

SNIPPET(load_word)
  ld a0, 0(a1)
  ebreak

SNIPPET(store_word)
  sd a0, 0(a1)
  ebreak

SNIPPET(add_to_double)
  amoadd.d a0, a2, (a1)
  ebreak

SNIPPET(largest_of_word)
  amomax.w a0, a2, (a1)
  ebreak

SNIPPET(load_across_lines)
  ld a0, 60(a1)
  ebreak

SNIPPET(one_pipe)
  PIPE(CM384_CLASS_VECTOR, 0, a0, a1, a2)
  ebreak

SNIPPET(two_pipes)
  PIPE(CM384_CLASS_VECTOR, 0, a0, a1, a2)
  PIPE(CM384_CLASS_VECTOR, 1, a0, a1, a2)
  ebreak

// Loads a result just before the pipe instruction that takes it.
SNIPPET(load_then_pipe)
  ld a0, 0(a1)
  PIPE(CM384_CLASS_VECTOR, 0, a0, zero, zero)
  addi a3, a0, 1
  ebreak

SNIPPET(clean_range)
  PIPE(CM384_CLASS_SYNC, 7, a1, a2, zero)
  ebreak

SNIPPET(read_cycle)
  nop
  nop
  csrr a0, cycle
  csrr a1, instret
  csrr a2, 0xcc4
  csrr a3, 0xcc3
  ebreak

SNIPPET(exit_three)
  li a0, 3
  .insn r CM384_OPCODE_HOST, 0, CM384_HOST_EXIT, zero, a0, zero
  nop
  ebreak

SNIPPET(hello)
  la a0, greeting
  li a1, 6
  .insn r CM384_OPCODE_HOST, 0, CM384_HOST_WRITE, zero, a0, a1
  ebreak

// Trap handling.
SNIPPET(illegal_trap)
  nop
  .word 0xffffffff
  ebreak

SNIPPET(load_outside)
  li a1, 0x1000
  ld a0, 8(a1)
  ebreak

SNIPPET(jump_outside)
  li a1, 0x2000
  jr a1
  ebreak

SNIPPET(handled_trap)
  la t0, 1f
  csrw mtvec, t0
  .word 0xffffffff
  ebreak
  .balign 4
1: csrr a0, mcause
  csrr a1, mepc
  csrw mtvec, zero
  ebreak

// Payload: s0 = address of payload, s1 = a plain address.
SNIPPET(taint_move)
  flw fa0, 0(s0)
  fadd.s fa0, fa0, fa0
  fsw fa0, 0(s1)
  li a0, 1
  ebreak

SNIPPET(taint_branch)
  lw a0, 0(s0)
  addi a0, a0, 1
  beqz a0, 1f
1: ebreak

SNIPPET(taint_address)
  lw a0, 0(s0)
  lw a1, 0(a0)
  ebreak

SNIPPET(taint_store_address)
  lw a0, 0(s0)
  sw zero, 0(a0)
  ebreak

SNIPPET(taint_jump)
  ld a0, 0(s0)
  jr a0

SNIPPET(taint_csr)
  lw a0, 0(s0)
  csrw mscratch, a0
  ebreak

SNIPPET(taint_float_flags)
  flw fa0, 0(s0)
  fadd.s fa0, fa0, fa0
  li a0, 0
  fmv.w.x fa0, a0
  csrr a0, fflags
  bnez a0, 1f
1: ebreak

SNIPPET(taint_pipe_scalar)
  lw a0, 0(s0)
  PIPE(CM384_CLASS_VECTOR, 7, zero, a0, zero)
  ebreak

SNIPPET(taint_pipe_address)
  lw a0, 0(s0)
  PIPE(CM384_CLASS_VECTOR, 7, a0, zero, zero)
  ebreak

SNIPPET(taint_pipe_source)
  lw a0, 0(s0)
  PIPE(CM384_CLASS_VECTOR, 0, zero, a0, zero)
  ebreak

// A spill of payload beside a plain word: only the payload comes back tainted.
SNIPPET(taint_spill)
  lw a0, 0(s0)
  li a1, 5
  sw a1, 0(s1)
  sw a0, 4(s1)
  lw a2, 0(s1)
  li a0, 0
  beqz a2, 1f
  lw a3, 4(s1)
1: ebreak

// Overwriting it with a plain value clears it.
SNIPPET(taint_clear)
  lw a0, 0(s0)
  sw a0, 4(s1)
  sw zero, 4(s1)
  lw a0, 4(s1)
  beqz a0, 1f
1: ebreak

// Timing of a mixture, for comparison with and without payload.
SNIPPET(taint_timing)
  li a2, 20
1: flw fa0, 0(s0)
  fmul.s fa1, fa0, fa0
  fsw fa1, 0(s1)
  lw a0, 0(s0)
  mul a0, a0, a0
  sw a0, 8(s1)
  flw fa2, 8(s1)
  fdiv.s fa2, fa2, fa1
  addi a2, a2, -1
  bnez a2, 1b
  ebreak

SNIPPET(count_to)
1: addi a0, a0, 1
  bne a0, a1, 1b
  ebreak

.data
.balign 64
.globl buffer
buffer: .skip 8192
greeting: .ascii "hello\n"
