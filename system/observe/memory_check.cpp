#include "system/observe/memory_check.h"

#include <fmt/format.h>

#include "npu_core/die/die.h"
#include "npu_core/pipes/mte_engine.h"
#include "npu_core/pipes/pipe_observer.h"

namespace cm384::observe {
namespace {

constexpr std::size_t kMostFindings = 50;

}  // namespace

// One core's copies to global memory.
class MemoryCheck::CoreWatch final : public npu::PipeObserver {
 public:
  CoreWatch(MemoryCheck& check, npu::Die& die, npu::Core& core) : check_(check), die_(die), core_(core) {}

  void left(const npu::PipeStep& step) override {
    const npu::MteCopy* copy = step.copy;
    if (copy == nullptr || copy->operation == sim::Operation::read) return;
    Writer writer{.die = die_.number(),
                  .core = core_.number(),
                  .launch = core_.launch(),
                  .pc = copy->pc,
                  .place = core_.scalar().location(copy->pc)};
    const bool adds = copy->operation != sim::Operation::write;
    std::uint64_t begin = copy->gm;
    // Bursts that follow on each other are one range.
    const bool whole = copy->gm_stride == static_cast<std::int64_t>(copy->burst_bytes);
    const std::uint32_t ranges = whole ? 1 : copy->bursts;
    const std::uint64_t bytes = std::uint64_t{copy->burst_bytes} * (whole ? copy->bursts : 1);
    for (std::uint32_t n = 0; n < ranges && bytes > 0; ++n) {
      writer.end = begin + bytes;
      check_.wrote(writer, begin);
      if (!adds) check_.note(writer, begin);
      begin += static_cast<std::uint64_t>(copy->gm_stride);
    }
  }

 private:
  MemoryCheck& check_;
  npu::Die& die_;
  npu::Core& core_;
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

// Two places of the program are told once, however often they meet.
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
