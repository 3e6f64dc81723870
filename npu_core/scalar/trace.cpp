// The instruction trace.
#include <fmt/format.h>

#include "npu_core/scalar/decode.h"
#include "npu_core/scalar/disassemble.h"
#include "npu_core/scalar/scalar_core.h"

namespace cm384::npu {

void ScalarCore::write_trace(const Operation& op) {
  std::byte code[4] = {};
  std::uint32_t raw = 0;
  read_memory(pc_, std::span(code, 2));
  raw = std::to_integer<std::uint32_t>(code[0]) | std::to_integer<std::uint32_t>(code[1]) << 8;
  if ((raw & 3) == 3) {
    read_memory(pc_ + 2, std::span(code + 2, 2));
    raw |= std::to_integer<std::uint32_t>(code[2]) << 16 | std::to_integer<std::uint32_t>(code[3]) << 24;
  }
  fmt::print(trace_, "{:>10} {:>3} {:08x} {:<28} {:<8} {}\n", cycle_, number_, pc_,
             program_->image().symbol_at(pc_),
             (raw & 3) == 3 ? fmt::format("{:08x}", raw) : fmt::format("{:04x}", raw), disassemble(op));
}

}  // namespace cm384::npu
