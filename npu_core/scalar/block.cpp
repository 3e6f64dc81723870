// Blocks: decoding a run of instructions and the part of their timing that is known then.
#include <algorithm>
#include <array>
#include <bit>

#include "npu_core/scalar/decode.h"

namespace cm384::npu {
namespace {

enum class LatencyClass : std::uint8_t {
  one,
  load,
  multiply,
  divide,
  float_operation,
  float_divide,
  float_square_root
};
constexpr LatencyClass kLatencies[] = {
#define OPERATION(name, format, latency) LatencyClass::latency,
#include "npu_core/scalar/operations.def"
#undef OPERATION
};

int latency(Kind kind, const hw::ScalarCoreParameters& p) {
  switch (kLatencies[static_cast<std::size_t>(kind)]) {
    case LatencyClass::one:
      return 1;
    case LatencyClass::load:
      return p.load_use;
    case LatencyClass::multiply:
      return p.multiply;
    case LatencyClass::divide:
      return p.divide;
    case LatencyClass::float_operation:
      return p.float_operation;
    case LatencyClass::float_divide:
      return p.float_divide;
    case LatencyClass::float_square_root:
      return p.float_square_root;
  }
  return 1;
}

// When each register's result can be used, in cycles from the block's start.
class Scoreboard {
 public:
  // Issues an operation and returns its cycle: one per cycle, when its operands (and the register it writes)
  // are ready.
  std::int64_t issue(const Operation& op, int result_latency) {
    const OperandUse use = operand_use(op);
    std::int64_t at = next_;
    for (std::uint64_t rest = use.reads | use.writes; rest != 0; rest &= rest - 1) {
      at = std::max(at, ready_[static_cast<std::size_t>(std::countr_zero(rest))]);
    }
    if (use.writes != 0) ready_[static_cast<std::size_t>(std::countr_zero(use.writes))] = at + result_latency;
    next_ = at + 1;
    return at;
  }
  std::int64_t next() const { return next_; }
  std::vector<Block::Pending> pending() const {
    std::vector<Block::Pending> out;
    for (std::size_t r = 0; r < ready_.size(); ++r) {
      if (ready_[r] > next_) out.push_back({std::uint64_t{1} << r, ready_[r] - next_});
    }
    return out;
  }

