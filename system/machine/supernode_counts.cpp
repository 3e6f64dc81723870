// What a machine says of itself: sums of its counters, and who waits on what when it hangs.
#include <fmt/format.h>

#include "base/engine/hang.h"
#include "system/machine/supernode_parts.h"

namespace cm384::supernode {

std::string Supernode::report_unfinished() const {
  constexpr std::size_t kLines = 32;
  std::string lines;
  std::size_t count = 0;
  const auto add = [&](const std::string& report) {
    for (std::size_t at = 0; at < report.size();) {
      const std::size_t end = report.find('\n', at);
      if (++count <= kLines) lines += "  " + report.substr(at, end - at) + "\n";
      at = end + 1;
    }
  };
  for (const ForeignPort* port : foreign_.ports()) add(port->report());
  for (const auto& accelerator : parts_->accelerators) {
    if (!accelerator) continue;
    const int number = accelerator->number();
    std::string report = accelerator->report();
    for (const Driver* driver : parts_->drivers[static_cast<std::size_t>(number)])
      report += driver->report(number);
    add(of_owner(parts_->owners.of_die(number), report));
  }
  if (count > kLines) lines += fmt::format("  ... and {} more lines\n", count - kLines);
  return fmt::format("{} launches and calls of the host have not finished\n{}",
                     parts_->runner.peers() ? parts_->runner.peers()->unfinished() : unfinished_.load(),
                     lines);
}

void Supernode::report_hang(const std::string& why) const {
  throw sim::MachineHang(
      fmt::format("the simulated machine hangs at {:.3f} us: {}; {}", now().us(), why, report_unfinished()));
}

// Looked at between slices, so that a limit that is not reached changes no time.
void Supernode::check_time_limit(Time slice, Time step) const {
  const Time limit = options_.time_limit;
  const bool passed_idle = step > slice && limit - now() < step;
  if (now() < limit && !passed_idle) return;
  throw sim::TimeLimitReached(fmt::format(
      "the simulated machine has not ended at {:.3f} us, and may run for {:.3f} us (--time-limit); {}",
      now().us(), limit.us(), report_unfinished()));
}

// Over all processes: all call it.
SupernodeCounts Supernode::counts() const {
  SupernodeCounts counts = parts_->own_counts(foreign_.ports());
  for (std::uint64_t* count : {&counts.instructions, &counts.packet_hops, &counts.memory_requests,
                               &counts.events, &counts.lost_packets, &counts.resent_requests})
    *count = sim::peers().sum(*count);
  return counts;
}

SupernodeCounts Supernode::Parts::own_counts(const std::vector<ForeignPort*>& foreign) const {
  SupernodeCounts counts;
  for (const auto& accelerator : accelerators) {
    if (!accelerator || !owners.has_die(accelerator->number())) continue;
    counts.instructions += accelerator->instructions();
    counts.memory_requests += accelerator->memory_requests();
    counts.events += accelerator->queue().handled();
  }
  for (const auto& controller : bus->controllers()) {
    if (!controller) continue;
    counts.packet_hops += controller->packet_hops();
    counts.resent_requests += controller->counters().resent;
  }
  for (int p = 0; p < bus->planes(); ++p)
    counts.lost_packets += bus->plane(static_cast<std::size_t>(p)).lost();
  for (std::size_t n = 0; rdma && n < accelerators.size(); ++n) {
    if (accelerators[n]) counts.packet_hops += rdma->interface(n)->packet_hops();
  }
  for (const sim::Fabric* fabric : fabrics) {
    for (std::size_t n = 0; n < fabric->modules().size(); ++n) {
      if (!owners.is_here(owner_of_module(*fabric, n))) continue;
      counts.packet_hops += fabric->modules()[n]->packet_hops();
      counts.events += fabric->modules()[n]->queue().handled();
    }
  }
  for (ForeignPort* port : foreign) {
    counts.packet_hops += port->controller().packet_hops();
    counts.events += port->queue().handled();
  }
  if (sockets && owners.is_here(owners.of_sockets())) counts.events += sockets->queue().handled();
  return counts;
}

std::vector<std::function<void(sim::Statistics&)>> Supernode::declarations() const {
  std::vector<std::function<void(sim::Statistics&)>> made;
  const sim::StatisticPath root;
  for (std::size_t n = 0; n < parts_->accelerators.size(); ++n) {
    if (!parts_->accelerators[n]) continue;
    made.push_back([this, n, at = root.part("die", n)](sim::Statistics& to) {
      parts_->accelerators[n]->declare_statistics(to, at);
      parts_->bus->controller(n)->declare_statistics(to, at);
      if (parts_->rdma) parts_->rdma->interface(n)->declare_statistics(to, at);
    });
  }
  if (parts_->sockets)
    made.push_back([this](sim::Statistics& to) { parts_->sockets->declare_statistics(to); });
  for (ForeignPort* port : foreign_.ports()) {
    const std::uint64_t endpoint = port->controller().endpoint();
    const auto dies = static_cast<std::uint64_t>(machine_.topology.dies());
    made.push_back([port, at = endpoint < dies ? root.part("die", endpoint)
                                               : root.part("socket", endpoint - dies)](sim::Statistics& to) {
      port->controller().declare_statistics(to, at);
    });
  }
  for (const sim::Fabric* fabric : parts_->fabrics) {
    for (std::size_t n = 0; n < fabric->modules().size(); ++n)
      made.push_back([fabric, n](sim::Statistics& to) { fabric->declare_statistics(n, to); });
  }
  return made;
}

void Supernode::declare_statistics(sim::Statistics& to) const {
  for (const auto& declare : declarations()) declare(to);
}

void Supernode::visit_statistics(const std::function<void(const sim::Statistics&)>& visit) const {
  const auto parts = declarations();
  const std::vector<int> numbers = dies();
  std::vector<unsigned> owners;  // of fabrics' modules, which come last
  for (const sim::Fabric* fabric : parts_->fabrics) {
    for (std::size_t n = 0; n < fabric->modules().size(); ++n)
      owners.push_back(parts_->owner_of_module(*fabric, n));
  }
  const std::size_t others = parts.size() - owners.size();
  for (std::size_t n = 0; n < parts.size(); ++n) {
    sim::Statistics part;
    parts[n](part);
    if (!parts_->runner.peers()) {
      visit(part);
    } else if (n < numbers.size()) {
      visit_values(parts_->owners.of_die(numbers[n]), part, visit);
    } else {
      visit_values(n < others ? parts_->owners.of_sockets() : owners[n - others], part, visit);
    }
  }
}

// What is given from now on is given on a machine at rest.
void Supernode::log_idle() const {
  if (!machine_.accelerator.has_cores()) return;  // none keeps a log
  npu::DieTracer* const tracer = die(options_.dies.front()).transactions().tracer();
  if (tracer != nullptr) tracer->host(npu::HostPoint::Kind::idle, earliest(), earliest());
}

}  // namespace cm384::supernode
