// What runs as one module in windows: a package's dies, a sub-plane, the CPU sockets.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "npu_core/die/die.h"
#include "supernode/driver.h"
#include "supernode/prefetcher.h"
#include "supernode/window_process.h"
#include "ub_fabric/controller.h"

namespace cm384::supernode {

// Units in the queue of a die: its controller's, then one per driver that is attached to it.
inline constexpr std::uint32_t kControllerUnit = npu::Die::kFirstForeignUnit;
inline constexpr std::uint32_t kFirstDriverUnit = kControllerUnit + 1;

// The dies of a package with the controllers in their sockets and what drives them: one module, a queue for
// each die. The dies reach each other over the package link, which may be shorter than a
// window: they take turns in steps no longer than its latency.
class PackageModule final : public WindowModule {
 public:
  struct Socketed {
    npu::Die& die;
    ub::UbController& controller;
    const std::vector<Driver*>& drivers;
  };
  PackageModule(std::vector<Socketed> dies, Time link_latency)
      : WindowModule(queues(dies)),
        dies_(std::move(dies)),
        prefetcher_(parts(dies_), kControllerUnit),
        step_(link_latency) {}

  void hold_credits() override {
    for (const Socketed& socketed : dies_) socketed.controller.ports().hold_credits();
  }
  void exchange(ub::Crossings& crossings) override {
    for (const Socketed& socketed : dies_) {
      crossings.events(socketed.die.queue(), [](const sim::Event& e) {
        return e.unit == kControllerUnit && ub::UbController::brings_packet(e);
      });
      crossings.credits(socketed.controller.ports());
    }
  }

 private:
  static std::vector<sim::EventQueue*> queues(const std::vector<Socketed>& dies) {
    std::vector<sim::EventQueue*> all;
    for (const Socketed& socketed : dies) all.push_back(&socketed.die.queue());
    return all;
  }
  void run_window(Time begin, Time end) override {
    prefetcher_.ask(end);
    if (dies_.size() == 1) {
      run(dies_.front(), end);
      return;
    }
    while (begin < end) {
      begin = std::min(begin + step_, end);
      for (const Socketed& socketed : dies_) run(socketed, begin);
    }
  }
  void run(const Socketed& socketed, Time end) {
    npu::Die& die = socketed.die;
    ub::UbController& controller = socketed.controller;
    die.queue().run_until(end, [&](const sim::Event& e) {
      if (e.unit == kControllerUnit) {
        controller.handle(e);
      } else if (e.unit >= kFirstDriverUnit) {
        socketed.drivers[e.unit - kFirstDriverUnit]->handle(die.number(), e);
      } else {
        die.handle(e);
      }
    });
  }
  static std::vector<Prefetcher::Socketed> parts(const std::vector<Socketed>& dies) {
    std::vector<Prefetcher::Socketed> all;
    for (const Socketed& socketed : dies) all.push_back({&socketed.die, &socketed.controller});
    return all;
  }

  std::vector<Socketed> dies_;
  Prefetcher prefetcher_;
  Time step_;
};

}  // namespace cm384::supernode
