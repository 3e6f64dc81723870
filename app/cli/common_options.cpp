#include "app/cli/common_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/engine/peers.h"
#include "base/text/standard_error.h"
#include "system/machine/workers.h"
#include "ub_fabric/topology/fit.h"

namespace cm384::cli {

hw::Machine MachineOptions::load() const {
  static std::set<std::string> said;
  hw::Machine loaded = hw::load_machine(machine, set, set_where_used);
  ub::fit_to_topology(loaded);
  for (const std::string& note : loaded.notes) {
    if (said.insert(note).second) print_error("cm384: {}\n", note);
  }
  return loaded;
}

ThreadsChosen choose_threads(int asked) {
  if (asked != 0) return {.threads = static_cast<unsigned>(asked)};
  const unsigned processes = sim::peers().on_this_host();
  return {
      .threads = std::max(1u, supernode::host_cores() / processes),
      .why = processes > 1 ? "the cores of the host, shared by its processes" : "one per core of the host"};
}

}  // namespace cm384::cli
