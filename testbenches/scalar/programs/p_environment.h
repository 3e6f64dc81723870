// Start-up and end of a bare-metal conformance test, in the style of the RISC-V world's "p" environment: machine
// mode sets up what exists (and steps over what does not by a trap to the next line), goes to user mode by mret,
// and the test ends with an ecall whose handler stores to `tohost`.
#define TESTNUM gp

#define SKIP_IF_ABSENT(...) \
  la t0, 9f;                \
  csrw mtvec, t0;           \
  __VA_ARGS__;              \
  .align 2;                 \
  9:

#ifdef TOHOST_DOUBLE
#define WRITE_TOHOST   \
  la t5, tohost;       \
  sd TESTNUM, 0(t5);
#else
#define WRITE_TOHOST      \
  la t5, tohost;          \
  sw TESTNUM, 0(t5);      \
  sw zero, 4(t5);
#endif

#define BEGIN                                                       \
  .section .text.init;                                              \
  .globl _start;                                                    \
  _start:                                                           \
  j reset_vector;                                                   \
  .align 2;                                                         \
  trap_vector:                                                      \
  csrr t5, mcause;                                                  \
  li t6, 8;                                                         \
  beq t5, t6, write_tohost;                                         \
  li t6, 9;                                                         \
  beq t5, t6, write_tohost;                                         \
  li t6, 11;                                                        \
  beq t5, t6, write_tohost;                                         \
  .weak trap_handler;                                               \
  la t5, trap_handler;                                              \
  beqz t5, other_exception;                                         \
  jr t5;                                                            \
  other_exception:                                                  \
  ori TESTNUM, TESTNUM, 1337;                                       \
  write_tohost:                                                     \
  WRITE_TOHOST                                                      \
  j write_tohost;                                                   \
  reset_vector:                                                     \
  li TESTNUM, 0;                                                    \
  csrr a0, mhartid;                                                 \
  1: bnez a0, 1b;                                                   \
  SKIP_IF_ABSENT(csrwi 0x744, 0x00000008)                           \
  SKIP_IF_ABSENT(csrwi satp, 0)                                     \
  SKIP_IF_ABSENT(li t0, -1; csrw pmpaddr0, t0; li t0, 0x1f; csrw pmpcfg0, t0) \
  csrwi mie, 0;                                                     \
  SKIP_IF_ABSENT(csrwi medeleg, 0; csrwi mideleg, 0)                \
  la t0, trap_vector;                                               \
  csrw mtvec, t0;                                                   \
  li a0, 1;                                                         \
  slli a0, a0, 31;                                                  \
  bgez a0, 1f;                                                      \
  fence;                                                            \
  1:                                                                \
  csrwi mstatus, 0;                                                 \
  li a0, 0x2000;                                                    \
  csrs mstatus, a0;                                                 \
  csrwi fcsr, 0;                                                    \
  la t0, 1f;                                                        \
  csrw mepc, t0;                                                    \
  csrr a0, mhartid;                                                 \
  mret;                                                             \
  1:

#define PASS       \
  fence;           \
  li TESTNUM, 1;   \
  li a7, 93;       \
  li a0, 0;        \
  ecall;

#define FAIL                \
  fail:                     \
  fence;                    \
  1: beqz TESTNUM, 1b;      \
  sll TESTNUM, TESTNUM, 1;  \
  or TESTNUM, TESTNUM, 1;   \
  li a7, 93;                \
  addi a0, TESTNUM, 0;      \
  ecall;

#define END                       \
  bne zero, TESTNUM, pass;        \
  j fail;                         \
  FAIL                            \
  pass:                           \
  PASS                            \
  unimp;                          \
  .pushsection .tohost, "aw", @progbits; \
  .align 6;                       \
  .global tohost;                 \
  tohost: .dword 0;               \
  .align 6;                       \
  .global fromhost;               \
  fromhost: .dword 0;             \
  .popsection

// Test `n`: the code leaves `value` in `reg`.
#define CHECK(n, reg, value, ...) \
  li TESTNUM, n;                  \
  __VA_ARGS__;                    \
  li t6, value;                   \
  bne reg, t6, fail;

#define RR(n, inst, result, a, b) \
  CHECK(n, a4, result, li a1, a; li a2, b; inst a4, a1, a2)
#define RI(n, inst, result, a, imm) \
  CHECK(n, a4, result, li a1, a; inst a4, a1, imm)

// Single-precision `inst` of a and b (encodings): result bits and accrued flags.
#define FF(n, inst, result, flags, a, b)                                                                \
  CHECK(n, a4, result, csrwi fflags, 0; li a1, a; li a2, b; fmv.w.x fa1, a1; fmv.w.x fa2, a2;            \
        inst fa0, fa1, fa2; fmv.x.w a4, fa0)                                                            \
  csrr a5, fflags;                                                                                      \
  li t6, flags;                                                                                         \
  bne a5, t6, fail;
#define F1(n, inst, result, flags, a)                                                                   \
  CHECK(n, a4, result, csrwi fflags, 0; li a1, a; fmv.w.x fa1, a1; inst fa0, fa1; fmv.x.w a4, fa0)       \
  csrr a5, fflags;                                                                                      \
  li t6, flags;                                                                                         \
  bne a5, t6, fail;
#define FX(n, inst, result, flags, a, rounding)                                                         \
  CHECK(n, a4, result, csrwi fflags, 0; li a1, a; fmv.w.x fa1, a1; inst a4, fa1, rounding)               \
  csrr a5, fflags;                                                                                      \
  li t6, flags;                                                                                         \
  bne a5, t6, fail;
