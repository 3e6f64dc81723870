#include "app/cli/common_options.h"

#include <fmt/format.h>

#include <set>

#include "base/text/standard_error.h"
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

}  // namespace cm384::cli
