// Decoded operations and blocks of straight-line code, with the static part of their timing.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "hw/parameters/scalar_core.h"

namespace cm384::npu {

enum class Kind : std::uint8_t {
#define OPERATION(name, format, latency) name,
#include "npu_core/scalar/operations.def"
#undef OPERATION
};

struct Operation {
  Kind kind = Kind::illegal;
  std::uint8_t rd = 0;  // an x destination of 0 is 32: the register file's sink
  std::uint8_t rs1 = 0;
  std::uint8_t rs2 = 0;
  std::uint16_t offset = 0;       // issue cycle, from the block's start
  std::uint8_t pc_halfwords = 0;  // pc, from the block's start
  std::uint8_t rs3 = 0;
  // Immediate; for branches and jumps the target. Float operations: bits 7:0 are 0 where the rounding mode is
  // nearest-even or dynamic, the raw encoding stands from bit 8 on. csr, amo, pipe, host: the raw encoding.
  std::int64_t immediate = 0;
};
static_assert(sizeof(Operation) == 16);

inline std::uint32_t raw_of(const Operation& op) {
  return static_cast<std::uint32_t>(op.immediate >> 8);
}

// Registers as bits: x1..x31 are bits 1..31, f0..f31 bits 32..63. x0 is none.
struct OperandUse {
  std::uint64_t reads = 0, writes = 0;
};
OperandUse operand_use(const Operation& op);
// True where rd is an x register.
bool writes_x(Kind kind);
const char* mnemonic(Kind kind);
// Bytes of a load or store (0 for anything else).
unsigned access_bytes(Kind kind);
bool ends_block(Kind kind);

// Decodes a 32-bit encoding at pc (compressed ones expanded before). Never fails: Kind::illegal.
Operation decode(std::uint32_t raw, std::uint64_t pc);
// The 32-bit encoding of a compressed instruction; 0 for an illegal one.
std::uint32_t expand(std::uint16_t raw);

struct Block;

// The way on from a block; `cost` is what the transition adds: a lost fetch, results still under way.
struct Edge {
  Block* to = nullptr;
  std::int64_t cost = 0;
};

class DecodeCache;

struct Block {
  std::uint64_t pc = 0;
  const Operation* operations = nullptr;
  std::uint64_t first_line = 0, last_line = 0;  // of the instruction cache
  std::uint32_t instructions = 0;
  std::uint64_t uses = 0;  // registers that its operations read or write, as in OperandUse
  std::uint32_t cost = 0;  // cycles from the first issue to the first issue after the block
  Edge edges[2];           // [0] sequential, [1] taken branch or jump
  std::uint64_t end_pc = 0;
  std::uint64_t target = 0;              // of edges[1]; for jalr the last one seen
  std::int32_t branch_cost[2] = {0, 0};  // fetch cycles lost on the edge
  struct Pending {
    std::uint64_t register_bit = 0;
    std::int64_t remaining = 0;  // cycles from the block's end to its result
  };
  std::vector<Pending> pending;
  const DecodeCache* owner = nullptr;  // edges join blocks of one owner
  std::vector<Operation> storage;
  std::vector<std::uint64_t> touched;  // by operation: registers that it reads or writes
};

// Cycles the transition from one block to another waits for results of the first.
std::int64_t carried_stall(const Block& from, const Block& to, std::int64_t already_lost);

// Where instructions are fetched from when a block is decoded.
class CodeSource {
 public:
  // False where there is no memory.
  virtual bool fetch(std::uint64_t address, std::uint16_t& halfword) const = 0;

 protected:
  ~CodeSource() = default;
};

// Decodes one block of at most `limit` instructions.
std::unique_ptr<Block> decode_block(std::uint64_t pc, const CodeSource& source,
                                    const hw::ScalarCoreParameters& parameters, std::uint32_t limit);

class Program;

// As all cores that run the program have it in their blocks.
std::unique_ptr<Block> decode_image_block(std::uint64_t pc, const Program& program);

class DecodeCache {
 public:
  static constexpr std::uint32_t kLongestBlock = 64;

  DecodeCache(const hw::ScalarCoreParameters& parameters, std::uint64_t text_low, std::uint64_t text_high);

  // Null when the block at pc has not been decoded.
  Block* find(std::uint64_t pc) const {
    const std::uint64_t index = (pc - text_low_) >> 1;
    if (index < by_halfword_.size()) return by_halfword_[index];
    const auto it = elsewhere_.find(pc);
    return it == elsewhere_.end() ? nullptr : it->second;
  }
  Block* decode(std::uint64_t pc, const CodeSource& source);
  // With these addresses patched into Kind::breakpoint from now on; drops all blocks.
  void set_breakpoints(std::vector<std::uint64_t> addresses);
  void clear();
  std::size_t footprint() const;

 private:
  const hw::ScalarCoreParameters& parameters_;
  std::uint64_t text_low_;
  std::vector<Block*> by_halfword_;
  std::unordered_map<std::uint64_t, Block*> elsewhere_;  // looked up, never walked
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::uint64_t> breakpoints_;
};

}  // namespace cm384::npu
