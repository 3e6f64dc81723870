#include "npu_core/pipes/hazard_checker.h"

#include <fmt/format.h>

#include <algorithm>

#include "npu_core/pipes/pipe_fault.h"

namespace cm384::npu {

std::string Hazard::text() const {
  return fmt::format("hazard in {}: {} {} block {:#x} ({{}}), which {} {} ({{}}); {}", buffer, access.pipe,
                     access.write ? "writes" : "reads", offset, other.pipe, other.write ? "writes" : "reads",
                     ordered ? "covered by the automatic order"
                     : access.pipe == other.pipe
                         ? fmt::format("no PipeBarrier<PIPE_{}> orders them", access.pipe)
                         : "no flag or barrier orders them");
}

HazardChecker::HazardChecker(const HazardSpace& space, bool orders_scalar, HazardListener* listener)
    : space_(space),
      pipes_(static_cast<int>(space.pipes.size())),
      flags_(space.pipes.size() * space.pipes.size() * 8),
      blocks_((space.bytes / space.grain + kTogether - 1) / kTogether),
      orders_scalar_(orders_scalar),
      listener_(listener) {}

void HazardChecker::reset(bool orders_scalar, HazardListener* listener) {
  ++launch_;
  orders_scalar_ = orders_scalar;
  listener_ = listener;
  clock_ = {};
  scalar_before_ = {};
  scalar_drained_ = 0;
  written_ = 0;
  for (auto& pushed : queue_) pushed.clear();
  for (auto& sets : flags_) sets.clear();
  told_.clear();
}

void HazardChecker::join(int pipe, const VectorClock& other) {
  for (int p = 0; p < pipes_; ++p) {
    if (p != pipe) clock_[pipe][p] = std::max(clock_[pipe][p], other[p]);
  }
  // Who knows of an access of this pipe has waited for it.
  if (pipe == space_.pipelined) written_ = std::max(written_, other[pipe]);
}

void HazardChecker::pushed(int pipe) {
  queue_[pipe].push_back({clock_[kPipeS], scalar_drained_});
}

void HazardChecker::started(int pipe) {
  auto [at_push, drained] = queue_[pipe].front();
  queue_[pipe].pop_front();
  scalar_before_[pipe] = at_push[kPipeS];
  at_push[kPipeS] = drained;  // scalar stores are ordered by flags and barriers of all pipes
  join(pipe, at_push);
}

void HazardChecker::flag_set(int source, std::uint32_t flag) {
  flags_[flag].push_back(clock_[source]);
}

void HazardChecker::flag_waited(int destination, std::uint32_t flag) {
  join(destination, flags_[flag].front());
  flags_[flag].erase(flags_[flag].begin());
}

void HazardChecker::barrier(int pipe) {
  if (pipe == space_.pipelined) written_ = clock_[pipe][pipe];
}

void HazardChecker::all_waited() {
  for (int p = 0; p < pipes_; ++p) join(kPipeS, clock_[p]);
  scalar_drained_ = clock_[kPipeS][kPipeS];
}

void HazardChecker::access(int pipe, std::uint32_t offset, std::uint32_t bytes, bool write,
                           std::uint64_t pc) {
  const VectorClock& known = clock_[pipe];
  const std::uint32_t last = (offset + bytes - 1) / space_.grain;
  for (std::uint32_t b = offset / space_.grain; b <= last; ++b) {
    Block& block = this->block(b);
    if (block.launch != launch_) block = {.launch = launch_, .write = {}, .reads = {}};
    if (block.writer < pipes_ && block.writer != pipe && block.write.sequence > known[block.writer]) {
      report(pipe, write, pc, block.writer, true, block.write, b);
    } else if (!write && block.writer == pipe && pipe == space_.pipelined &&
               block.write.sequence > written_ && b < first_buffer_blocks()) {
      report(pipe, write, pc, pipe, true, block.write, b);
    }
    if (!write) {
      block.reads[pipe] = {known[pipe], pc};
      continue;
    }
    for (int p = 0; p < pipes_; ++p) {
      const std::uint32_t ordered =
          p == kPipeS && pipe != kPipeS ? std::max(known[kPipeS], scalar_before_[pipe]) : known[p];
      if (p != pipe && block.reads[p].sequence > ordered) {
        report(pipe, write, pc, p, false, block.reads[p], b);
      }
    }
    block.writer = static_cast<std::uint8_t>(pipe);
    block.write = {known[pipe], pc};
    block.reads = {};
  }
}

void HazardChecker::report(int pipe, bool write, std::uint64_t pc, int other, bool other_write,
                           const Touch& touch, std::uint32_t block) {
  const std::uint32_t offset = block * space_.grain;
  std::size_t buffer = 0;
  while (buffer + 1 < space_.buffers.size() && space_.buffers[buffer + 1].begin <= offset) ++buffer;
  const HazardSpace::Buffer& place = space_.buffers[buffer];
  const bool ordered = orders_scalar_ && buffer == 0 && (pipe == kPipeS || other == kPipeS || pipe == other);
  const Hazard found{.access = {space_.pipes[pipe].name, write, pc},
                     .other = {space_.pipes[other].name, other_write, touch.pc},
                     .ordered = ordered,
                     .buffer = place.name,
                     .offset = offset - place.begin};
  // What was waited for is known from here on; hazards of a pipe's own instructions are reported once.
  if (pipe == other) {
    written_ = std::max(written_, touch.sequence);
  } else if (ordered) {
    clock_[pipe][other] = std::max(clock_[pipe][other], touch.sequence);
  }
  if (listener_ == nullptr) {
    if (ordered) return;
    throw PipeFault(found.text(), {pc, touch.pc});
  }
  if (told_.emplace(found.access, found.other).second) listener_->hazard(found);
}

}  // namespace cm384::npu
