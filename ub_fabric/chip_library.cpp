// The library of switch chips as RTL that comes with cm384, loaded by rtl_switch.cpp where one is asked for.
#include "Vub_switch16.h"
#include "Vub_switch48.h"
#include "ub_fabric/rtl_switch.h"
#include "ub_fabric/verilated_switch.h"

namespace cm384::ub {
namespace {

struct Chip16 {
  using Model = Vub_switch16;
  static constexpr unsigned ports = 16;
};
struct Chip48 {
  using Model = Vub_switch48;
  static constexpr unsigned ports = 48;
};

std::unique_ptr<RtlSwitch> make_chip(const Parameters& p, unsigned ports) {
  const auto refuse = [](const std::string& what) { return InputError("RTL switch chips: " + what); };
  if (p.ub.switch_chip.forwarding != "cut-through")
    throw refuse("ub.switch.forwarding is packet-store; allowed: cut-through");
  if (p.ub.link.buffer_cells > static_cast<int>(kBufferCells))
    throw refuse(
        fmt::format("ub.link.buffer_cells is {}; allowed: at most {}", p.ub.link.buffer_cells, kBufferCells));
  const Clock clock(Bytes{kFlitBytes}, p.ub.link.bandwidth);
  if (p.ub.switch_chip.pipeline_latency < clock.start(kCycles + 1)) {
    throw refuse(
        fmt::format("ub.switch.pipeline_latency is {} ps; allowed: at least {} ps, what the RTL takes",
                    p.ub.switch_chip.pipeline_latency.ps, clock.start(kCycles + 1).ps));
  }
  if (ports > Chip48::ports)
    throw refuse(fmt::format("a chip has {} ports; allowed: at most {}", ports, Chip48::ports));
  if (ports <= Chip16::ports) return std::make_unique<VerilatedSwitch<Chip16>>(p, ports);
  return std::make_unique<VerilatedSwitch<Chip48>>(p, ports);
}

}  // namespace

extern "C" const char* cm384_chip_abi() {
  return kChipAbi;
}

extern "C" RtlSwitch* cm384_make_chip(const Parameters& parameters, unsigned ports) {
  return make_chip(parameters, ports).release();
}

}  // namespace cm384::ub
