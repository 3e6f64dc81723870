// The modules that run in windows: a package's dies, a sub-plane, the CPU sockets.
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "npu_core/die/die.h"
#include "system/machine/driver.h"
#include "system/machine/prefetcher.h"
#include "system/machine/window_process.h"
#include "ub_fabric/controller.h"

namespace cm384::supernode {

// Units in the queue of an accelerator: its controller's, then one per driver that is attached to it.
inline constexpr std::uint32_t kControllerUnit = npu::Accelerator::kFirstForeignUnit;
inline constexpr std::uint32_t kFirstDriverUnit = kControllerUnit + 1;

// The accelerators of a package, all of one class, with the controllers in their sockets and what drives
// them: one module, a queue for each. They reach each other over the package link, which may be shorter than
// a window: they take turns in steps no longer than its latency. `Part` is the class itself, so that events
// are plain calls.
template <class Part>
class PackageModule final : public WindowModule {
 public:
  struct Socketed {
    Part& part;
    ub::UbController& controller;
    const std::vector<Driver*>& drivers;
  };
  PackageModule(std::vector<Socketed> parts, Time link_latency)
      : WindowModule(queues(parts)),
        parts_(std::move(parts)),
        prefetcher_(prefetched(parts_), kControllerUnit),
        step_(link_latency) {}

  void hold_credits() override {
    for (const Socketed& socketed : parts_) socketed.controller.ports().hold_credits();
  }
  void exchange(ub::Crossings& crossings) override {
    for (const Socketed& socketed : parts_) {
      crossings.events(socketed.part.queue(), [&](const sim::Event& e) {
        if (e.unit == kControllerUnit)
          return ub::UbController::brings_packet(e) ? ub::Brings::hop : ub::Brings::nothing;
        const bool packet =
            e.unit >= kFirstDriverUnit && socketed.drivers[e.unit - kFirstDriverUnit]->brings_packet(e);
        return packet ? ub::Brings::other_packet : ub::Brings::nothing;
      });
      crossings.credits(socketed.controller.ports());
    }
  }

 private:
  static std::vector<sim::EventQueue*> queues(const std::vector<Socketed>& parts) {
    std::vector<sim::EventQueue*> all;
    for (const Socketed& socketed : parts) all.push_back(&socketed.part.queue());
    return all;
  }
  void run_window(Time begin, Time end) override {
    if constexpr (std::is_same_v<Part, npu::Die>) prefetcher_.ask(end);
    if (parts_.size() == 1) {
      run(parts_.front(), end);
      return;
    }
    while (begin < end) {
      begin = std::min(begin + step_, end);
      for (const Socketed& socketed : parts_) run(socketed, begin);
    }
  }
  void run(const Socketed& socketed, Time end) {
    Part& part = socketed.part;
    ub::UbController& controller = socketed.controller;
    part.queue().run_until(end, [&](const sim::Event& e) {
      if (e.unit == kControllerUnit) {
        controller.handle(e);
      } else if (e.unit >= kFirstDriverUnit) {
        socketed.drivers[e.unit - kFirstDriverUnit]->handle(part.number(), e);
      } else {
        part.handle(e);
      }
    });
  }
  static std::vector<Prefetcher::Socketed> prefetched(const std::vector<Socketed>& parts) {
    std::vector<Prefetcher::Socketed> all;
    if constexpr (std::is_same_v<Part, npu::Die>) {
      for (const Socketed& socketed : parts) all.push_back({&socketed.part, &socketed.controller});
    }
    return all;
  }

  std::vector<Socketed> parts_;
  Prefetcher prefetcher_;
  Time step_;
};

}  // namespace cm384::supernode
