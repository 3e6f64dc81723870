#include "system/machine/fabric_machine.h"

#include <algorithm>
#include <atomic>
#include <systemc>
#include <utility>

#include "base/engine/peers.h"
#include "system/machine/peer_exchange.h"
#include "system/machine/simulation.h"
#include "system/machine/window_process.h"

namespace cm384::supernode {
struct FabricMachine::Parts {
  Parts(const hw::Machine& m, FabricMachineOptions o)
      : machine(m),
        options(std::move(o)),
        control(std::max(1u, 4 * options.threads), options.threads, options.threads_why) {}

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
  // Where several processes simulate it. Nobody waits for an end: runs are as long as asked for.
  std::unique_ptr<PeerExchange> peers;
  std::atomic<std::size_t> unfinished = 0;
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
  const auto network = ub::Network::of(machine.topology);
  parts_->payloads.set_workers(workers);
  parts_->packets.set_workers(workers);
  for (int p = 0; p < machine.topology.sub_planes; ++p) {
    parts_->planes.push_back(std::make_unique<ub::SubPlane>(static_cast<unsigned>(p), fabric, parts_->packets,
                                                            parts_->next_source++, parts_->options.seed,
                                                            network));
    parts_->planes.back()->set_workers(workers);
    parts_->modules.push_back(std::make_unique<SingleModule<ub::SubPlane>>(*parts_->planes.back()));
  }
  // Receive buffers may be held until a request is served: a sub-plane learns of it a link's latency later.
  const Time link = parts_->planes.front()->timings().shortest_endpoint_latency();
  control.window = link + link;
  control.plane_phase = link;
  parts_->outer = std::make_unique<WindowProcess>("endpoints", control, kOuterPhase);
  parts_->inner = std::make_unique<WindowProcess>("sub_planes", control, control.plane_phase);
  for (auto& module : parts_->modules) parts_->inner->add(*module);
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

const ThreadChoice& FabricMachine::thread_choice() const {
  return parts_->control.choice;
}

std::uint64_t FabricMachine::events() const {
  std::uint64_t sum = 0;
  const unsigned self = sim::peers().self();
  for (std::size_t n = 0; n < parts_->planes.size(); ++n) {
    if (n % sim::peers().count() == self) sum += parts_->planes[n]->queue().handled();
  }
  for (std::size_t n = 0; n < parts_->attached.size(); ++n) {
    if (owner(n, parts_->attached.size()) == self) sum += parts_->attached[n]->queue().handled();
  }
  return sum;
}

unsigned FabricMachine::owner(std::size_t n, std::size_t count) {
  return static_cast<unsigned>(n * sim::peers().count() / count);
}

// Modules in blocks, sub-planes in turn.
void FabricMachine::join_peers() {
  if (!sim::peers().several() || parts_->peers) return;
  const unsigned count = sim::peers().count();
  parts_->peers =
      std::make_unique<PeerExchange>(parts_->control, parts_->unfinished, parts_->packets, parts_->payloads);
  parts_->peers->add(*parts_->outer);
  parts_->peers->add(*parts_->inner);
  const std::size_t planes = parts_->planes.size(), attached = parts_->attached.size();
  for (std::size_t n = 0; n < parts_->modules.size(); ++n)
    parts_->peers->add(*parts_->modules[n],
                       n < planes ? static_cast<unsigned>(n) % count : owner(n - planes, attached));
  parts_->control.peers = parts_->peers.get();
}

bool FabricMachine::run_until(Time end) {
  constexpr Time kSlice{5'000'000};
  join_peers();
  if (parts_->peers) parts_->peers->meet();
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
