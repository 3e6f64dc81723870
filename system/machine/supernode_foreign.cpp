// Foreign models at a machine's edges, and a run's steps.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/error.h"
#include "base/text/standard_error.h"
#include "system/machine/supernode_parts.h"

namespace cm384::supernode {

ForeignSurroundings ForeignPorts::surroundings(int endpoint) {
  const hw::Machine& m = machine_.parameters();
  const hw::Topology& topology = m.topology;
  Supernode::Parts& parts = *machine_.parts_;
  if (topology.supernodes > 1) throw InputError("foreign models: not in a machine of several supernodes");
  if (endpoint < 0 || endpoint >= topology.endpoints())
    throw InputError(fmt::format("endpoint {} does not exist; allowed: 0 to {}, dies and then CPU sockets",
                                 endpoint, topology.endpoints() - 1));
  if (parts.bus->plane(0).attached(static_cast<ub::Endpoint>(endpoint))) {
    const bool die = endpoint < topology.dies();
    throw InputError(
        fmt::format("{} {} takes part in this run; a foreign model takes the place of one that does not",
                    die ? "die" : "CPU socket", die ? endpoint : endpoint - topology.dies()));
  }
  if (now() > Time{} || machine_.unfinished() > 0)
    throw InputError("a foreign model joins a machine before its first launch and before it runs");
  return {{topology, m.ub, m.cpu, m.package_link},
          parts.bus->packets(),
          parts.payloads,
          static_cast<std::uint32_t>(endpoint)};
}

void ForeignPorts::join(ForeignPort& port) {
  sim::peers().needs_one("foreign models");
  port.queue().set_workers(machine_.workers());
  machine_.parts_->bus->join(port.controller());
  ports_.push_back(&port);
  set_lookahead(Time{});
}

void ForeignPorts::set_lookahead(Time ahead) {
  ahead_ = ahead;
  machine_.set_lookahead();
}

Time ForeignPorts::link_lookahead() const {
  return machine_.from_plane_;
}

Time ForeignPorts::window() const {
  return machine_.parts_->runner.control().window;
}

void ForeignPorts::fail(std::exception_ptr failure) {
  RunControl& control = machine_.parts_->runner.control();
  if (!control.failure) control.failure = std::move(failure);
  sc_core::sc_pause();
}

void ForeignPorts::progressed(Time at) {
  RunControl& control = machine_.parts_->runner.control();
  control.last_progress = std::max(control.last_progress, at);
}

bool Supernode::step(Time length) {
  RunControl& control = parts_->runner.control();
  advance(length);
  for (const Parts::Printed& printed : parts_->drain_printed()) {
    if (options_.output) {
      options_.output(printed.die, printed.core, printed.text);
    } else {
      write_standard_error(printed.text);
    }
  }
  parts_->runner.rethrow_failure();
  if (control.hung)
    report_hang(fmt::format("nothing under way has made progress since {:.3f} us (patience {:.0f} us)",
                            control.last_progress.us(), control.patience.us()));
  if (!parts_->runner.may_go_on()) return false;
  for (const ForeignPort* port : foreign_.ports()) port->check(now());
  if (options_.progress) options_.progress(now(), parts_->own_counts(foreign_.ports()).events);
  return true;
}

bool Supernode::run_for(Time length) {
  constexpr Time kSlice{5'000'000};
  const Time end = now() + length;
  while (now() < end) {
    if (!step(std::min(kSlice, end - now()))) return false;
  }
  return true;
}

}  // namespace cm384::supernode
