#include "supernode/supernode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <map>
#include <set>
#include <systemc>

#include "hw/error.h"
#include "supernode/module_processes.h"
#include "supernode/supernode_parts.h"
#include "ub_fabric/link_timing.h"

namespace cm384::supernode {
namespace {

ub::Parameters fabric_parameters(const hw::Machine& machine) {
  return {machine.topology, machine.ub, machine.cpu, machine.package_link};
}

// Several for each thread, so that what a thread has begun when the host takes it off its core is little. No
// more than there are packages.
unsigned workers_for(const SupernodeOptions& options, const hw::Topology& topology) {
  constexpr unsigned kPerThread = 4;
  if (options.threads <= 1) return 1;
  std::set<int> packages;
  for (const int die : options.dies) packages.insert(die / topology.dies_per_package);
  const auto most = std::min<std::size_t>(packages.size(), sim::kMostWorkers);
  return std::clamp(kPerThread * options.threads, 1u, std::max(1u, static_cast<unsigned>(most)));
}

}  // namespace

Supernode::Supernode(const hw::Machine& machine, SupernodeOptions options)
    : machine_(machine),
      options_(std::move(options)),
      parts_(std::make_unique<Parts>(workers_for(options_, machine.topology), options_.threads)) {
  const ub::Parameters fabric = fabric_parameters(machine);
  ub::check(fabric);
  RunControl& control = parts_->control;
  control.patience = options_.patience;
  control.interrupted = options_.interrupted;
  control.worth_sharing = options_.worth_sharing;
  control.settle = [this] { settle(); };
  const unsigned workers = this->workers();
  parts_->payloads.set_workers(workers);
  parts_->packets.set_workers(workers);
  parts_->progress.set_workers(workers);
  parts_->told.set_workers(workers);
  parts_->outer = std::make_unique<WindowProcess>("packages", control, kOuterPhase);
  parts_->inner = std::make_unique<WindowProcess>("sub_planes", control, control.plane_phase);

  const auto network = ub::Network::of(machine.topology);
  endpoint_latency_ = ub::shortest_endpoint_latency(fabric, *network);
  way_in_ = ub::shortest_way_in(fabric, *network);
  set_lookahead(way_in_);

  const int dies = machine.topology.dies();
  const auto endpoints = static_cast<std::uint32_t>(machine.topology.endpoints());
  records_.resize(static_cast<std::size_t>(dies));
  parts_->dies.resize(static_cast<std::size_t>(dies));
  parts_->controllers.resize(static_cast<std::size_t>(dies));
  parts_->drivers.resize(static_cast<std::size_t>(dies));
  for (int p = 0; p < machine.topology.sub_planes; ++p) {
    const auto index = static_cast<unsigned>(p);
    parts_->planes.push_back(std::make_unique<ub::SubPlane>(index, fabric, parts_->packets, endpoints + index,
                                                            std::uint64_t{index} + 1, network));
    parts_->planes.back()->set_workers(workers);
    parts_->modules.push_back(std::make_unique<SingleModule<ub::SubPlane>>(*parts_->planes.back()));
    parts_->inner->add(*parts_->modules.back());
  }
  const npu::DieParameters die_parameters{machine.die,         machine.scheduler,   machine.sdma,
                                          machine.scalar_core, machine.vector_core, machine.mte,
                                          machine.cube_core,   machine.cube_mte,    machine.memory};
  const int of_package = machine.topology.dies_per_package;
  std::map<int, unsigned> worker_of;  // a package, in the order in which they become modules
  for (const int number : options_.dies)
    worker_of.try_emplace(number / of_package, static_cast<unsigned>(worker_of.size()) % workers);
  for (const int number : options_.dies) {
    if (number < 0 || number >= dies)
      throw InputError(fmt::format("die {} does not exist; allowed: 0 to {}", number, dies - 1));
    auto& die = parts_->dies[static_cast<std::size_t>(number)];
    if (die) continue;
    auto& controller = parts_->controllers[static_cast<std::size_t>(number)];
    die = std::make_unique<npu::Die>(number, die_parameters, options_.die, parts_->payloads,
                                     static_cast<npu::DieListener&>(*this),
                                     parts_->progress.of(worker_of[number / of_package]));
    controller = std::make_unique<ub::UbController>(fabric, static_cast<ub::Endpoint>(number), die->queue(),
                                                    kControllerUnit, parts_->packets, parts_->payloads);
    controller->ports().set_workers(workers);
    controller->set_target(*die);
    controller->set_client(*die);
    for (auto& plane : parts_->planes) controller->attach(*plane);
    die->connect(*controller);
    const int sibling = number ^ 1;
    if (machine.topology.in_one_package(number, sibling) && sibling < dies &&
        parts_->controllers[static_cast<std::size_t>(sibling)])
      controller->join(*parts_->controllers[static_cast<std::size_t>(sibling)]);
  }
  std::set<int> packages;
  for (const int number : options_.dies) {
    if (!packages.insert(number / of_package).second) continue;
    std::vector<PackageModule::Socketed> socketed;
    for (const int member : {number, number ^ 1}) {
      const auto n = static_cast<std::size_t>(member);
      if (machine.topology.in_one_package(number, member) && n < parts_->dies.size() && parts_->dies[n])
        socketed.push_back({*parts_->dies[n], *parts_->controllers[n], parts_->drivers[n]});
    }
    parts_->modules.push_back(
        std::make_unique<PackageModule>(std::move(socketed), machine.package_link.latency));
    parts_->outer->add(*parts_->modules.back());
  }
  for (const int socket : options_.sockets) {
    if (socket < 0 || socket >= machine.topology.sockets())
      throw InputError(fmt::format("CPU socket {} does not exist; allowed: 0 to {}", socket,
                                   machine.topology.sockets() - 1));
  }
  if (!options_.sockets.empty()) {
    parts_->sockets = std::make_unique<SocketModule>(
        fabric, options_.sockets, endpoints + static_cast<std::uint32_t>(machine.topology.sub_planes),
        parts_->packets, parts_->payloads,
        parts_->progress.of(static_cast<unsigned>(worker_of.size()) % workers));
    for (auto& controller : parts_->sockets->controllers()) {
      controller->ports().set_workers(workers);
      for (auto& plane : parts_->planes) controller->attach(*plane);
    }
    parts_->modules.push_back(std::make_unique<SingleModule<SocketModule>>(*parts_->sockets));
    parts_->outer->add(*parts_->modules.back());
  }
}

Supernode::~Supernode() {
  parts_->outer.reset();
  parts_->inner.reset();
  parts_.reset();
}

unsigned Supernode::workers() const {
  return parts_->control.workers.count();
}

unsigned Supernode::threads() const {
  return parts_->control.one_thread ? 1 : parts_->control.workers.threads();
}

std::uint64_t Supernode::shared_windows() const {
  return parts_->control.shared_windows;
}

void Supernode::use_one_thread() {
  parts_->control.one_thread = true;
}

void Supernode::settle() {
  exchange_crossings();
  RunControl& control = parts_->control;
  parts_->progress.each([&](Time t) { control.last_progress = std::max(control.last_progress, t); });
  parts_->payloads.balance();
  if (!parts_->foreign.empty()) look_at_foreign();
  std::vector<Parts::Told> told;
  parts_->told.each([&](std::vector<Parts::Told>& by_worker) {
    std::move(by_worker.begin(), by_worker.end(), std::back_inserter(told));
    by_worker.clear();
  });
  if (told.empty()) return;
  // One thread runs packages in the order of the dies given, each of them for a window.
  const auto place = [this](const Parts::Told& t) {
    return std::find_if(options_.dies.begin(), options_.dies.end(),
                        [&](int die) { return machine_.topology.in_one_package(die, t.die); });
  };
  std::ranges::stable_sort(told, {}, place);
  for (const Parts::Told& t : told) t.tell();
}

template <class Tell>
void Supernode::tell(int die, Tell&& tell) {
  if (parts_->control.side_by_side) {
    parts_->told.mine().push_back({die, std::forward<Tell>(tell)});
  } else {
    tell();
  }
}

std::vector<int> Supernode::dies() const {
  std::vector<int> numbers;
  for (const auto& die : parts_->dies) {
    if (die) numbers.push_back(die->number());
  }
  return numbers;
}

npu::Die& Supernode::die(int number) const {
  if (!takes_part(number)) throw InputError(fmt::format("die {} does not take part in this run", number));
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

Time Supernode::lookahead() const {
  return to_plane_ + from_plane_;
}

// A packet passes a link and its chip before it meets anything there. So soon only where each die gives back
// the cells of its receive buffer as packets are delivered, which the sub-plane itself knows; where it does
// not, as where a chip of another model has its own idea of a pipeline, the link alone counts. Back to a die
// credits take the link alone.
void Supernode::set_lookahead(Time way_in) {
  const bool sockets =
      !options_.sockets.empty() || std::ranges::any_of(parts_->foreign, [this](ForeignPort* port) {
        return port->controller().endpoint() >= machine_.topology.dies();
      });
  const bool held = ub::UbController::holds_requests(machine_.ub.controller) ||
                    (sockets && ub::UbController::holds_requests(machine_.cpu.controller));
  looked_ahead_ = way_in;
  from_plane_ = endpoint_latency_;
  to_plane_ = held ? endpoint_latency_ : way_in;
  RunControl& control = parts_->control;
  control.window = std::min(lookahead(), options_.window);
  // A foreign port acts at SystemC's own time, when sub-planes have run to the end of their window.
  if (!parts_->foreign.empty()) control.window = std::min(control.window, to_plane_ + parts_->foreign_ahead);
  // Shorter windows keep the proportion.
  control.plane_phase = Time{control.window.ps * to_plane_.ps / lookahead().ps};
}

void Supernode::install(int plane_number, unsigned chip, ub::SwitchChip& model) {
  assert(now() == Time{} && unfinished_ == 0);
  use_one_thread();
  plane(plane_number).install(chip, &model);
  set_lookahead(endpoint_latency_);
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
  ++unfinished_;
  return die(die_number).launch(std::move(request), at);
}

const npu::LaunchRecord& Supernode::record(int die, std::uint32_t number) const {
  return records_.at(static_cast<std::size_t>(die)).at(number);
}

void Supernode::launch_finished(int die, const npu::LaunchRecord& record) {
  auto& records = records_[static_cast<std::size_t>(die)];
  if (records.size() <= record.launch) records.resize(record.launch + std::size_t{1});
  records[record.launch] = record;
  --unfinished_;
  if (probes_.launch_ended) tell(die, [this, die, record] { probes_.launch_ended(die, record); });
}

void Supernode::launch_started(int die, const npu::LaunchRecord& record) {
  if (probes_.launch_begun) tell(die, [this, die, record] { probes_.launch_begun(die, record); });
}

void Supernode::task_finished(int die, const npu::TaskRecord& record) {
  for (Driver* driver : parts_->drivers[static_cast<std::size_t>(die)]) driver->task_finished(die, record);
  if (probes_.task_ended) tell(die, [this, die, record] { probes_.task_ended(die, record); });
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

std::uint32_t Supernode::attach(int number, Driver& driver) {
  die(number);
  std::vector<Driver*>& drivers = parts_->drivers[static_cast<std::size_t>(number)];
  drivers.push_back(&driver);
  return kFirstDriverUnit + static_cast<std::uint32_t>(drivers.size() - 1);
}

void Supernode::follow_transactions() {
  use_one_thread();
  for (const auto& die : parts_->dies) {
    if (die) die->follow();
  }
}

void Supernode::keep_log(npu::TraceLog& log) {
  use_one_thread();
  for (const auto& die : parts_->dies) {
    if (die) die->keep_log(log);
  }
  log_idle();
}

void Supernode::kernel_output(int die, int core, std::string_view text) {
  tell(die, [this, die, core, printed = std::string(text)] {
    if (options_.output) {
      options_.output(die, core, printed);
    } else {
      fmt::print(stderr, "{}", printed);
    }
  });
}

void Supernode::advance(Time length) {
  const auto run = [](Time t) {
    try {
      sc_core::sc_start(sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(t.ps)),
                        sc_core::SC_RUN_TO_TIME);
    } catch (const sc_core::sc_report& report) {  // of a foreign model
      throw MachineError(fmt::format("SystemC: {}: {}", report.get_msg_type(), report.get_msg()));
    }
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

// Whole slices, all but the last without anything in them: where nothing happens for long, none of them needs
// a call of its own. Samples do.
Time Supernode::next_step(Time slice) const {
  if (options_.sample) return slice;
  const Time ahead{static_cast<std::int64_t>(sc_core::sc_time_to_pending_activity().value())};
  return std::max(slice, Time{ahead.ps / slice.ps * slice.ps});
}

// Whatever else goes on or is yet to come: a core that waits for what nobody under way will ever bring about.
// Looked for once in a while, and before a long stretch in which nothing happens.
void Supernode::look_for_stuck_cores(Time step) {
  const Time patience = parts_->control.patience;
  if (patience == Time::never()) return;
  const bool long_step = step > patience;
  if (!long_step && now() - looked_for_stuck_ <= patience) return;
  looked_for_stuck_ = now();
  for (const auto& die : parts_->dies) {
    if (!die) continue;
    if (const int core = die->stuck_core(long_step ? now() : now() - patience); core >= 0)
      report_hang(
          fmt::format("nothing under way can end what core {} of die {} waits for", core, die->number()));
  }
}

bool Supernode::run() {
  // In slices, so that progress can be told.
  constexpr Time kSlice{5'000'000};
  // A die's memory counts in 2^-16 ps, in 64 bits.
  constexpr Time kLongestRun{140'000'000'000'000};
  if (probes_.of_packets_or_transactions()) use_one_thread();
  if (!parts_->foreign.empty() && now() == Time{}) advance(Time{});  // processes of others begin
  while (unfinished_ > 0) {
    if (!sc_core::sc_pending_activity()) report_hang("nothing is left to happen");
    const Time step = next_step(kSlice);
    if (now() + step > kLongestRun)
      throw MachineError(fmt::format("simulated time would pass {:.0f} s", kLongestRun.us() / 1e6));
    look_for_stuck_cores(step);
    if (!this->step(step)) return false;
  }
  log_idle();
  return true;
}

}  // namespace cm384::supernode
