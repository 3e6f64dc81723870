#include "system/observe/memory_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "npu_core/die/die.h"
#include "npu_core/pipes/mte_engine.h"
#include "npu_core/pipes/pipe_observer.h"
#include "npu_core/vector/ubuffer.h"
#include "npu_core/vector/vector_instruction.h"

namespace cm384::observe {
namespace {

constexpr std::size_t kMostFindings = 50;
constexpr std::uint64_t kWordsThatTell = 64;  // bytes

}  // namespace

// One core's copies to global memory, and its accesses to the UBuffer.
class MemoryCheck::CoreWatch final : public npu::PipeObserver {
 public:
  CoreWatch(MemoryCheck& check, npu::Die& die, npu::Core& core) : check_(check), die_(die), core_(core) {}

  void left(const npu::PipeStep& step) override {
    if (core_.pipes().scalar_buffer() != nullptr) local(step);
    const npu::MteCopy* copy = step.copy;
    const std::uint64_t misses = core_.scalar().counters().data_misses;
    if (std::exchange(misses_, misses) != misses) synchronised(step.start);
    if (copy == nullptr) return;
    Writer writer = here(copy->pc);
    writer.cycle = step.start;
    const bool reads = copy->operation == sim::Operation::read;
    const bool adds = copy->operation != sim::Operation::write;
    std::uint64_t begin = copy->gm;
    // Bursts that follow on each other are one range.
    const bool whole = copy->gm_stride == static_cast<std::int64_t>(copy->burst_bytes);
    const std::uint32_t ranges = whole ? 1 : copy->bursts;
    const std::uint64_t bytes = std::uint64_t{copy->burst_bytes} * (whole ? copy->bursts : 1);
    for (std::uint32_t n = 0; n < ranges && bytes > 0; ++n) {
      writer.end = begin + bytes;
      writer.bytes = bytes;
      if (reads) {
        if (check_.read(writer, begin, synchronised_)) synchronised(step.start);
      } else {
        check_.wrote(writer, begin);
        if (!adds) check_.note(writer, begin);
      }
      begin += static_cast<std::uint64_t>(copy->gm_stride);
    }
  }

  void scalar_waited_for_cross_core(std::uint32_t, std::int64_t, std::int64_t to) override {
    synchronised(to);
  }
  void scalar_polled(std::int64_t, std::int64_t to) override { synchronised(to); }
  void poll_turn(bool, std::int64_t cycle) override { synchronised(cycle); }

  void scalar_access(std::uint32_t offset, std::uint32_t bytes, bool write, std::uint64_t pc) override {
    if (offset + bytes > npu::kUBufferBytes) return;  // the counts of a merge
    if (offset % bytes != 0) check_.unaligned(here(pc), offset, bytes);
    write ? wrote(offset, bytes) : read(offset, bytes, pc);
  }

 private:
  void synchronised(std::int64_t cycle) { synchronised_ = std::max(synchronised_, cycle); }

  Writer here(std::uint64_t pc) const {
    return {.die = die_.number(),
            .core = core_.number(),
            .launch = core_.launch(),
            .pc = pc,
            .place = core_.scalar().location(pc)};
  }

  // Of a vector core.
  void local(const npu::PipeStep& step) {
    if (const npu::MteCopy* copy = step.copy) {
      const bool reads = copy->operation != sim::Operation::read;
      for (std::uint32_t b = 0; b < copy->bursts; ++b) {
        const std::uint32_t at = copy->local + b * copy->local_stride;
        reads ? read(at, copy->burst_bytes, copy->pc) : wrote(at, copy->padded());
      }
    } else if (step.kind == npu::PipeStep::Kind::work) {
      const npu::VectorInstruction v = npu::decode_vector(*step.instruction, step.low, step.high);
      if (v.cost != npu::VectorCost::gather_mask) {
        for (std::size_t n = 0; n < v.sources.size(); ++n) read(v, v.sources[n], n < 2);
      }
      if (v.reads_destination) read(v, v.destination, true);
      each(v, v.destination, true,
           [this](std::uint32_t offset, std::uint32_t bytes) { wrote(offset, bytes); });
    }
  }

  void read(const npu::VectorInstruction& v, const npu::VectorOperand& operand, bool masked) {
    const bool counted = v.cost == npu::VectorCost::reduce_add || v.cost == npu::VectorCost::reduce_max;
    if (operand.used() && counted && v.scalar >> 8 != 0)
      return read(operand.offset, (v.scalar >> 8) * v.element_bytes(), v.pc);
    each(v, operand, masked, [&](std::uint32_t offset, std::uint32_t bytes) { read(offset, bytes, v.pc); });
  }
  // Calls visit(offset, bytes) for what an instruction touches of an operand; `masked`: of its elements,
  // where it has whole blocks, those that the mask has.
  template <class Visit>
  static void each(const npu::VectorInstruction& v, const npu::VectorOperand& operand, bool masked,
                   const Visit& visit) {
    if (!operand.used()) return;
    if (!masked || v.full_mask() || operand.pieces == 1) {
      operand.any_range([&](std::uint32_t offset, std::uint32_t bytes) {
        visit(offset, bytes);
        return false;
      });
      return;
    }
    const std::uint32_t elements = v.elements_masked();
    const std::uint32_t element_bytes = operand.pieces * operand.piece_bytes / elements;
    if (element_bytes == 0) return;
    for (std::uint32_t r = 0; r < operand.repeats; ++r) {
      for (std::uint32_t e = 0; e < elements; ++e) {
        const std::uint32_t in_repeat = e * element_bytes;
        if (v.element_on(e))
          visit(operand.at(r, in_repeat / operand.piece_bytes) + in_repeat % operand.piece_bytes,
                element_bytes);
      }
    }
  }

