#include "supernode/supernode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <set>
#include <systemc>

#include "sim/error.h"
#include "supernode/module_processes.h"
#include "supernode/supernode_parts.h"

namespace cm384::supernode {
namespace {

ub::Parameters fabric_parameters(const hw::Machine& machine) {
  return {machine.topology, machine.ub, machine.cpu, machine.package_link};
}

}  // namespace

Supernode::Supernode(const hw::Machine& machine, SupernodeOptions options)
    : machine_(machine), options_(std::move(options)), parts_(std::make_unique<Parts>()) {
  const ub::Parameters fabric = fabric_parameters(machine);
  ub::check(fabric);
  RunControl& control = parts_->control;
  control.patience = options_.patience;
  control.interrupted = options_.interrupted;

  set_lookahead(machine.ub.switch_chip.pipeline_latency);
  if (machine.host.message_latency < lookahead())
    throw InputError(fmt::format(
        "host.message_latency: {} ns; allowed: at least {} ns, what a packet takes from die to die",
        machine.host.message_latency.ns(), lookahead().ns()));

  const int dies = machine.topology.dies();
  const auto endpoints = static_cast<std::uint32_t>(machine.topology.endpoints());
  records_.resize(static_cast<std::size_t>(dies));
  parts_->dies.resize(static_cast<std::size_t>(dies));
  parts_->controllers.resize(static_cast<std::size_t>(dies));
  parts_->hosts.resize(static_cast<std::size_t>(dies));
  for (int p = 0; p < machine.topology.sub_planes; ++p) {
    const auto index = static_cast<unsigned>(p);
    parts_->planes.push_back(std::make_unique<ub::SubPlane>(index, fabric, parts_->packets, endpoints + index,
                                                            std::uint64_t{index} + 1));
    parts_->processes.push_back(std::make_unique<ModuleProcess<ub::SubPlane>>(
        fmt::format("plane{}", p).c_str(), *parts_->planes.back(), control, control.plane_phase));
  }
  const npu::DieParameters die_parameters{machine.die,         machine.scheduler,   machine.sdma,
                                          machine.scalar_core, machine.vector_core, machine.mte,
                                          machine.cube_core,   machine.cube_mte,    machine.memory};
  for (const int number : options_.dies) {
    if (number < 0 || number >= dies)
      throw InputError(fmt::format("die {} does not exist; allowed: 0 to {}", number, dies - 1));
    auto& die = parts_->dies[static_cast<std::size_t>(number)];
    if (die) continue;
    auto& controller = parts_->controllers[static_cast<std::size_t>(number)];
    die = std::make_unique<npu::Die>(number, die_parameters, options_.die, parts_->payloads,
                                     static_cast<npu::DieListener&>(*this), control.last_progress);
    controller = std::make_unique<ub::UbController>(fabric, static_cast<ub::Endpoint>(number), die->queue(),
                                                    kControllerUnit, parts_->packets, parts_->payloads);
    controller->set_target(*die);
    controller->set_client(*die);
    for (auto& plane : parts_->planes) controller->attach(*plane);
    die->connect(*controller);
    parts_->hosts[static_cast<std::size_t>(number)] =
        std::make_unique<HostThread>(machine.host, *die, kHostUnit, unfinished_);
    const int sibling = number ^ 1;
    if (sibling < dies && parts_->controllers[static_cast<std::size_t>(sibling)])
      controller->join(*parts_->controllers[static_cast<std::size_t>(sibling)]);
  }
  std::set<int> packages;
  for (const int number : options_.dies) {
    if (!packages.insert(number / 2).second) continue;
    std::vector<PackageProcess::Socketed> socketed;
    for (const int member : {number, number ^ 1}) {
      const auto n = static_cast<std::size_t>(member);
      if (n < parts_->dies.size() && parts_->dies[n])
        socketed.push_back({*parts_->dies[n], *parts_->controllers[n], *parts_->hosts[n]});
    }
    parts_->processes.push_back(
        std::make_unique<PackageProcess>(fmt::format("package{}", number / 2).c_str(), std::move(socketed),
                                         machine.package_link.latency, control, parts_->driver));
  }
  for (const int socket : options_.sockets) {
    if (socket < 0 || socket >= machine.topology.sockets())
      throw InputError(fmt::format("CPU socket {} does not exist; allowed: 0 to {}", socket,
                                   machine.topology.sockets() - 1));
  }
  if (!options_.sockets.empty()) {
    parts_->sockets = std::make_unique<SocketModule>(
        fabric, options_.sockets, endpoints + 64, parts_->packets, parts_->payloads, control.last_progress);
    for (auto& controller : parts_->sockets->controllers()) {
      for (auto& plane : parts_->planes) controller->attach(*plane);
    }
    parts_->processes.push_back(
        std::make_unique<ModuleProcess<SocketModule>>("sockets", *parts_->sockets, control, kOuterPhase));
  }
}

Supernode::~Supernode() {
  parts_->processes.clear();
  parts_.reset();
}

std::vector<int> Supernode::dies() const {
  std::vector<int> numbers;
  for (const auto& die : parts_->dies) {
    if (die) numbers.push_back(die->number());
  }
  return numbers;
}

npu::Die& Supernode::die(int number) const {
  if (number < 0 || number >= static_cast<int>(parts_->dies.size()) ||
      !parts_->dies[static_cast<std::size_t>(number)])
    throw InputError(fmt::format("die {} does not take part in this run", number));
  return *parts_->dies[static_cast<std::size_t>(number)];
}

npu::BackingStore& Supernode::socket_store(int number) const {
  npu::BackingStore* store = parts_->sockets ? parts_->sockets->store(number) : nullptr;
  if (store == nullptr) throw InputError(fmt::format("CPU socket {} does not take part in this run", number));
  return *store;
}

// Whole steps of twice a link's latency, the first of them whatever the windows are.
Time Supernode::earliest() const {
  const Time step = from_plane_ + from_plane_;
  const Time reached = std::max({parts_->control.reached, now(), Time{1}});
  return Time{(reached.ps + step.ps - 1) / step.ps * step.ps};
}

HostThread& Supernode::host(int number) const {
  die(number);
  return *parts_->hosts[static_cast<std::size_t>(number)];
}

Time Supernode::lookahead() const {
  return to_plane_ + from_plane_;
}

// A packet passes a link and its chip before it meets anything there. So soon only where each die gives back
// the cells of its receive buffer as packets are delivered, which the sub-plane itself knows; where it does
// not, as where a chip of another model has its own idea of a pipeline, the link alone counts. Back to a die
// credits take the link alone.
void Supernode::set_lookahead(Time chip) {
  const bool held = ub::UbController::holds_requests(machine_.ub.controller) ||
                    (!options_.sockets.empty() && ub::UbController::holds_requests(machine_.cpu.controller));
  from_plane_ = machine_.ub.link.endpoint_latency;
  to_plane_ = machine_.ub.link.endpoint_latency + (held ? Time{} : chip);
  RunControl& control = parts_->control;
  control.window = std::min(lookahead(), options_.window);
  // Shorter windows keep the proportion.
  control.plane_phase = Time{control.window.ps * to_plane_.ps / lookahead().ps};
}

void Supernode::install(int plane_number, unsigned chip, ub::SwitchChip& model) {
  assert(now() == Time{} && unfinished_ == 0);
  plane(plane_number).install(chip, &model);
  set_lookahead(Time{});
}

ub::UbController& Supernode::controller(int number) const {
  die(number);
  return *parts_->controllers[static_cast<std::size_t>(number)];
}

ub::SubPlane& Supernode::plane(int number) const {
  if (number < 0 || number >= static_cast<int>(parts_->planes.size()))
    throw InputError(
        fmt::format("sub-plane {} does not exist; allowed: 0 to {}", number, parts_->planes.size() - 1));
  return *parts_->planes[static_cast<std::size_t>(number)];
}

std::uint32_t Supernode::launch(int die_number, npu::LaunchRequest request, Time at) {
  parts_->control.last_progress = std::max(parts_->control.last_progress, at);
  ++unfinished_;
  const std::uint32_t number = die(die_number).launch(std::move(request), at);
  if (probes_.launch_given) probes_.launch_given(die_number, number);
  return number;
}

const npu::LaunchRecord& Supernode::record(int die, std::uint32_t number) const {
  return records_.at(static_cast<std::size_t>(die)).at(number);
}

void Supernode::launch_finished(int die, const npu::LaunchRecord& record) {
  auto& records = records_[static_cast<std::size_t>(die)];
  if (records.size() <= record.launch) records.resize(record.launch + std::size_t{1});
  records[record.launch] = record;
  --unfinished_;
  if (probes_.launch_ended) probes_.launch_ended(die, record);
}

void Supernode::launch_started(int die, const npu::LaunchRecord& record) {
  if (probes_.launch_begun) probes_.launch_begun(die, record);
}

void Supernode::task_finished(int die, const npu::TaskRecord& record) {
  parts_->hosts[static_cast<std::size_t>(die)]->task_finished(record);
  if (probes_.task_ended) probes_.task_ended(die, record);
}

void Supernode::transaction_begun(const npu::TransactionBegun& transaction) {
  if (probes_.transaction_begun) probes_.transaction_begun(transaction);
}

void Supernode::transaction_completed(const npu::TransactionCompleted& transaction) {
  if (probes_.transaction_completed) probes_.transaction_completed(transaction);
}

void Supernode::transaction_arrived(sim::TransactionId id, int target, std::uint32_t bytes, Time at) {
  if (probes_.transaction_arrived) probes_.transaction_arrived(id, target, bytes, at);
}

void Supernode::drive(Driver& driver) {
  parts_->driver = &driver;
  ++unfinished_;
}

void Supernode::follow_transactions() {
  for (const auto& die : parts_->dies) {
    if (die) die->follow();
  }
}

void Supernode::keep_log(npu::TraceLog& log) {
  for (const auto& die : parts_->dies) {
    if (die) die->keep_log(log);
  }
}

void Supernode::trace_transactions() {
  for (const auto& die : parts_->dies) {
    if (die) die->trace();
  }
}

// All directions of all links, with what puts an observer on one.
void Supernode::each_link(const LinkVisitor& visit) const {
  for (int p = 0; p < static_cast<int>(parts_->planes.size()); ++p) {
    ub::SubPlane& sub_plane = plane(p);
    const ub::ClosShape& shape = sub_plane.shape();
    const auto of_plane = [&](unsigned link, const LinkName& name) {
      visit(name, [&sub_plane, link](ub::LinkObserver* tap) { sub_plane.attach_observer(link, tap); });
    };
    for (unsigned e = 0; e < shape.endpoints(); ++e) {
      const auto endpoint = static_cast<ub::Endpoint>(e);
      of_plane(sub_plane.link_to_endpoint(endpoint), {LinkName::Kind::to_endpoint, p, static_cast<int>(e),
                                                      static_cast<int>(shape.node(endpoint)), 0});
    }
    for (unsigned node = 0; node < shape.nodes(); ++node) {
      for (unsigned l2 = 0; l2 < shape.l2_switches(); ++l2) {
        const auto n = static_cast<int>(node), k = static_cast<int>(l2);
        of_plane(sub_plane.link_up(node, l2), {LinkName::Kind::up, p, 0, n, k});
        of_plane(sub_plane.link_down(l2, node), {LinkName::Kind::down, p, 0, n, k});
      }
    }
    const auto of_port = [&](ub::UbController& controller) {
      const ub::Endpoint endpoint = controller.endpoint();
      visit({LinkName::Kind::from_endpoint, p, endpoint, static_cast<int>(shape.node(endpoint)), 0},
            [&controller, p](ub::LinkObserver* tap) {
              controller.ports().attach_observer(static_cast<unsigned>(p), tap);
            });
    };
    for (const auto& controller : parts_->controllers) {
      if (controller) of_port(*controller);
    }
    if (!parts_->sockets) continue;
    for (const auto& controller : parts_->sockets->controllers()) of_port(*controller);
  }
}

void Supernode::trace_links(const std::function<bool(const LinkName&)>& chosen) {
  if (!parts_->taps.empty()) return;
  each_link([&](const LinkName& name, const std::function<void(ub::LinkObserver*)>& attach) {
    if (chosen && !chosen(name)) return;
    parts_->taps.push_back(std::make_unique<LinkTap>(name, probes_.link_packet));
    attach(parts_->taps.back().get());
  });
}

void Supernode::visit_links(const std::function<void(const LinkName&)>& visit) const {
  each_link([&](const LinkName& name, const auto&) { visit(name); });
}

std::vector<std::function<void(sim::Statistics&)>> Supernode::declarations() const {
  std::vector<std::function<void(sim::Statistics&)>> made;
  const sim::StatisticPath root;
  for (std::size_t n = 0; n < parts_->dies.size(); ++n) {
    if (!parts_->dies[n]) continue;
    made.push_back([this, n, at = root.part("die", n)](sim::Statistics& to) {
      parts_->dies[n]->declare_statistics(to, at);
      parts_->controllers[n]->declare_statistics(to, at);
    });
  }
  if (parts_->sockets)
    made.push_back([this](sim::Statistics& to) { parts_->sockets->declare_statistics(to); });
  for (std::size_t p = 0; p < parts_->planes.size(); ++p) {
    made.push_back([this, p, at = root.part("plane", p)](sim::Statistics& to) {
      parts_->planes[p]->declare_statistics(to, at);
    });
  }
  return made;
}

void Supernode::declare_statistics(sim::Statistics& to) const {
  for (const auto& declare : declarations()) declare(to);
}

void Supernode::visit_statistics(const std::function<void(const sim::Statistics&)>& visit) const {
  for (const auto& declare : declarations()) {
    sim::Statistics part;
    declare(part);
    visit(part);
  }
}

void Supernode::kernel_output(int die, int core, std::string_view text) {
  if (options_.output) {
    options_.output(die, core, text);
  } else {
    fmt::print("{}", text);
  }
}

void Supernode::advance(Time length) {
  const auto run = [](Time t) {
    sc_core::sc_start(sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(t.ps)),
                      sc_core::SC_RUN_TO_TIME);
  };
  if (!options_.sample) {
    run(length);
    return;
  }
  // A slice is as long as without samples, so that what starts after it starts at the same time.
  constexpr Time kInterval{1'000'000};
  const Time begin = now();
  for (Time done{}; done < length; done += kInterval) {
    run(kInterval);
    // Paused: a failure, a hang, an interruption.
    if (now() < begin + done + kInterval) return;
    options_.sample(now());
  }
}

bool Supernode::run() {
  // In slices, so that progress can be told.
  constexpr Time kSlice{5'000'000};
  RunControl& control = parts_->control;
  while (unfinished_ > 0) {
    if (!sc_core::sc_pending_activity()) report_hang("nothing is left to happen");
    advance(kSlice);
    if (control.failure) std::rethrow_exception(std::exchange(control.failure, nullptr));
    if (control.hung)
      report_hang(fmt::format("nothing has made progress since {:.3f} us (patience {:.0f} us)",
                              control.last_progress.us(), control.patience.us()));
    if (control.interrupted != nullptr && *control.interrupted != 0) return false;
    if (options_.progress) options_.progress(now(), counts().events);
  }
  return true;
}

}  // namespace cm384::supernode

// Debian's libsystemc brings a main() that refers to it; the command has its own main and starts the
// simulation itself.
int sc_main(int, char**) {
  return 0;
}
