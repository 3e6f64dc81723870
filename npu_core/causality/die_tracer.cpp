#include "npu_core/causality/die_tracer.h"

namespace cm384::npu {

std::vector<CoreTracer*> DieTracer::add_cores(std::size_t count, bool cube) {
  append(TraceEntry::cores, 0, cube ? 1 : 0, count);
  std::vector<CoreTracer*> made;
  for (std::size_t n = 0; n < count; ++n) {
    const auto number = static_cast<std::uint16_t>(cores_.size());
    made.push_back(&cores_.emplace_back(log_, die_, number, requests_));
  }
  return made;
}

void DieTracer::host(HostPoint::Kind kind, Time start, Time end, std::span<const std::uint64_t> words) {
  std::vector<std::uint64_t> all{static_cast<std::uint64_t>(start.ps), static_cast<std::uint64_t>(end.ps)};
  all.insert(all.end(), words.begin(), words.end());
  log_.append_all({TraceEntry::host, 0, die_, 0, static_cast<std::uint16_t>(kind)}, all);
}

// A core's number fits a bit of one of two words: a die has at most 128.
void DieTracer::barrier(std::uint32_t flag, bool cube, const std::vector<std::uint16_t>& cores, Time at) {
  std::uint64_t low = 0, high = 0;
  for (const std::uint16_t core : cores) (core < 64 ? low : high) |= std::uint64_t{1} << core % 64;
  append(TraceEntry::barrier, cube ? 1 : 0, static_cast<int>(flag), new_id(), low, high, at.ps);
}

}  // namespace cm384::npu