  // What was written before the launch is not the kernel's.
  void begin_launch() {
    if (written_.empty()) written_.resize(npu::kUBufferBytes);
    if (std::exchange(launch_, core_.launch()) == core_.launch()) return;
    std::fill(written_.begin(), written_.end(), false);
  }
  void wrote(std::uint32_t offset, std::uint32_t bytes) {
    begin_launch();
    const std::uint32_t end = std::min(offset + bytes, npu::kUBufferBytes);
    if (offset < end) std::fill(written_.begin() + offset, written_.begin() + end, true);
  }
  void read(std::uint32_t offset, std::uint32_t bytes, std::uint64_t pc) {
    begin_launch();
    const std::uint32_t end = std::min(offset + bytes, npu::kUBufferBytes);
    if (offset >= end) return;
    const auto first = std::find(written_.begin() + offset, written_.begin() + end, false);
    if (first == written_.begin() + end) return;
    const auto last = std::find(first, written_.begin() + end, true);
    check_.read_unwritten(here(pc), static_cast<std::uint32_t>(first - written_.begin()),
                          static_cast<std::uint32_t>(last - first));
  }

  MemoryCheck& check_;
  npu::Die& die_;
  npu::Core& core_;
  std::vector<bool> written_;  // bytes of the UBuffer, by the launch
  std::uint32_t launch_ = ~std::uint32_t{0};
  std::int64_t synchronised_ = -1;  // what other cores have written before may be known to be there
  std::uint64_t misses_ = 0;
};

MemoryCheck::MemoryCheck(supernode::Supernode& machine, Allocated allocated)
    : allocated_(std::move(allocated)) {
  machine.need_order("--check-memory");
  for (const int number : machine.dies()) {
    npu::Die& die = machine.die(number);
    for (int n = 0; n < die.cluster().size(); ++n) {
      npu::Core& core = die.cluster().core(n);
      watches_.push_back(std::make_unique<CoreWatch>(*this, die, core));
      core.pipes().add_observer(*watches_.back());
    }
  }
}

MemoryCheck::~MemoryCheck() = default;

void MemoryCheck::wrote(const Writer& writer, std::uint64_t begin) {
  if (allocated_(begin, writer.end - begin)) return;
  find(writer, 0,
       fmt::format("die {} core {}: {} writes {} B at {:#x}, which nobody has allocated", writer.die,
                   writer.core, writer.place, writer.end - begin, begin));
}

bool MemoryCheck::read(const Writer& reader, std::uint64_t begin, std::int64_t told) {
  auto at = written_.upper_bound(begin);
  if (at != written_.begin() && std::prev(at)->second.end > begin) --at;
  const Writer* unordered = nullptr;
  std::uint64_t first = 0, bytes = 0;
  for (; at != written_.end() && at->first < reader.end; ++at) {
    const Writer& old = at->second;
    if (old.die != reader.die || old.core == reader.core || old.launch != reader.launch) continue;
    if (old.bytes <= kWordsThatTell) return true;
    if (old.cycle < told || unordered != nullptr) continue;
    unordered = &old;
    first = std::max(begin, at->first);
    bytes = std::min(reader.end, old.end) - first;
  }
  if (unordered == nullptr) return false;
  find(
      reader, unordered->pc | 1,
      fmt::format("die {} core {}: {} reads {} B at {:#x}, which core {} has written in the same launch: {}; "
                  "nothing in between tells it that they are there",
                  reader.die, reader.core, reader.place, bytes, first, unordered->core, unordered->place));
  return false;
}

void MemoryCheck::read_unwritten(const Writer& reader, std::uint32_t offset, std::uint32_t bytes) {
  find(reader, 1,
       fmt::format(
           "die {} core {}: {} reads {} B of the UBuffer at {:#x}, which nothing has written in its launch",
           reader.die, reader.core, reader.place, bytes, offset));
}

void MemoryCheck::unaligned(const Writer& by, std::uint32_t offset, std::uint32_t bytes) {
  find(by, 3,
       fmt::format("die {} core {}: {} accesses {} B of the UBuffer at {:#x}, which is no multiple of {}",
                   by.die, by.core, by.place, bytes, offset, bytes));
}

// Two places of the program are reported once, however often they meet.
void MemoryCheck::find(const Writer& writer, std::uint64_t other_pc, std::string text) {
  if (findings_.size() >= kMostFindings || !found_.emplace(writer.pc, other_pc).second) return;
  findings_.push_back(std::move(text));
}

void MemoryCheck::note(const Writer& writer, std::uint64_t begin) {
  auto at = written_.upper_bound(begin);
  if (at != written_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != written_.end() && at->first < writer.end) {
    const std::uint64_t old_begin = at->first;
    const Writer old = at->second;
    const bool other = old.die != writer.die || old.core != writer.core;
    if (other && old.launch == writer.launch) {
      const std::uint64_t first = std::max(begin, old_begin), last = std::min(writer.end, old.end);
      find(writer, old.pc | 1,
           fmt::format(
               "die {} core {}: {} writes {} B at {:#x}, which die {} core {} has written in the same "
               "launch: {}",
               writer.die, writer.core, writer.place, last - first, first, old.die, old.core, old.place));
    }
    at = written_.erase(at);
    // What the new range leaves of the old one.
    if (old_begin < begin) {
      Writer left = old;
      left.end = begin;
      written_.emplace(old_begin, std::move(left));
    }
    if (old.end > writer.end) at = written_.emplace(writer.end, old).first;
  }
  written_.insert_or_assign(begin, writer);
}

}  // namespace cm384::observe
