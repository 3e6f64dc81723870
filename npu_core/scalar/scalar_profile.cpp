#include "npu_core/scalar/scalar_profile.h"

#include <algorithm>

#include "firmware/abi/isa.h"
#include "npu_core/scalar/decode.h"
#include "npu_core/scalar/program.h"

namespace cm384::npu {

const char* name_of(ScalarStall stall) {
  static constexpr std::array<const char*, kScalarStalls> kNames{
      "latency", "fetch", "memory", "local", "order", "queue", "flag", "pipes", "cross_core", "poll"};
  return kNames[static_cast<std::size_t>(stall)];
}

ScalarStall stall_of(const Operation& op) {
  if (op.kind == Kind::host) return ScalarStall::pipes;
  if (op.kind != Kind::pipe) return ScalarStall::memory;
  if ((raw_of(op) >> 12 & 7) != CM384_CLASS_SYNC) return ScalarStall::queue;
  switch (op.rd) {
    case CM384_WAIT_FLAG:
    case CM384_SET_FLAG:
      return ScalarStall::flag;
    case CM384_PIPE_BARRIER:
      return ScalarStall::pipes;
    case CM384_CROSS_CORE_WAIT:
      return ScalarStall::cross_core;
    case CM384_POLL_MARK:
      return ScalarStall::poll;
    default:
      return ScalarStall::queue;
  }
}

ScalarCycles& ScalarCycles::operator+=(const ScalarCycles& other) {
  instructions += other.instructions;
  for (std::size_t n = 0; n < stalls.size(); ++n) stalls[n] += other.stalls[n];
  return *this;
}

std::size_t ScalarTables::number_of(const std::shared_ptr<Program>& program) {
  const auto same_image = [&](const auto& known) { return &known->image() == &program->image(); };
  const auto known = std::ranges::find_if(programs_, same_image);
  if (known != programs_.end()) return static_cast<std::size_t>(known - programs_.begin());
  programs_.push_back(program);
  counts_.emplace_back();
  return programs_.size() - 1;
}

void ScalarProfile::begin(const std::shared_ptr<Program>& program) {
  current_ = tables_.number_of(program);
  const auto known = std::ranges::find(started_, current_, &Started::program);
  if (known == started_.end()) {
    started_.push_back({current_, 1});
  } else {
    ++known->times;
  }
  parked_cycle_ = -1;
  ordered_ = 0;
  parked_by_order_ = false;
}

void ScalarProfile::ran_part(const Block& block, std::uint32_t end) {
  for (std::uint32_t n = 0; n < end; ++n) {
    const std::uint64_t pc = block.pc + 2 * block.operations[n].pc_halfwords;
    issued(pc);
    stalled(pc, ScalarStall::latency, block.operations[n + 1].offset - block.operations[n].offset - 1);
  }
}

void ScalarProfile::clear() {
  for (Started& each : started_) each.times = 0;
  total_ = {};
}

const Block& ScalarTables::Blocks::at(const Program& program, std::uint64_t pc) {
  auto& block = known_[{&program, pc}];
  if (block == nullptr) block = decode_image_block(pc, program);
  return *block;
}

ScalarTables::Counts& ScalarTables::Counts::operator+=(const Counts& other) {
  other.blocks.each([&](std::uint64_t pc, const Ran& ran) {
    Ran& sum = blocks.at(pc);
    sum.times += ran.times;
    sum.edge_cycles += ran.edge_cycles;
  });
  other.instructions.each(
      [&](std::uint64_t pc, const ScalarCycles& cycles) { instructions.at(pc) += cycles; });
  return *this;
}

std::map<std::uint64_t, ScalarCycles> ScalarTables::instructions(const Program& program, const Counts& counts,
                                                                 Blocks& blocks) {
  constexpr auto kLatency = static_cast<std::size_t>(ScalarStall::latency);
  std::map<std::uint64_t, ScalarCycles> all;
  counts.instructions.each([&](std::uint64_t pc, const ScalarCycles& cycles) { all[pc] += cycles; });
  counts.blocks.each([&](std::uint64_t first, const Ran& ran) {
    const Block& block = blocks.at(program, first);
    const Operation* const ops = block.operations;
    for (std::uint32_t n = 0; n < block.instructions; ++n) {
      ScalarCycles& cycles = all[first + 2u * ops[n].pc_halfwords];
      cycles.instructions += ran.times;
      cycles.stalls[kLatency] +=
          ran.times * static_cast<std::uint64_t>(ops[n + 1].offset - ops[n].offset - 1);
      if (n + 1 == block.instructions) cycles.stalls[kLatency] += ran.edge_cycles;
    }
  });
  return all;
}

ScalarCycles ScalarTables::total(const Program& program, const Counts& counts, Blocks& blocks) {
  ScalarCycles sum;
  counts.instructions.each([&](std::uint64_t, const ScalarCycles& cycles) { sum += cycles; });
  counts.blocks.each([&](std::uint64_t first, const Ran& ran) {
    const Block& block = blocks.at(program, first);
    const std::uint32_t count = block.instructions;
    sum.instructions += ran.times * count;
    sum.stalls[static_cast<std::size_t>(ScalarStall::latency)] +=
        ran.times * static_cast<std::uint64_t>(block.operations[count].offset - block.operations[0].offset -
                                               static_cast<std::int64_t>(count)) +
        ran.edge_cycles;
  });
  return sum;
}

}  // namespace cm384::npu
