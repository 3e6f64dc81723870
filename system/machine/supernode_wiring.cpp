// A supernode's accelerators, CPU sockets and fabrics, and what joins them.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/text/error.h"
#include "npu_core/transfer_engine/transfer_engine.h"
#include "system/machine/module_processes.h"
#include "system/machine/supernode_parts.h"

namespace cm384::supernode {
namespace {

ub::Parameters fabric_parameters(const hw::Machine& machine) {
  return {machine.topology, machine.ub, machine.cpu, machine.package_link};
}

constexpr std::int64_t kNames = std::numeric_limits<ub::Endpoint>::max();

// A machine of several supernodes may be counted, allocated or reckoned with as a whole; to run it, its
// packets have to name all of it.
const hw::Machine& with_names(const hw::Machine& machine) {
  const int most = most_supernodes(machine.topology);
  if (machine.topology.supernodes <= most) return machine;
  throw InputError(fmt::format(
      "topology.supernodes: {} cannot be simulated as one machine; allowed: at most {}, so that there are no "
      "more than {} dies and sockets, what packets can name",
      machine.topology.supernodes, most, kNames));
}

// Several for each thread, so that what a thread has begun when the host takes it off its core is little. No
// more than there are packages.
unsigned workers_for(const SupernodeOptions& options, const hw::Topology& topology) {
  if (options.threads <= 1) return 1;
  const auto most = std::min<std::size_t>(packages_of(options.dies, topology).size(), sim::kMostWorkers);
  return std::clamp(kWorkersPerThread * options.threads, 1u, std::max(1u, static_cast<unsigned>(most)));
}

}  // namespace

int most_supernodes(const hw::Topology& topology) {
  return static_cast<int>(
      kNames / (std::int64_t{topology.nodes} * (topology.dies_per_node + topology.sockets_per_node)));
}

Supernode::Supernode(const hw::Machine& machine, SupernodeOptions options)
    : machine_(with_names(machine)),
      options_(std::move(options)),
      parts_(std::make_unique<Parts>(workers_for(options_, machine.topology), options_)) {
  RunControl& control = parts_->runner.control();
  control.patience = options_.patience;
  control.interrupted = options_.interrupted;
  control.worth_sharing = options_.worth_sharing;
  control.settle = [this] { settle(); };
  parts_->payloads.set_workers(workers());
  parts_->progress.set_workers(workers());
  parts_->deferred.set_workers(workers());
  parts_->printed.set_workers(workers());
  parts_->owners = Ownership(packages_of(options_.dies, machine.topology), machine.topology);

  // Queues are numbered: dies, sockets, sub-planes, the module of all sockets, the RDMA plane.
  const ub::Parameters fabric = fabric_parameters(machine);
  const auto endpoints = static_cast<std::uint32_t>(machine.topology.endpoints());
  parts_->bus = std::make_unique<ub::UnifiedBus>(fabric, parts_->payloads, endpoints, workers());
  parts_->fabrics.push_back(parts_->bus.get());
  for (int p = 0; p < parts_->bus->planes(); ++p) {
    const auto plane = static_cast<std::size_t>(p);
    parts_->runner.add(Runner::Phase::inner,
                       std::make_unique<SingleModule<ub::SubPlane>>(parts_->bus->plane(plane)),
                       parts_->owners.of_plane(plane));
  }
  if (options_.rdma) {
    const auto source = endpoints + static_cast<std::uint32_t>(machine.topology.planes()) + 1;
    parts_->rdma = std::make_unique<rdma::RdmaPlane>(
        machine.rdma, static_cast<unsigned>(machine.topology.dies()),
        static_cast<unsigned>(machine.topology.supernodes), parts_->payloads, source, workers());
    parts_->fabrics.push_back(parts_->rdma.get());
    parts_->rdma_module = std::make_unique<RdmaModule>(parts_->rdma->switches());
    parts_->runner.add(Runner::Phase::inner, std::make_unique<SingleModule<RdmaModule>>(*parts_->rdma_module),
                       parts_->owners.of_rdma());
  }
  add_accelerators();
  add_sockets(fabric);
  set_lookahead();
  parts_->runner.join_peers(unfinished_, parts_->bus->packets(), parts_->payloads, parts_->rdma.get());
  parts_->known_records.resize(parts_->accelerators.size());
}

void Supernode::add_accelerators() {
  const hw::Machine& m = machine_;
  const int dies = m.topology.dies();
  for (const int number : options_.dies) {
    if (number < 0 || number >= dies)
      throw InputError(fmt::format("die {} does not exist; allowed: 0 to {}", number, dies - 1));
  }
  const auto count = static_cast<std::size_t>(dies);
  records_.resize(count);
  parts_->accelerators.resize(count);
  parts_->dies.resize(count);
  parts_->drivers.resize(count);
  auto& listener = static_cast<npu::DieListener&>(*this);
  if (!m.accelerator.has_cores()) {
    add_packages<npu::TransferEngine>([&](int number, Time& last_progress) {
      return std::make_unique<npu::TransferEngine>(number, m.transfer_engine, parts_->payloads, listener,
                                                   last_progress, m.rdma.mtu);
    });
    return;
  }
  // One that another process simulates needs no cores here.
  parts_->die_elsewhere = m.die;
  parts_->die_elsewhere.aiv = parts_->die_elsewhere.aic = 0;
  const auto parameters_of = [&m](const hw::Die& die) {
    return npu::DieParameters{die,   m.scheduler, m.sdma,     m.scalar_core, m.vector_core,
                              m.mte, m.cube_core, m.cube_mte, m.memory};
  };
  const npu::DieParameters parameters = parameters_of(m.die),
                           elsewhere = parameters_of(parts_->die_elsewhere);
  add_packages<npu::Die>([&](int number, Time& last_progress) {
    const bool here = parts_->owners.has_die(number);
    auto die = std::make_unique<npu::Die>(number, here ? parameters : elsewhere, options_.die,
                                          parts_->payloads, listener, last_progress);
    parts_->dies[static_cast<std::size_t>(number)] = die.get();
    return die;
  });
}

// Makes those that take part, of one class, and a module of each package.
template <class Part>
void Supernode::add_packages(
    const std::function<std::unique_ptr<Part>(int number, Time& last_progress)>& make) {
  const hw::Topology& topology = machine_.topology;
  const std::vector<int> packages = packages_of(options_.dies, topology);
  std::map<int, unsigned>& worker_of = parts_->worker_of_package;
  for (const int number : packages)
    worker_of.emplace(number / topology.dies_per_package,
                      static_cast<unsigned>(worker_of.size()) % workers());
  std::map<int, Part*> made;
  for (const int number : options_.dies) {
    if (made.contains(number)) continue;
    auto part = make(number, parts_->progress.of(worker_of_die(number)));
    made[number] = part.get();
    connect(*part);
    parts_->accelerators[static_cast<std::size_t>(number)] = std::move(part);
  }
  for (const int number : packages) {
    std::vector<typename PackageModule<Part>::Socketed> socketed;
    for (const int member : {number, number ^ 1}) {
      const auto n = static_cast<std::size_t>(member);
      if (topology.in_one_package(number, member) && made.contains(member))
        socketed.push_back({*made[member], *parts_->bus->controller(n), parts_->drivers[n]});
    }
    parts_->runner.add(
        Runner::Phase::outer,
        std::make_unique<PackageModule<Part>>(std::move(socketed), machine_.package_link.latency),
        parts_->owners.of_die(number));
  }
}

void Supernode::connect(npu::Accelerator& accelerator) {
  const auto endpoint = static_cast<unsigned>(accelerator.number());
  sim::EventQueue& queue = accelerator.queue();
  sim::FabricPort& bus = parts_->bus->attach({endpoint, queue, kControllerUnit, accelerator, &accelerator});
  accelerator.connect(bus);
  if (!parts_->rdma) return;
  auto ports = std::make_unique<PlanePorts>(bus);
  std::vector<Driver*>& drivers = parts_->drivers[endpoint];
  drivers.push_back(ports.get());
  ports->set_rdma(parts_->rdma->attach({endpoint, queue, kFirstDriverUnit, accelerator, &accelerator}));
  accelerator.connect(*ports);
  parts_->plane_ports.push_back(std::move(ports));
}

void Supernode::add_sockets(const ub::Parameters& fabric) {
  const int sockets = machine_.topology.sockets();
  for (const int socket : options_.sockets) {
    if (socket < 0 || socket >= sockets)
      throw InputError(fmt::format("CPU socket {} does not exist; allowed: 0 to {}", socket, sockets - 1));
  }
  if (options_.sockets.empty()) return;
  const auto source = static_cast<std::uint32_t>(machine_.topology.endpoints() + machine_.topology.planes());
  const auto worker = static_cast<unsigned>(packages_of(options_.dies, machine_.topology).size()) % workers();
  parts_->sockets = std::make_unique<SocketModule>(fabric, options_.sockets, source, *parts_->bus,
                                                   parts_->payloads, parts_->progress.of(worker));
  parts_->runner.add(Runner::Phase::outer, std::make_unique<SingleModule<SocketModule>>(*parts_->sockets),
                     parts_->owners.of_sockets());
}

}  // namespace cm384::supernode
