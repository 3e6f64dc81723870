#include "npu_core/die/die.h"

#include <fmt/format.h>

#include "base/text/error.h"

namespace cm384::npu {

Die::Die(int number, const DieParameters& parameters, const DieOptions& options, sim::PayloadPool& payloads,
         DieListener& listener, Time& last_progress)
    : number_(number),
      parameters_(parameters),
      clock_(parameters.die.clock),
      sys_clock_(parameters.die.sys_count),
      queue_(static_cast<std::uint32_t>(number), Time{32768}),
      payloads_(payloads),
      listener_(listener),
      last_progress_(last_progress),
      transactions_(*this),
      memory_system_(*this, parameters.memory, parameters.die.aiv),
      devices_(*this),
      cluster_(*this, options.aiv) {
  if (options.cube_cores) cluster_.make_cube_cores();
}

Die::~Die() = default;

std::uint64_t Die::sys_count(Time at) const {
  return static_cast<std::uint64_t>(sys_clock_.tick_at_or_after(at + 1_ps) - 1);
}

std::uint32_t Die::launch(LaunchRequest request, Time at) {
  request.cores = cluster_.prepare(request);
  const std::uint32_t number = new_launch();
  devices_.launch(std::move(request), number, at);
  return number;
}

void Die::keep_log(TraceLog& log, bool requests) {
  transactions_.keep_log(log, requests);
  cluster_.trace(0);
  devices_.trace();
}

void Die::handle(const sim::Event& event) {
  if (event.unit >= static_cast<std::uint32_t>(cluster_.size())) return devices_.handle(event);
  cluster_.handle(event);
}

void Die::completed(const sim::Completion& completion, Time at) {
  if (completion.core >= cluster_.size()) return devices_.completed(completion);
  cluster_.completed(completion, at);
}

void Die::submit(const sim::Request& request) {
  if (port_ == nullptr)
    throw MachineError(
        fmt::format("die {}: access to {:#x}, but the die stands alone", number_, request.address));
  if (DieTracer* tracer = transactions_.tracer()) tracer->submitted(request);
  port_->submit(request);
}

void Die::transfer(const Transfer& transfer) {
  devices_.sdma().copy(transfer.source, transfer.destination, transfer.bytes, transfer.id);
}

std::uint64_t Die::memory_requests() const {
  const auto& memory = memory_system_.timing().statistics();
  return memory.reads + memory.writes + memory.atomics;
}

void Die::declare_statistics(sim::Statistics& to, const sim::StatisticPath& at) const {
  to.declare(at, "launches", "launches", "given to the die",
             [this] { return static_cast<std::uint64_t>(launches_); });
  to.declare(at, "events", "events", "of the simulator that the die handled",
             [this] { return queue_.handled(); });
  memory_system_.timing().declare_statistics(to, at);
  devices_.declare_statistics(to, at);
  cluster_.declare_statistics(to, at);
}

}  // namespace cm384::npu
