#include "supernode/fabric_machine.h"

#include <algorithm>
#include <systemc>
#include <utility>

#include "supernode/simulation.h"
#include "supernode/window_process.h"
#include "ub_fabric/link_timing.h"

namespace cm384::supernode {
struct FabricMachine::Parts {
  Parts(const hw::Machine& m, FabricMachineOptions o)
      : machine(m), options(std::move(o)), control(std::max(1u, 4 * options.threads), options.threads) {}

  const hw::Machine& machine;
  FabricMachineOptions options;
  Simulation simulation;
  sim::PayloadPool payloads;
  ub::PacketPool packets;
  RunControl control;
  std::vector<std::unique_ptr<ub::SubPlane>> planes;
  std::vector<std::unique_ptr<WindowModule>> modules;
  std::vector<Module*> attached;
  std::unique_ptr<WindowProcess> outer, inner;
  std::uint32_t next_source = 0;
};

FabricMachine::FabricMachine(const hw::Machine& machine, FabricMachineOptions options)
    : parts_(std::make_unique<Parts>(machine, std::move(options))) {
  const ub::Parameters fabric = parameters();
  ub::check(fabric);
  RunControl& control = parts_->control;
  const unsigned workers = control.workers.count();
  control.interrupted = parts_->options.interrupted;
  control.worth_sharing = 256;
  control.settle = [this] { parts_->payloads.balance(); };
  // Receive buffers may be held until a request is served: a sub-plane learns of it a link's latency later.
  const auto network = ub::Network::of(machine.topology);
  const Time link = ub::shortest_endpoint_latency(fabric, *network);
  control.window = link + link;
  control.plane_phase = link;
  parts_->payloads.set_workers(workers);
  parts_->packets.set_workers(workers);
  parts_->outer = std::make_unique<WindowProcess>("endpoints", control, kOuterPhase);
  parts_->inner = std::make_unique<WindowProcess>("sub_planes", control, control.plane_phase);
  for (int p = 0; p < machine.topology.sub_planes; ++p) {
    parts_->planes.push_back(std::make_unique<ub::SubPlane>(static_cast<unsigned>(p), fabric, parts_->packets,
                                                            parts_->next_source++, parts_->options.seed,
                                                            network));
    parts_->planes.back()->set_workers(workers);
    parts_->modules.push_back(std::make_unique<SingleModule<ub::SubPlane>>(*parts_->planes.back()));
    parts_->inner->add(*parts_->modules.back());
  }
}

FabricMachine::~FabricMachine() {
  parts_->outer.reset();
  parts_->inner.reset();
}

ub::PacketPool& FabricMachine::packets() {
  return parts_->packets;
}
sim::PayloadPool& FabricMachine::payloads() {
  return parts_->payloads;
}
int FabricMachine::planes() const {
  return static_cast<int>(parts_->planes.size());
}
ub::SubPlane& FabricMachine::plane(int number) const {
  return *parts_->planes.at(static_cast<std::size_t>(number));
}
ub::Parameters FabricMachine::parameters() const {
  const hw::Machine& machine = parts_->machine;
  return {machine.topology, machine.ub, machine.cpu, machine.package_link};
}
std::uint32_t FabricMachine::next_source() {
  return parts_->next_source++;
}

void FabricMachine::connect(ub::UbController& controller) {
  controller.ports().set_workers(parts_->control.workers.count());
  for (auto& plane : parts_->planes) controller.attach(*plane);
}

void FabricMachine::add(Module& module) {
  parts_->attached.push_back(&module);
  parts_->modules.push_back(std::make_unique<SingleModule<Module>>(module));
  parts_->outer->add(*parts_->modules.back());
}

Time FabricMachine::now() const {
  return Time{static_cast<std::int64_t>(sc_core::sc_time_stamp().value())};
}

std::uint64_t FabricMachine::events() const {
  std::uint64_t sum = 0;
  for (const auto& plane : parts_->planes) sum += plane->queue().handled();
  for (Module* module : parts_->attached) sum += module->queue().handled();
  return sum;
}

bool FabricMachine::run_until(Time end) {
  constexpr Time kSlice{5'000'000};
  while (now() < end) {
    const Time step = std::min(kSlice, end - now());
    sc_core::sc_start(sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(step.ps)),
                      sc_core::SC_RUN_TO_TIME);
    RunControl& control = parts_->control;
    if (control.failure) std::rethrow_exception(std::exchange(control.failure, nullptr));
    if (control.interrupted != nullptr && *control.interrupted != 0) return false;
    if (parts_->options.progress) parts_->options.progress(now(), events());
  }
  return true;
}

}  // namespace cm384::supernode
