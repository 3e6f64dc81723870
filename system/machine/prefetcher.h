// Asks the host's cache for what a package's next window will touch.
//
// A window of a package touches some 5,000 lines of the host's memory, and between two of its windows those
// of all other packages pass through the cache. Most of what it needs is known when it begins: its queues
// hold nearly all of its events. Asked for together, the lines arrive together. No part of what is simulated.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/engine/event_queue.h"
#include "base/text/units.h"
#include "npu_core/die/die.h"
#include "npu_core/pipes/pipe_instruction.h"
#include "ub_fabric/controller.h"

namespace cm384::supernode {

class Prefetcher {
 public:
  struct Socketed {
    npu::Die* die;
    const ub::UbController* controller;
  };
  // `controller_unit`: of its events in the die's queue.
  Prefetcher(std::vector<Socketed> dies, std::uint32_t controller_unit)
      : dies_(std::move(dies)), controller_unit_(controller_unit), parts_(dies_.size()) {}

  // For the window that ends at `end`; all that other modules send into it must be there.
  void ask(Time end);

 private:
  struct Item {
    const Socketed* at;
    sim::Event event;  // of its controller
  };
  struct Active {
    const npu::Die* die;
    std::uint32_t core;
    std::uint32_t part;  // kCore, or an engine
  };
  static constexpr std::uint32_t kCore = npu::kEngines;

  void survey(const Socketed& die, Time end);
  // An event goes to the core, and to an engine of it if `what` is one.
  void activate(const Socketed& die, std::uint32_t core, std::uint32_t what);

  std::vector<Socketed> dies_;
  std::uint32_t controller_unit_;
  std::vector<Item> items_;
  std::vector<Active> active_;                    // what events go to
  std::vector<std::vector<std::uint8_t>> parts_;  // of a die's cores: bits of what is active
};

}  // namespace cm384::supernode
