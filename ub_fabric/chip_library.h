// What libraries of Verilated switch chips have in common: the choice of a chip, and what is refused.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/text/error.h"
#include "ub_fabric/rtl_switch.h"
#include "ub_fabric/verilated_switch.h"

namespace cm384::ub {

// The first of `Chips`, which come in order of their ports, that has enough of them.
template <class Chip, class... More>
std::unique_ptr<RtlSwitch> make_chip(const Parameters& p, const ChipTiming& timing, unsigned ports) {
  const auto refuse = [](const std::string& what) { return InputError("RTL switch chips: " + what); };
  if (p.ub.switch_chip.forwarding != "cut-through")
    throw refuse("ub.switch.forwarding is packet-store; allowed: cut-through");
  if (p.ub.link.lanes > static_cast<int>(kLanes))
    throw refuse(fmt::format("ub.link.lanes is {}; allowed: at most {}", p.ub.link.lanes, kLanes));
  if (p.ub.link.buffer_cells > static_cast<int>(kBufferCells))
    throw refuse(
        fmt::format("ub.link.buffer_cells is {}; allowed: at most {}", p.ub.link.buffer_cells, kBufferCells));
  const Time own = timing.flit.start(kCycles + 1);
  if (timing.pipeline < own)
    throw refuse(
        fmt::format("the chip's pipeline (ub.switch.pipeline_latency, or its own) is {} ps; allowed: at "
                    "least {} ps, what "
                    "the RTL takes at the rate of its links",
                    timing.pipeline.ps, own.ps));
  if (ports <= Chip::ports) return std::make_unique<VerilatedSwitch<Chip>>(p, timing, ports);
  if constexpr (sizeof...(More) != 0) {
    return make_chip<More...>(p, timing, ports);
  } else {
    throw refuse(fmt::format("a chip has {} ports; allowed: at most {}", ports, Chip::ports));
  }
}

}  // namespace cm384::ub
