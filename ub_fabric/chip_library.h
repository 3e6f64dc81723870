// Shared by libraries of Verilated switch chips: chooses a chip of the library, refuses what none of them can
// be.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/text/error.h"
#include "ub_fabric/rtl_switch.h"
#include "ub_fabric/verilated_switch.h"

namespace cm384::ub {

// The first of `Chips` that has enough ports, and classes where outputs pick among them.
template <class... Chips>
std::unique_ptr<RtlSwitch> make_chip(const Parameters& p, const ServiceClasses& classes,
                                     const ChipTiming& timing, unsigned ports) {
  const auto refuse = [](const std::string& what) { return InputError("RTL switch chips: " + what); };
  if (p.ub.switch_chip.forwarding != "cut-through")
    throw refuse("ub.switch.forwarding is packet-store; allowed: cut-through");
  if (p.ub.link.lanes > static_cast<int>(kLanes))
    throw refuse(fmt::format("ub.link.lanes is {}; allowed: at most {}", p.ub.link.lanes, kLanes));
  if (p.ub.link.buffer_cells > static_cast<int>(kBufferCells))
    throw refuse(
        fmt::format("ub.link.buffer_cells is {}; allowed: at most {}", p.ub.link.buffer_cells, kBufferCells));
  if (classes.arbitration() == Arbitration::age)
    throw refuse(
        "ub.qos.arbitration is age, and its flits tell of no time; allowed: round-robin, strict, drr");
  if (classes.arbitrates() && classes.arbitration() == Arbitration::drr) {
    constexpr int kMost = (1 << kQuantumBits) - 1, kLeast = static_cast<int>(kMaxFlits);
    for (unsigned c = 0; c < classes.count(); ++c) {
      if (const int flits = classes.quantum(c); flits < kLeast || flits > kMost)
        throw refuse(fmt::format("ub.qos.quantum x weight of class {} is {} flits of 20 B; allowed: {} to {}",
                                 c, flits, kLeast, kMost));
    }
  }
  const Time own = timing.flit.start(kCycles + 1);
  if (timing.pipeline < own)
    throw refuse(
        fmt::format("the chip's pipeline (ub.switch.pipeline_latency, or its own) is {} ps; allowed: at "
                    "least {} ps, what "
                    "the RTL takes at the rate of its links",
                    timing.pipeline.ps, own.ps));
  const unsigned wanted = classes.arbitrates() ? classes.count() : 1;
  std::unique_ptr<RtlSwitch> chip;
  const auto make_if_fit = [&]<class One>() {
    if (ports <= One::ports && wanted <= One::classes)
      chip = std::make_unique<VerilatedSwitch<One>>(p, classes, timing, ports);
    return chip != nullptr;
  };
  if ((make_if_fit.template operator()<Chips>() || ...)) return chip;
  constexpr unsigned kMostPorts = std::max({Chips::ports...}), kMostClasses = std::max({Chips::classes...});
  if (ports > kMostPorts)
    throw refuse(fmt::format("a chip has {} ports; allowed: at most {}", ports, kMostPorts));
  if (wanted > kMostClasses)
    throw refuse(fmt::format("ub.qos.classes is {}; allowed with {}: at most {}", wanted,
                             p.ub.qos.arbitration, kMostClasses));
  throw refuse(
      fmt::format("none that comes with cm384 has {} ports and tells classes apart; allowed: one of "
                  "`cm384 rtl build --ports {} --classes {}`",
                  ports, ports, wanted));
}

}  // namespace cm384::ub
