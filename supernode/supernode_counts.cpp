// What a machine says of itself: sums of its counters, and who waits on what when it hangs.
#include <fmt/format.h>

#include "hw/error.h"
#include "supernode/supernode_parts.h"

namespace cm384::supernode {

void Supernode::report_hang(const std::string& why) const {
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
  for (const ForeignPort* port : parts_->foreign) add(port->report());
  for (const auto& accelerator : parts_->accelerators) {
    if (!accelerator) continue;
    const int number = accelerator->number();
    std::string report = accelerator->report();
    for (const Driver* driver : parts_->drivers[static_cast<std::size_t>(number)])
      report += driver->report(number);
    add(report);
  }
  if (count > kLines) lines += fmt::format("  ... and {} more cores\n", count - kLines);
  throw MachineError(fmt::format(
      "the simulated machine hangs at {:.3f} us: {}; {} launches and calls of the host have not finished\n{}",
      now().us(), why, unfinished_.load(), lines));
}

SupernodeCounts Supernode::counts() const {
  SupernodeCounts counts;
  for (const auto& accelerator : parts_->accelerators) {
    if (!accelerator) continue;
    counts.instructions += accelerator->instructions();
    counts.memory_requests += accelerator->memory_requests();
    counts.events += accelerator->queue().handled();
  }
  for (const auto& controller : parts_->bus->controllers()) {
    if (!controller) continue;
    counts.packet_hops += controller->packet_hops();
    counts.resent_requests += controller->counters().resent;
  }
  for (int p = 0; p < parts_->bus->planes(); ++p) counts.lost_packets += plane(p).lost();
  if (has_rdma()) {
    for (const int number : dies()) counts.packet_hops += rdma_interface(number).packet_hops();
  }
  for (const sim::Fabric* fabric : parts_->fabrics) {
    for (sim::FabricModule* module : fabric->modules()) {
      counts.packet_hops += module->packet_hops();
      counts.events += module->queue().handled();
    }
  }
  for (ForeignPort* port : parts_->foreign) {
    counts.packet_hops += port->controller().packet_hops();
    counts.events += port->queue().handled();
  }
  if (parts_->sockets) counts.events += parts_->sockets->queue().handled();
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
  for (ForeignPort* port : parts_->foreign) {
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
  for (const auto& declare : declarations()) {
    sim::Statistics part;
    declare(part);
    visit(part);
  }
}

// What is given from now on is given on a machine at rest.
void Supernode::log_idle() const {
  if (!machine_.accelerator.has_cores()) return;  // none keeps a log
  npu::DieTracer* const tracer = die(options_.dies.front()).tracer();
  if (tracer != nullptr) tracer->host(npu::HostPoint::Kind::idle, earliest(), earliest());
}

}  // namespace cm384::supernode