 private:
  std::array<std::int64_t, 64> ready_{};
  std::int64_t next_ = 0;
};

void price_edges(Block& block, const Operation& last, std::uint64_t last_pc,
                 const hw::ScalarCoreParameters& p) {
  switch (last.kind) {
    case Kind::beq:
    case Kind::bne:
    case Kind::blt:
    case Kind::bge:
    case Kind::bltu:
    case Kind::bgeu: {
      block.target = static_cast<std::uint64_t>(last.immediate);
      const bool predicted_taken = block.target <= last_pc;
      block.branch_cost[0] = predicted_taken ? p.branch_mispredict : 0;
      block.branch_cost[1] = predicted_taken ? p.taken_branch : p.branch_mispredict;
      return;
    }
    case Kind::jal:
      block.target = static_cast<std::uint64_t>(last.immediate);
      block.branch_cost[1] = p.taken_branch;
      return;
    case Kind::jalr: {
      // A return stack is taken to be right always; other indirect jumps are not predicted.
      const bool is_return = last.rd == 32 && (last.rs1 == 1 || last.rs1 == 5);
      block.target = ~std::uint64_t{0};
      block.branch_cost[1] = is_return ? p.taken_branch : p.branch_mispredict;
      return;
    }
    case Kind::fence_i:
      block.branch_cost[0] = p.branch_mispredict;
      return;
    default:
      return;
  }
}

}  // namespace

std::int64_t carried_stall(const Block& from, const Block& to, std::int64_t already_lost) {
  std::int64_t stall = 0;
  for (const Block::Pending& pending : from.pending) {
    for (std::uint32_t i = 0; i < to.instructions; ++i) {
      const Operation& op = to.operations[i];
      const OperandUse use = operand_use(op);
      if (((use.reads | use.writes) & pending.register_bit) == 0) continue;
      stall = std::max(stall, pending.remaining - already_lost - op.offset);
      break;
    }
  }
  return stall;
}

std::unique_ptr<Block> decode_block(std::uint64_t pc, const CodeSource& source,
                                    const hw::ScalarCoreParameters& parameters, std::uint32_t limit) {
  auto block = std::make_unique<Block>();
  block->pc = pc;
  Scoreboard scoreboard;
  std::uint64_t at = pc, last_byte = pc;
  while (block->storage.size() < limit) {
    std::uint16_t low = 0, high = 0;
    Operation op;
    std::uint64_t length = 2;
    if (!source.fetch(at, low)) {
      if (!block->storage.empty()) break;  // the fault belongs to the block that starts there
      op.kind = Kind::fetch_fault;
    } else if ((low & 3) != 3) {
      const std::uint32_t raw = expand(low);
      op = decode(raw, at);
      if (raw == 0) op.immediate = static_cast<std::int64_t>(low) << 8;
    } else if (source.fetch(at + 2, high)) {
      op = decode(static_cast<std::uint32_t>(high) << 16 | low, at);
      length = 4;
    } else {
      if (!block->storage.empty()) break;
      op.kind = Kind::fetch_fault;
    }
    op.pc_halfwords = static_cast<std::uint8_t>((at - pc) / 2);
    op.offset = static_cast<std::uint16_t>(scoreboard.issue(op, latency(op.kind, parameters)));
    const OperandUse use = operand_use(op);
    block->uses |= use.reads | use.writes;
    block->storage.push_back(op);
    block->touched.push_back(use.reads | use.writes);
    last_byte = at + length - 1;
    const std::uint64_t op_pc = at;
    at += length;
    if (ends_block(op.kind)) {
      price_edges(*block, op, op_pc, parameters);
      break;
    }
  }
  block->instructions = static_cast<std::uint32_t>(block->storage.size());
  block->end_pc = at;
  block->cost = static_cast<std::uint32_t>(scoreboard.next());
  block->pending = scoreboard.pending();
  const auto line = static_cast<std::uint64_t>(parameters.instruction_cache_line.count);
  block->first_line = pc / line;
  block->last_line = last_byte / line;
  Operation end;
  end.kind = Kind::end;
  end.offset = static_cast<std::uint16_t>(block->cost);
  end.pc_halfwords = static_cast<std::uint8_t>((at - pc) / 2);
  block->storage.push_back(end);
  block->touched.push_back(0);
  block->storage.shrink_to_fit();
  block->touched.shrink_to_fit();
  block->operations = block->storage.data();
  return block;
}

DecodeCache::DecodeCache(const hw::ScalarCoreParameters& parameters, std::uint64_t text_low,
                         std::uint64_t text_high)
    : parameters_(parameters), text_low_(text_low), by_halfword_((text_high - text_low + 1) / 2) {}

Block* DecodeCache::decode(std::uint64_t pc, const CodeSource& source) {
  blocks_.push_back(decode_block(pc, source, parameters_, kLongestBlock));
  Block* block = blocks_.back().get();
  block->owner = this;
  for (std::uint32_t i = 0; !breakpoints_.empty() && i < block->instructions; ++i) {
    Operation& op = block->storage[i];
    if (std::binary_search(breakpoints_.begin(), breakpoints_.end(), pc + 2 * op.pc_halfwords)) {
      op.kind = Kind::breakpoint;
    }
  }
  const std::uint64_t index = (pc - text_low_) >> 1;
  if (index < by_halfword_.size()) {
    by_halfword_[index] = block;
  } else {
    elsewhere_[pc] = block;
  }
  return block;
}

void DecodeCache::set_breakpoints(std::vector<std::uint64_t> addresses) {
  breakpoints_ = std::move(addresses);
  std::sort(breakpoints_.begin(), breakpoints_.end());
  clear();
}

void DecodeCache::clear() {
  std::fill(by_halfword_.begin(), by_halfword_.end(), nullptr);
  elsewhere_.clear();
  blocks_.clear();
}

std::size_t DecodeCache::footprint() const {
  std::size_t bytes = sizeof *this + by_halfword_.size() * sizeof(Block*);
  for (const auto& block : blocks_) {
    bytes += sizeof(Block) + block->storage.size() * (sizeof(Operation) + sizeof(std::uint64_t));
  }
  return bytes;
}

}  // namespace cm384::npu
