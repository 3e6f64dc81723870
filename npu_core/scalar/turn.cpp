// Turns of polling loops: what a turn does is watched operation by operation.
#include "npu_core/scalar/turn.h"

#include "firmware/abi/isa.h"
#include "npu_core/scalar/decode.h"
#include "npu_core/scalar/scalar_core.h"

namespace cm384::npu {
namespace {

bool reads_time(std::uint32_t csr) {
  switch (csr) {
    case 0xb00:
    case 0xb02:
    case 0xc00:
    case 0xc01:
    case 0xc02:
    case CM384_CSR_CYCLE:
    case CM384_CSR_SYS_COUNT:
      return true;
    default:
      return false;
  }
}
// Of those that stay what they are while a block runs.
bool reads_identity(std::uint32_t csr) {
  switch (csr) {
    case 0xf14:
    case CM384_CSR_BLOCK_INDEX:
    case CM384_CSR_BLOCK_COUNT:
    case CM384_CSR_ARGUMENTS:
    case CM384_CSR_CORE:
    case CM384_CSR_DIE:
    case CM384_CSR_CORE_KIND:
    case CM384_CSR_SUB_BLOCK:
      return true;
    default:
      return false;
  }
}

// A pipe instruction that moves nothing out of the core and notifies nothing outside.
bool stays_inside(std::uint32_t raw) {
  const std::uint32_t instruction_class = (raw >> 12) & 7, operation = (raw >> 7) & 31;
  switch (instruction_class) {
    case CM384_CLASS_VECTOR:
    case CM384_CLASS_REDUCE:
    case CM384_CLASS_CONVERT:
      return true;
    case CM384_CLASS_MTE:
      return operation == CM384_MTE_GM_TO_UB;
    case CM384_CLASS_SYNC:
      return operation == CM384_SET_FLAG || operation == CM384_WAIT_FLAG || operation == CM384_PIPE_BARRIER ||
             operation == CM384_SET_MASK || operation == CM384_SET_STRIDE || operation == CM384_SET_PADDING ||
             operation == CM384_SET_L2_ALLOCATE;
    default:
      return false;
  }
}

}  // namespace

void ScalarCore::begin_turn(std::uint64_t timed) {
  if (turn_ == nullptr) turn_ = std::make_unique<Turn>();
  turn_->timed = turn_->stale = timed;
  turn_->x = x_;
  turn_->f = f_;
  turn_->fcsr = state_.fcsr();
  turn_->stored.clear();
}

void ScalarCore::forget_turn() {
  turn_.reset();
}

std::optional<std::uint64_t> ScalarCore::end_turn() {
  const std::unique_ptr<Turn> turn = std::move(turn_);
  if (turn == nullptr || state_.fcsr() != turn->fcsr) return {};
  for (unsigned n = 1; n < 32; ++n) {
    if (x_[n] != turn->x[n] && (turn->timed >> n & 1u) == 0) return {};
  }
  for (unsigned n = 0; n < 32; ++n) {
    if (f_[n] != turn->f[n] && (turn->timed >> (32 + n) & 1u) == 0) return {};
  }
  // Back through the stores: what the turn began with must stand there again.
  for (std::size_t n = 0; n < turn->stored.size(); ++n) {
    const Turn::Stored& s = turn->stored[n];
    for (std::size_t k = 0; k < s.bytes; ++k) {
      const std::uint64_t at = s.address + k;
      bool earlier = false;
      for (std::size_t m = 0; m < n && !earlier; ++m)
        earlier = at - turn->stored[m].address < turn->stored[m].bytes;
      if (!earlier && *memory_.read(at) != s.before[k]) return {};
    }
  }
  return turn->timed;
}

void ScalarCore::watch_operation(const Operation& op) {
  Turn& turn = *turn_;
  const OperandUse use = operand_use(op);
  const bool timed = (turn.timed & use.reads) != 0;
  const std::uint64_t address = x_[op.rs1] + static_cast<std::uint64_t>(op.immediate);
  if ((turn.stale & use.reads) != 0) return turn_.reset();
  turn.stale &= ~use.writes;
  bool stays = true;
  switch (op.kind) {
    case Kind::lb:
    case Kind::lh:
    case Kind::lw:
    case Kind::ld:
    case Kind::lbu:
    case Kind::lhu:
    case Kind::lwu:
    case Kind::flw:
      // Global memory may change behind the cache.
      stays = !timed && !cm384_is_gm(address);
      turn.timed &= ~use.writes;
      break;
    case Kind::sb:
    case Kind::sh:
    case Kind::sw:
    case Kind::sd:
    case Kind::fsw:
      stays = !timed && !cm384_is_gm(address);
      if (PrivateMemory::contains(address) && PrivateMemory::contains(address + access_bytes(op.kind) - 1)) {
        Turn::Stored stored{address, access_bytes(op.kind), {}};
        for (std::size_t k = 0; k < stored.bytes; ++k) stored.before[k] = *memory_.read(address + k);
        turn.stored.push_back(stored);
      }
      break;
    case Kind::beq:
    case Kind::bne:
    case Kind::blt:
    case Kind::bge:
    case Kind::bltu:
    case Kind::bgeu:
      stays = !timed;
      break;
    case Kind::jal:
    case Kind::jalr:
      stays = !timed;
      turn.timed &= ~use.writes;
      break;
    case Kind::csr:
    case Kind::csri: {
      const std::uint32_t raw = raw_of(op), number = raw >> 20;
      const bool writes = ((raw >> 12) & 3) == 1 || op.rs1 != 0;
      stays = !writes && (reads_time(number) || reads_identity(number));
      turn.timed = reads_time(number) ? turn.timed | use.writes : turn.timed & ~use.writes;
      break;
    }
    case Kind::pipe:
      stays = !timed && stays_inside(raw_of(op));
      break;
    case Kind::amo:
    case Kind::dcci:
    case Kind::host:
    case Kind::fence_i:
    case Kind::ecall:
    case Kind::ebreak:
    case Kind::mret:
    case Kind::illegal:
    case Kind::fetch_fault:
    case Kind::breakpoint:
      stays = false;
      break;
    default:
      turn.timed = timed ? turn.timed | use.writes : turn.timed & ~use.writes;
      break;
  }
  if (!stays) turn_.reset();
}

}  // namespace cm384::npu
