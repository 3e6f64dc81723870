#include "npu_core/vector/bank_conflicts.h"

#include <algorithm>

#include "base/engine/payload.h"

namespace cm384::npu {
namespace {

constexpr std::uint32_t kGroups = 16;
constexpr std::uint32_t kBankSpan = 64 * 1024;  // bytes after which the same group starts with its next bank

constexpr std::uint32_t kTogether = 8;  // blocks that are accessed at a time: a counted operand has more

// Most pieces accessed together that fall into one group.
std::int64_t most_in_a_group(const VectorOperand& operand) {
  const std::uint32_t stride = operand.piece_stride / sim::kBlockBytes % kGroups;
  if (operand.piece_stride == 0) return 1;  // one row, read once for all
  const std::uint32_t groups = stride == 0 ? 1 : kGroups / (stride & (0u - stride));
  return (std::min(operand.pieces, kTogether) + groups - 1) / groups;
}

std::uint32_t groups_of(const VectorOperand& operand, std::uint32_t repeat) {
  std::uint32_t groups = 0;
  for (std::uint32_t p = 0; p < operand.pieces; ++p) {
    groups |= 1u << (operand.at(repeat, p) / sim::kBlockBytes % kGroups);
  }
  return groups;
}

bool comes_back(const VectorOperand& operand) {
  return operand.repeat_stride % (kGroups * sim::kBlockBytes) == 0;
}

}  // namespace

std::int64_t bank_conflict_cycles(const VectorInstruction& v) {
  std::int64_t reads = 0;
  bool meets = false;
  for (const VectorOperand& source : v.sources) {
    if (source.pieces <= 1) continue;
    reads += most_in_a_group(source) - 1;
    // In place the same rows are forwarded, so only different rows of a bank meet.
    if (v.repeats > 1 && comes_back(source) && comes_back(v.destination) && v.destination.pieces > 1 &&
        source.offset != v.destination.offset &&
        source.offset / kBankSpan == v.destination.offset / kBankSpan) {
      meets = meets || (groups_of(source, 0) & groups_of(v.destination, 0)) != 0;
    }
  }
  const std::int64_t writes = v.destination.pieces > 1 ? most_in_a_group(v.destination) - 1 : 0;
  return v.repeats * std::max(reads, writes) + (meets ? v.repeats - 1 : 0);
}

}  // namespace cm384::npu
