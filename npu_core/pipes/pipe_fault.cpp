#include "npu_core/pipes/pipe_fault.h"

#include <fmt/args.h>
#include <fmt/format.h>

namespace cm384::npu {
namespace {

std::string fill_in(const std::string& text, const std::vector<std::uint64_t>& pcs, const PlaceText& place) {
  fmt::dynamic_format_arg_store<fmt::format_context> places;
  for (const std::uint64_t pc : pcs) places.push_back(place(pc));
  return fmt::vformat(text, places);
}

}  // namespace

std::string pc_text(std::uint64_t pc) {
  return fmt::format("pc {:#x}", pc);
}

PipeFault::PipeFault(std::string text, std::vector<std::uint64_t> pcs)
    : MachineError(fill_in(text, pcs, pc_text)), text_(std::move(text)), pcs_(std::move(pcs)) {}

std::string PipeFault::text(const PlaceText& place) const {
  return fill_in(text_, pcs_, place);
}

void fault(std::uint64_t pc, std::string_view what) {
  throw PipeFault(fmt::format("{{}}: {}", what), {pc});
}

}  // namespace cm384::npu
