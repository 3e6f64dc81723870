#include "system/machine/fabric_machine.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/engine/peers.h"
#include "system/machine/runner.h"

namespace cm384::supernode {
struct FabricMachine::Parts {
  Parts(const hw::Machine& m, FabricMachineOptions o)
      : machine(m),
        options(std::move(o)),
        runner(std::max(1u, kWorkersPerThread * options.threads), options.threads, options.threads_why,
               options.what_if_threads) {}

  const hw::Machine& machine;
  FabricMachineOptions options;
  Runner runner;
  sim::PayloadPool payloads;
  ub::PacketPool packets;
  std::vector<std::unique_ptr<ub::SubPlane>> planes;
  std::vector<Module*> attached;
  std::uint32_t next_source = 0;
  bool joined = false;
  // Nobody waits for an end: runs are as long as asked for.
  std::atomic<std::size_t> unfinished = 0;
};

FabricMachine::FabricMachine(const hw::Machine& machine, FabricMachineOptions options)
    : parts_(std::make_unique<Parts>(machine, std::move(options))) {
  const ub::Parameters fabric = parameters();
  ub::check(fabric);
  Runner& runner = parts_->runner;
  RunControl& control = runner.control();
  control.interrupted = parts_->options.interrupted;
  control.worth_sharing = 256;
  control.settle = [this] { parts_->payloads.balance(); };
  const auto network = ub::Network::of(machine.topology);
  parts_->payloads.set_workers(runner.workers());
  parts_->packets.set_workers(runner.workers());
  for (int p = 0; p < machine.topology.sub_planes; ++p) {
    parts_->planes.push_back(std::make_unique<ub::SubPlane>(static_cast<unsigned>(p), fabric, parts_->packets,
                                                            parts_->next_source++, parts_->options.seed,
                                                            network));
    parts_->planes.back()->set_workers(runner.workers());
    runner.add(Runner::Phase::inner, std::make_unique<SingleModule<ub::SubPlane>>(*parts_->planes.back()),
               static_cast<unsigned>(p) % sim::peers().count());
  }
  // Receive buffers may be held until a request is served: a sub-plane learns of it a link's latency later.
  const Time link = parts_->planes.front()->timings().shortest_endpoint_latency();
  runner.set_window(link + link, link);
}

FabricMachine::~FabricMachine() {
  parts_->runner.stop();
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
  controller.ports().set_workers(parts_->runner.workers());
  for (auto& plane : parts_->planes) controller.attach(*plane);
}

void FabricMachine::add(Module& module, unsigned owner) {
  parts_->attached.push_back(&module);
  parts_->runner.add(Runner::Phase::outer, std::make_unique<SingleModule<Module>>(module), owner);
}

Time FabricMachine::now() const {
  return parts_->runner.now();
}

const ThreadChoice& FabricMachine::thread_choice() const {
  return parts_->runner.control().choice;
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

bool FabricMachine::run_until(Time end) {
  constexpr Time kSlice{5'000'000};
  Runner& runner = parts_->runner;
  if (!std::exchange(parts_->joined, true))
    runner.join_peers(parts_->unfinished, parts_->packets, parts_->payloads);
  runner.begin();
  while (now() < end) {
    runner.advance(std::min(kSlice, end - now()));
    if (!runner.may_go_on()) return false;
    if (parts_->options.progress) parts_->options.progress(now(), events());
  }
  return true;
}

}  // namespace cm384::supernode
