#include "workloads/frame/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/error.h"
#include "firmware/embedded.h"
#include "system/observe/observers.h"
#include "system/observe/profile.h"
#include "system/observe/statistics_file.h"
#include "workloads/frame/kernel_phases.h"

namespace cm384::studies {
namespace {

supernode::SupernodeOptions machine_options(const StudyContext& context, const SessionOptions& options,
                                            const std::function<double(Time)>& fraction,
                                            const std::unique_ptr<observe::MachineProfile>& profile) {
  supernode::SupernodeOptions made;
  made.dies = options.dies;
  made.sockets = options.sockets;
  made.rdma = options.rdma;
  made.die = options.die;
  // There from the start, to be looked at.
  if (options.check_memory || (context.observers != nullptr && !context.observers->request().lines.empty()))
    made.die.cube_cores = true;
  made.patience = options.patience;
  made.time_limit = context.time_limit;
  made.interrupted = &context.interrupted;
  made.threads = context.threads;
  made.threads_why = context.threads_why;
  made.what_if_threads = context.what_if_threads;
  made.output = options.output;
  made.progress = [&context, fraction, from = options.progress_from, to = options.progress_to](
                      Time simulated, std::uint64_t events) {
    const double done = fraction(simulated);
    context.progress.update(done < 0 ? done : from + (to - from) * done, simulated, events);
  };
  if (context.profile != nullptr) made.sample = [&profile](Time now) { profile->sample(now); };
  return made;
}

supernode::FaultRequest parse_fault_option(const std::string& text) {
  try {
    return supernode::parse_fault(text);
  } catch (const InputError& error) {
    throw InputError(fmt::format("--fault: {}", error.what()));
  }
}

void install_rtl_chip(supernode::RtlChips& chips, supernode::Supernode& machine, const std::string& text) {
  try {
    chips.install(machine, supernode::parse_rtl_chip(text));
  } catch (const InputError& error) {
    throw InputError(fmt::format("--rtl {}: {}", text, error.what()));
  }
}

}  // namespace

Session::Session(const StudyContext& context, const SessionOptions& options)
    : context_(context),
      what_(options.what),
      machine_(context.machine, machine_options(
                                    context, options, [this](Time t) { return pace_.at(t); }, profile_)),
      faults_(machine_),
      runtime_(machine_) {
  for (const std::string& text : context.fabric.fault) faults_.attach(parse_fault_option(text));
  faults_.apply_breaks();
  for (const std::string& text : context.fabric.rtl) install_rtl_chip(rtl_, machine_, text);
  if (context.profile != nullptr)
    profile_ = std::make_unique<observe::MachineProfile>(machine_, what_, options.dies, options.sockets);
  if (context.statistics != nullptr)
    context.statistics->check(machine_.plane(0).network(), context.machine.topology.planes());
  if (context.observers != nullptr) context.observers->attach(machine_, rtl_);
  if (options.check_memory) {
    memory_check_ = std::make_unique<observe::MemoryCheck>(
        machine_,
        [this](std::uint64_t address, std::uint64_t bytes) { return runtime_.is_allocated(address, bytes); });
  }
  if (context.gdb_port == 0) return;
  machine_.need_order("--gdb");
  debugger_ = std::make_unique<npu::GdbStub>(static_cast<std::uint16_t>(context.gdb_port));
  if (context.gdb_at_fault) {
    debugger_->wait_for_fault();
    for (const int number : options.dies) machine_.die(number).cluster().attach_debugger(*debugger_);
    return;
  }
  npu::Die& die = machine_.die(context.gdb_die < 0 ? options.dies.front() : context.gdb_die);
  const int most = context.machine.die.aiv + context.machine.die.aic;
  if (context.gdb_core >= most)
    throw InputError(fmt::format("--gdb-at: core {}; allowed: 0 to {}, vector cores before cube cores",
                                 context.gdb_core, most - 1));
  die.cluster().attach_debugger(*debugger_, context.gdb_core);
}

Session::~Session() {
  if (!counted_ && context_.observers != nullptr) context_.observers->finish();
}

double Session::Pace::at(Time simulated) const {
  if (took <= Time{}) return done;
  const double share = (simulated - begun).us() / took.us();
  // Somewhat longer than the part before is usual; more than twice as long, nothing is known.
  return share <= 2 ? done + step * std::min(0.99, share) : -1;
}

void Session::expect(double share, Time about) {
  pace_ = {pace_.done, share, machine_.earliest(), about};
}

void Session::done(double fraction) {
  const Time now = machine_.earliest();
  pace_ = {fraction, fraction - pace_.done, now, now - pace_.begun};
}

std::shared_ptr<npu::Program> Session::built_in(std::string_view name) {
  const auto image = firmware::kernel_image(name);
  if (image.empty()) throw InputError(fmt::format("no built-in kernel `{}`", name));
  name_phases(name, phases_of_kernel(name));
  return runtime_.load(npu::ElfImage::from_memory(image, fmt::format("{}.elf (built in)", name)));
}

void Session::name_phases(std::string_view kernel, std::span<const std::string_view> phases) {
  if (profile_) profile_->name_phases(kernel, phases);
  if (context_.observers != nullptr) context_.observers->name_phases(kernel, phases);
}

void Session::name_stage(std::uint64_t arguments, std::string stage) {
  if (profile_) profile_->name_stage(arguments, std::move(stage));
}

void Session::add_findings(StudyResult& into) const {
  if (memory_check_ == nullptr || memory_check_->findings().empty()) return;
  into.passed = false;
  for (const std::string& finding : memory_check_->findings()) into.notes.push_back(finding);
}

void Session::begin_counted() {
  if (profile_) profile_->begin_counted(machine_.earliest());
  if (context_.observers != nullptr) context_.observers->begin_counted();
}

void Session::count(SimulatorCounts& into) const {
  counted_ = true;
  const supernode::SupernodeCounts counts = machine_.counts();
  into.simulated += machine_.earliest();
  into.instructions += counts.instructions;
  into.packet_hops += counts.packet_hops;
  into.events += counts.events;
  into.memory_requests += counts.memory_requests;
  into.count_threads(machine_.thread_choice().threads(), machine_.thread_choice().why());
  into.count_what_if(machine_.thread_choice().what_if());
  into.damaged += faults_.strikes();
  into.lost += counts.lost_packets;
  into.resent += counts.resent_requests;
  into.rtl_cycles += rtl_.counters().cycles;
  into.rtl_packets += rtl_.counters().packets;
  if (profile_) context_.profile->add(profile_->to_json());
  if (context_.observers != nullptr) context_.observers->finish();
  if (context_.statistics == nullptr) return;
  context_.statistics->begin(what_, machine_.earliest());
  machine_.visit_statistics([this](const sim::Statistics& part) { context_.statistics->add(part); });
}

}  // namespace cm384::studies
