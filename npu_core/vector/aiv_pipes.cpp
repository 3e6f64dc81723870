// Work of the V pipe and copies of the MTE engines.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "firmware/abi/isa.h"
#include "firmware/abi/memory_map.h"
#include "npu_core/memory/atomic.h"
#include "npu_core/pipes/pipe_fault.h"
#include "npu_core/vector/aiv.h"
#include "npu_core/vector/bank_conflicts.h"
#include "npu_core/vector/vector_ops.h"

namespace cm384::npu {
namespace {

MteCopy copy_of(const QueuedInstruction& q) {
  const PipeInstruction& in = q.instruction;
  const bool reads = in.operation == CM384_MTE_GM_TO_UB;
  const std::uint64_t gm = reads ? in.b : in.a;
  const std::uint64_t local = reads ? in.a : in.b;
  const std::uint64_t gm_stride = reads ? q.low : q.high;
  const std::uint64_t local_stride = reads ? q.high : q.low;
  MteCopy c;
  c.gm = gm;
  c.burst_bytes = static_cast<std::uint32_t>(in.c);
  c.bursts = static_cast<std::uint32_t>(in.c >> 32);
  c.allocate = q.allocate;
  c.pc = in.pc;
  // An atomic mode stands in the operation's number (Aiv::issue), as in that of sim::Operation.
  c.operation = static_cast<sim::Operation>(in.operation);
  static_assert(static_cast<int>(sim::Operation::write) == CM384_MTE_UB_TO_GM &&
                static_cast<int>(sim::Operation::atomic_add_f32) == CM384_MTE_UB_TO_GM_ADD_F32);
  if (reads && q.pad_size != 0) [[unlikely]] {
    c.pad_left = q.pad_left;
    c.pad_right = q.pad_right;
    c.pad_size = q.pad_size;
    c.pad_value = q.pad_value;
  }
  if (!cm384_is_gm(gm)) {
    fault(in.pc, fmt::format("copy with {:#x}, which is no global address", gm));
  }
  if (c.bursts > 65535) fault(in.pc, "copy of more than 65535 bursts");
  if (local % sim::kBlockBytes != 0 || (c.bursts > 1 && local_stride % sim::kBlockBytes != 0)) {
    fault(in.pc, "copy: UBuffer offset and stride must be multiples of 32");
  }
  if (in.operation >= CM384_MTE_UB_TO_GM_ADD_S32) {
    const std::uint32_t element = atomic_element_bytes(c.operation);
    if (gm % element != 0 || c.burst_bytes % element != 0)
      fault(in.pc, fmt::format("atomic copy: address and burst must be multiples of {}", element));
  }
  if (c.bursts > 1) {
    c.gm_stride = static_cast<std::int64_t>(gm_stride);
    c.local_stride = static_cast<std::uint32_t>(std::min<std::uint64_t>(local_stride, kUBufferBytes));
  }
  if (local >= kUBufferBytes || c.burst_bytes > kUBufferBytes ||
      local + std::uint64_t{c.bursts - 1} * c.local_stride + c.padded() > kUBufferBytes) {
    fault(in.pc, fmt::format("copy of {} x {} B at UBuffer offset {:#x} leaves the UBuffer (192 KiB)",
                             c.bursts, c.burst_bytes, local));
  }
  c.local = static_cast<std::uint32_t>(local);
  return c;
}

// Calls visit(offset, bytes, write) for all that an instruction touches; the counts of a merge stand behind
// the UBuffer.
template <class Visit>
void for_each_range(const VectorInstruction& v, const VectorOperand& written, const Visit& visit) {
  const auto each = [&](bool write) {
    return [&visit, write](std::uint32_t offset, std::uint32_t bytes) {
      visit(offset, bytes, write);
      return false;
    };
  };
  // Of an operand that has a place for each element: the blocks in which an element of the mask lies.
  const auto operand = [&](const VectorOperand& o, bool write) {
    if (o.pieces <= 1 || v.full_mask()) {
      o.any_range(each(write));
      return;
    }
    const std::uint32_t count = v.elements_masked() / o.pieces;
    for (std::uint32_t r = 0; r < (o.repeat_stride == 0 ? 1 : o.repeats); ++r) {
      for (std::uint32_t p = 0; p < o.pieces; ++p) {
        if (v.piece_on(p, count)) visit(o.at(r, p), o.piece_bytes, write);
      }
    }
  };
  for (const VectorOperand& source : v.sources) operand(source, false);
  if (v.reads_destination) operand(v.destination, false);
  operand(written, true);
  if (v.stops) visit(kUBufferBytes, sim::kBlockBytes, true);
}

}  // namespace

void Aiv::start_work(int pipe, QueuedInstruction& entry) {
  VectorInstruction v = decode_vector(entry.instruction, entry.low, entry.high);
  const VectorCostTable::Row& row = tables_->costs[v.cost];
  PipeQueue& q = queue[pipe];
  if (hazards) {
    hazards->started(pipe);
    check_hazards(v);
  }
  LocalRanges bytes;
  if (order) [[unlikely]]
    bytes = touched(pipe, entry);
  if (v.stops) [[unlikely]]
    merged_ = cut_merge(v, ubuffer_);
  // The head overlaps with what the unit still works on: it is paid in full by an empty pipe alone.
  std::int64_t own = std::max(q.ready, q.unit_free - row.head), ordered = 0;
  if (order) [[unlikely]] {
    const std::int64_t free = std::max(entry.cycle, own);
    own = std::max(own, order->complete(pipe, bytes));
    if (own > free) {
      ordered = own - free;
      order->waited({.pc = entry.instruction.pc, .pipe = pipe, .by_pipe = true}, ordered);
    }
  }
  const std::int64_t start = std::max(entry.cycle, own);
  const std::int64_t conflicts = bank_conflict_cycles(v);
  const std::int64_t cycles = occupancy(row, v.repeats, conflicts);
  q.unit_free = start + row.head + cycles;
  q.unit_complete = std::max(q.unit_complete, q.unit_free + row.tail);
  step(PipeStep::Kind::work, pipe, entry, own, start, q.unit_free, start, nullptr,
       {&v, cycles, conflicts, ordered});
  if (order) [[unlikely]]
    order->left(pipe, std::move(bytes), q.unit_complete, std::min(entry.cycle, q.ready));
  q.ready = start + 1;
  perform(v, ubuffer_);
  ++statistics_.vector_instructions;
  statistics_.vector_repeats += v.repeats;
  statistics_.vector_busy_cycles += static_cast<std::uint64_t>(cycles);
  statistics_.bank_conflict_cycles += static_cast<std::uint64_t>(conflicts);
  retire(pipe, start);
}

MteCopy Aiv::prepare_copy(int pipe, const QueuedInstruction& entry) {
  const MteCopy copy = copy_of(entry);
  if (hazards) check_hazards(pipe, copy);
  (pipe == kPipeMte2 ? statistics_.mte2_instructions : statistics_.mte3_instructions) += 1;
  return copy;
}

void Aiv::check_hazards(const VectorInstruction& v) {
  hazards->begin_access(kPipeV);
  for_each_range(v, written_by(v, ubuffer_), [&](std::uint32_t offset, std::uint32_t bytes, bool write) {
    hazards->access(kPipeV, offset, bytes, write, v.pc);
  });
}

void Aiv::check_hazards(int pipe, const MteCopy& copy) {
  hazards->begin_access(pipe);
  for (std::uint32_t b = 0; b < copy.bursts; ++b) {
    hazards->access(pipe, copy.local + b * copy.local_stride, copy.padded(), pipe == kPipeMte2, copy.pc);
  }
}

LocalRanges Aiv::touched(int pipe, const QueuedInstruction& entry) const {
  LocalRanges ranges;
  if (pipe == kPipeV) {
    const VectorInstruction v = decode_vector(entry.instruction, entry.low, entry.high);
    for_each_range(v, written_by(v, ubuffer_), [&](std::uint32_t offset, std::uint32_t bytes, bool write) {
      ranges.add(offset, bytes, write);
    });
    return ranges;
  }
  const MteCopy copy = copy_of(entry);
  for (std::uint32_t b = 0; b < copy.bursts; ++b)
    ranges.add(copy.local + b * copy.local_stride, copy.padded(), pipe == kPipeMte2);
  return ranges;
}

}  // namespace cm384::npu
