// The interpreter's loop: threaded dispatch over decoded operations, block by block.
//
// `base` is the local time at which offset 0 of the current block lies: an operation issues at base + its
// offset. What is not known when the block is decoded (a miss, a UBuffer access, a pipe instruction that
// waits) moves base. kChecked adds what is off nearly always: payload taint, the trace, watched turns.
// kProfiled tells a profile of each block and of all that moves base.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "firmware/abi/isa.h"
#include "npu_core/scalar/arithmetic.h"
#include "npu_core/scalar/core_caches.h"
#include "npu_core/scalar/decode.h"
#include "npu_core/scalar/float32.h"
#include "npu_core/scalar/float_environment.h"
#include "npu_core/scalar/interpreter_operations.h"
#include "npu_core/scalar/scalar_core.h"
#include "npu_core/scalar/scalar_profile.h"

#pragma GCC diagnostic ignored "-Wpedantic"  // computed goto

namespace cm384::npu {

using namespace arithmetic;

template <bool kChecked, bool kProfiled>
Stop ScalarCore::interpret(std::int64_t limit) {
  static const void* const kLabels[] = {
#define OPERATION(name, format, latency) &&do_##name,
#include "npu_core/scalar/operations.def"
#undef OPERATION
  };
  U64* const x = x_.data();
  U32* const f = f_.data();
  const Shortcut* const shortcuts = caches_->shortcuts.data();
  const U64* const fetched = caches_->fetched.data();
  S64 base = cycle_;
  U64 retired = instructions_;
  Block* block;
  const Operation* op;
  Access access;

  if constexpr (kProfiled) profile_->resumed(cycle_);
  if (parked_block_ != nullptr) {
    block = parked_block_;
    op = block->operations + parked_index_;
    base -= op->offset;
    retired -= parked_index_;
    parked_block_ = nullptr;
    goto dispatch;
  }
  block = find_block(pc_);

enter:
  if (base >= limit) [[unlikely]] {
    pc_ = block->pc;
    cycle_ = base;
    instructions_ = retired;
    return Stop::limit;
  }
  if (fetched[block->first_line % CoreCaches::kFetchShortcuts] != block->first_line ||
      fetched[block->last_line % CoreCaches::kFetchShortcuts] != block->last_line ||
      block->last_line - block->first_line > 1) [[unlikely]] {
    pc_ = block->pc;
    cycle_ = base;
    instructions_ = retired;
    const bool fetched_all = fetch_lines(block->first_line, block->last_line);
    if constexpr (kProfiled) {
      profile_->stalled(pc_, ScalarStall::fetch, cycle_ - base);
      if (!fetched_all) profile_->parked(pc_, ScalarStall::fetch, cycle_);
    }
    if (!fetched_all) return Stop::parked;
    base = cycle_;
  }
  op = block->operations;
  if (kChecked ? !needs_checks(*block) && limit != std::numeric_limits<S64>::min()
               : (taint_ & block->uses) != 0) [[unlikely]] {
    pc_ = block->pc;
    cycle_ = base;
    instructions_ = retired;
    parked_block_ = block;
    parked_index_ = 0;
    switch_ = true;
    return Stop::limit;
  }

dispatch:
  if constexpr (kChecked) {
    SYNCHRONISE;
    if (op->kind != Kind::end && !retrying_) look_at(*op);
    retrying_ = false;
    if ((taint_ & block->touched[static_cast<std::size_t>(op - block->operations)]) != 0) spread_taint(*op);
  }
  goto* kLabels[static_cast<std::size_t>(op->kind)];

  BINARY(add, a + b)
  BINARY(sub, a - b)
  BINARY(sll, a << (b & 63))
  BINARY(slt, s(a) < s(b) ? 1 : 0)
  BINARY(sltu, a < b ? 1 : 0)
  BINARY(xor_, a ^ b)
  BINARY(srl, a >> (b & 63))
  BINARY(sra, static_cast<U64>(s(a) >> (b & 63)))
  BINARY(or_, a | b)
  BINARY(and_, a & b)
  BINARY(addw, sext(low(a + b)))
  BINARY(subw, sext(low(a - b)))
  BINARY(sllw, sext(low(a) << (b & 31)))
  BINARY(srlw, sext(low(a) >> (b & 31)))
  BINARY(sraw, sext(static_cast<U32>(static_cast<S32>(low(a)) >> (b & 31))))
  IMMEDIATE(addi, a + b)
  IMMEDIATE(slti, s(a) < s(b) ? 1 : 0)
  IMMEDIATE(sltiu, a < b ? 1 : 0)
  IMMEDIATE(xori, a ^ b)
  IMMEDIATE(ori, a | b)
  IMMEDIATE(andi, a & b)
  IMMEDIATE(slli, a << (b & 63))
  IMMEDIATE(srli, a >> (b & 63))
  IMMEDIATE(srai, static_cast<U64>(s(a) >> (b & 63)))
  IMMEDIATE(addiw, sext(low(a + b)))
  IMMEDIATE(slliw, sext(low(a) << (b & 31)))
  IMMEDIATE(srliw, sext(low(a) >> (b & 31)))
  IMMEDIATE(sraiw, sext(static_cast<U32>(static_cast<S32>(low(a)) >> (b & 31))))
  OP(li) {
    x[op->rd] = static_cast<U64>(op->immediate);
    DISPATCH_NEXT;
  }
  OP(mv) {
    x[op->rd] = x[op->rs1];
    DISPATCH_NEXT;
  }
  OP(nop) {
    DISPATCH_NEXT;
  }
  OP(fence) {
    DISPATCH_NEXT;
  }

  BINARY(mul, a * b)
  BINARY(mulh, static_cast<U64>((static_cast<S128>(s(a)) * s(b)) >> 64))
  BINARY(mulhsu, static_cast<U64>((static_cast<S128>(s(a)) * static_cast<S128>(b)) >> 64))
  BINARY(mulhu, static_cast<U64>((static_cast<U128>(a) * b) >> 64))
  BINARY(mulw, sext(low(a * b)))
  BINARY(div, divide(a, b))
  BINARY(divu, b == 0 ? ~U64{0} : a / b)
  BINARY(rem, remainder(a, b))
  BINARY(remu, b == 0 ? a : a % b)
  BINARY(divw, divide_word(a, b))
  BINARY(divuw, low(b) == 0 ? ~U64{0} : sext(low(a) / low(b)))
  BINARY(remw, remainder_word(a, b))
  BINARY(remuw, sext(low(b) == 0 ? low(a) : low(a) % low(b)))

  LOAD(lb, std::int8_t, x[op->rd], static_cast<U64>)
  LOAD(lh, std::int16_t, x[op->rd], static_cast<U64>)
  LOAD(lw, S32, x[op->rd], static_cast<U64>)
  LOAD(ld, U64, x[op->rd], static_cast<U64>)
  LOAD(lbu, std::uint8_t, x[op->rd], static_cast<U64>)
  LOAD(lhu, std::uint16_t, x[op->rd], static_cast<U64>)
  LOAD(lwu, U32, x[op->rd], static_cast<U64>)
  LOAD(flw, U32, f[op->rd], static_cast<U32>)
  STORE(sb, std::uint8_t, x[op->rs2])
  STORE(sh, std::uint16_t, x[op->rs2])
  STORE(sw, U32, x[op->rs2])
  STORE(sd, U64, x[op->rs2])
  STORE(fsw, U32, f[op->rs2])

  BRANCH(beq, a == b)
  BRANCH(bne, a != b)
  BRANCH(blt, s(a) < s(b))
  BRANCH(bge, s(a) >= s(b))
  BRANCH(bltu, a < b)
  BRANCH(bgeu, a >= b)
  OP(jal) {
    x[op->rd] = block->end_pc;
    goto taken;
  }

  FLOAT(fadd, a + b)
  FLOAT(fsub, a - b)
  FLOAT(fmul, a * b)
  FLOAT(fdiv, a / b)
  FLOAT(fsqrt, std::sqrt(a))
  FLOAT(fmadd, fused(a, b, c))
  FLOAT(fmsub, fused(a, b, -c))
  FLOAT(fnmsub, fused(-a, b, c))
  FLOAT(fnmadd, fused(-a, b, -c))
  SIGN(fsgnj, (a & ~float32::kSign) | (b & float32::kSign))
  SIGN(fsgnjn, (a & ~float32::kSign) | (~b & float32::kSign))
  SIGN(fsgnjx, a ^ (b & float32::kSign))
  OP(fmv_x_w) {
    x[op->rd] = sext(f[op->rs1]);
    DISPATCH_NEXT;
  }
  OP(fmv_w_x) {
    f[op->rd] = low(x[op->rs1]);
    DISPATCH_NEXT;
  }
  OP(fmin)
  OP(fmax)
  OP(feq)
  OP(flt)
  OP(fle)
  OP(fclass)
  OP(fcvt_w_s)
  OP(fcvt_wu_s)
  OP(fcvt_l_s)
  OP(fcvt_lu_s)
  OP(fcvt_s_w)
  OP(fcvt_s_wu)
  OP(fcvt_s_l)
  OP(fcvt_s_lu)
slow_float:
  if (!float_slow(*op)) goto do_illegal;
  DISPATCH_NEXT;

slow_load : {
  SYNCHRONISE;
  U64 value = 0;
  bool tainted = false;
  access = load(x[op->rs1] + static_cast<U64>(op->immediate), access_bytes(op->kind), value, tainted,
                FillKind::load);
  COUNT_SLOW(stall_at(x[op->rs1] + static_cast<U64>(op->immediate)));
  base = cycle_ - op->offset;
  if (access != Access::done) goto no_access;
  finish_load(*op, value);
  if (tainted) {
    taint_ |= operand_use(*op).writes;
    if constexpr (!kChecked) goto change_variant;
  }
  DISPATCH_NEXT;
}
slow_store : {
  SYNCHRONISE;
  const U64 value = op->kind == Kind::fsw ? f[op->rs2] : x[op->rs2];
  access = store(x[op->rs1] + static_cast<U64>(op->immediate), access_bytes(op->kind), value,
                 kChecked && value_is_tainted(*op));
  COUNT_SLOW(stall_at(x[op->rs1] + static_cast<U64>(op->immediate)));
  base = cycle_ - op->offset;
  if (access != Access::done) goto no_access;
  if (stored_) goto stop_after_store;
  DISPATCH_NEXT;
}
  OP(amo) {
    SYNCHRONISE;
    access = amo(*op);
    COUNT_SLOW(stall_of(*op));
    base = cycle_ - op->offset;
    if (access != Access::done) goto no_access;
    if (stored_) goto stop_after_store;
    if constexpr (!kChecked) {
      if (tainted()) goto change_variant;
    }
    DISPATCH_NEXT;
  }
  OP(pipe) {
    SYNCHRONISE;
    access = pipe(*op);
    COUNT_SLOW(stall_of(*op));
    base = cycle_ - op->offset;
    if (access != Access::done) goto no_access;
    if (!kChecked && turn_ != nullptr) goto change_variant;
    DISPATCH_NEXT;
  }
  OP(dcci) {
    SYNCHRONISE;
    access = clean_range(x[op->rs1], x[op->rs2]);
    COUNT_SLOW(stall_of(*op));
    base = cycle_ - op->offset;
    if (access != Access::done) goto no_access;
    DISPATCH_NEXT;
  }
  OP(host) {
    SYNCHRONISE;
    access = host_call(*op);
    COUNT_SLOW(stall_of(*op));
    base = cycle_ - op->offset;
    if (access != Access::done) goto no_access;
    if (ended_) {
      cycle_ = base + op->offset + 1;
      ++instructions_;
      if constexpr (kProfiled) profile_->ran_part(*block, static_cast<U32>(op + 1 - block->operations));
      return Stop::ended;
    }
    DISPATCH_NEXT;
  }
  OP(csr)
  OP(csri) {
    SYNCHRONISE;
    if (!csr(*op)) goto do_illegal;
    if constexpr (!kChecked) {
      if (tainted()) goto change_variant;
    }
    DISPATCH_NEXT;
  }

  OP(fence_i) {
    SYNCHRONISE;
    ++instructions_;
    const U64 next = block->end_pc;
    base += block->cost + block->branch_cost[0];
    COUNT_BLOCK(block->branch_cost[0]);
    retired = instructions_;
    synchronise_code();
    pc_ = next;
    block = find_block(next);
    goto enter;
  }
  OP(ecall) {
    SYNCHRONISE;
    trap(state_.privilege == 3 ? 11u : 8u + state_.privilege, 0);
    goto redirect;
  }
  OP(ebreak) {
    SYNCHRONISE;
    if (debugged_) {
      at_breakpoint_ = true;
      return Stop::breakpoint;
    }
    trap(3, pc_);
    goto redirect;
  }
  OP(mret) {
    SYNCHRONISE;
    if (state_.privilege != 3) goto do_illegal;
    ++instructions_;
    return_from_trap();
    goto redirect;
  }
  OP(illegal) {
    SYNCHRONISE;
    trap(2, raw_of(*op));
    goto redirect;
  }
  OP(fetch_fault) {
    SYNCHRONISE;
    trap(1, pc_);
    goto redirect;
  }
  OP(breakpoint) {
    SYNCHRONISE;
    at_breakpoint_ = true;
    return Stop::breakpoint;
  }

  OP(jalr) {
    const U64 target = (x[op->rs1] + static_cast<U64>(op->immediate)) & ~U64{1};
    x[op->rd] = block->end_pc;
    base += block->cost;
    retired += block->instructions;
    if (target == block->target) [[likely]] {
      base += block->edges[1].cost;
      COUNT_BLOCK(block->edges[1].cost);
      block = block->edges[1].to;
      goto enter;
    }
    S64 cost = 0;
    Block* const to = link(*block, 1, target, cost);
    COUNT_BLOCK(cost);
    block = to;
    base += cost;
    goto enter;
  }
taken : {
  base += block->cost;
  retired += block->instructions;
  Edge edge = block->edges[1];
  if (edge.to == nullptr) [[unlikely]]
    edge.to = link(*block, 1, block->target, edge.cost);
  base += edge.cost;
  COUNT_BLOCK(edge.cost);
  block = edge.to;
  goto enter;
}
  OP(end)
not_taken : {
  base += block->cost;
  retired += block->instructions;
  Edge edge = block->edges[0];
  if (edge.to == nullptr) [[unlikely]]
    edge.to = link(*block, 0, block->end_pc, edge.cost);
  base += edge.cost;
  COUNT_BLOCK(edge.cost);
  block = edge.to;
  goto enter;
}

no_access:
  if (access == Access::parked) PARK;
  trap(fault_cause_, fault_value_);
redirect:
  if constexpr (kProfiled) {
    // What the trap takes is its instruction's.
    profile_->ran_part(*block, static_cast<U32>(op - block->operations));
    const U64 at = block->pc + 2 * op->pc_halfwords;
    profile_->issued(at);
    profile_->stalled(at, ScalarStall::latency, cycle_ - (base + op->offset) - 1);
  }
  base = cycle_;
  retired = instructions_;
  block = find_block(pc_);
  goto enter;

stop_after_store:
  stored_ = false;
  parked_block_ = block;
  parked_index_ = static_cast<U32>(op + 1 - block->operations);
  cycle_ = base + (op + 1)->offset;
  instructions_ = retired + parked_index_;
  pc_ = block->pc + 2 * (op + 1)->pc_halfwords;
  return Stop::stored;

change_variant:
  __attribute__((unused));
  switch_ = true;
  parked_block_ = block;
  parked_index_ = static_cast<U32>(op + 1 - block->operations);
  cycle_ = base + (op + 1)->offset;
  instructions_ = retired + parked_index_;
  pc_ = block->pc + 2 * (op + 1)->pc_halfwords;
  return Stop::limit;
}

template Stop ScalarCore::interpret<false, false>(std::int64_t limit);
template Stop ScalarCore::interpret<true, false>(std::int64_t limit);
template Stop ScalarCore::interpret<false, true>(std::int64_t limit);
template Stop ScalarCore::interpret<true, true>(std::int64_t limit);

}  // namespace cm384::npu
