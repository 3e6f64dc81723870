// A realistic mixture for the speed benchmark: calls, an array walked, bits scanned, a hash, a little float. a0 = turns.
.text
.globl _start
_start:
  li s0, 1000000000
  la s1, table
  li s2, 0
outer:
  andi a0, s0, 127
  jal ra, hash
  andi a1, a0, 127
  slli a1, a1, 3
  add a1, a1, s1
  ld a2, 0(a1)
  addi a2, a2, 1
  sd a2, 0(a1)
  li a3, 8
  mv a4, s1
inner:
  lw a5, 0(a4)
  lw a6, 4(a4)
  add s2, s2, a5
  xor s2, s2, a6
  addi a4, a4, 8
  addi a3, a3, -1
  bnez a3, inner
  beqz s2, skip
  srli t0, s2, 3
  or s2, s2, t0
skip:
  fmv.w.x fa0, a2
  fadd.s fa1, fa1, fa0
  fmul.s fa2, fa1, fa0
  addi s0, s0, -1
  bnez s0, outer
  ebreak
hash:
  slli t1, a0, 5
  xor a0, a0, t1
  srli t1, a0, 7
  add a0, a0, t1
  slli t2, a0, 3
  xor a0, a0, t2
  ret
.data
.balign 64
table: .skip 1024
