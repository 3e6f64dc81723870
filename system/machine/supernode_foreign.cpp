// Foreign models at a machine's edges, and a run's steps.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/error.h"
#include "base/text/standard_error.h"
#include "system/machine/supernode_parts.h"

namespace cm384::supernode {

ForeignSurroundings Supernode::foreign_surroundings(int endpoint) {
  const hw::Topology& topology = machine_.topology;
  if (topology.supernodes > 1) throw InputError("foreign models: not in a machine of several supernodes");
  if (endpoint < 0 || endpoint >= topology.endpoints())
    throw InputError(fmt::format("endpoint {} does not exist; allowed: 0 to {}, dies and then CPU sockets",
                                 endpoint, topology.endpoints() - 1));
  if (parts_->bus->plane(0).attached(static_cast<ub::Endpoint>(endpoint))) {
    const bool die = endpoint < topology.dies();
    throw InputError(
        fmt::format("{} {} takes part in this run; a foreign model takes the place of one that does not",
                    die ? "die" : "CPU socket", die ? endpoint : endpoint - topology.dies()));
  }
  if (now() > Time{} || unfinished_ > 0)
    throw InputError("a foreign model joins a machine before its first launch and before it runs");
  return {{topology, machine_.ub, machine_.cpu, machine_.package_link},
          parts_->bus->packets(),
          parts_->payloads,
          static_cast<std::uint32_t>(endpoint)};
}

void Supernode::join(ForeignPort& port) {
  sim::peers().needs_one("foreign models");
  port.queue().set_workers(workers());
  parts_->bus->join(port.controller());
  parts_->foreign.push_back(&port);
  set_foreign_lookahead(Time{});
}

void Supernode::set_foreign_lookahead(Time ahead) {
  parts_->foreign_ahead = ahead;
  set_lookahead();
}

Time Supernode::window() const {
  return parts_->runner.control().window;
}

void Supernode::leave(ForeignPort& port) {
  std::erase(parts_->foreign, &port);
}

void Supernode::fail(std::exception_ptr failure) {
  RunControl& control = parts_->runner.control();
  if (!control.failure) control.failure = std::move(failure);
  sc_core::sc_pause();
}

void Supernode::progressed(Time at) {
  RunControl& control = parts_->runner.control();
  control.last_progress = std::max(control.last_progress, at);
}

void Supernode::look_at_foreign() {
  for (ForeignPort* port : parts_->foreign) port->look();
}

bool Supernode::step(Time length) {
  RunControl& control = parts_->runner.control();
  advance(length);
  for (const Parts::Printed& printed : parts_->take_printed()) {
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
  for (const ForeignPort* port : parts_->foreign) port->check(now());
  if (options_.progress) options_.progress(now(), parts_->own_counts().events);
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
