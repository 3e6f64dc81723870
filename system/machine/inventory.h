// Counts the parts of a machine from its description and the tables of its topologies, without building it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/machine.h"

namespace cm384::supernode {

struct Counted {
  std::string name;  // "switch_chips": in formulas of costs `count.switch_chips`
  std::int64_t count = 0;
  std::string what;  // a sentence
};

// Of all supernodes. Links count once for their two directions. Names are the same for every machine, but for
// `chips_KIND`, one for each kind of switch chip in its topology. Throws InputError where the topology's
// parameters do not fit together.
std::vector<Counted> inventory(const hw::Machine& machine);

// One of them by its name, with or without "count." before it. Throws InputError with a suggestion.
std::int64_t counted(const hw::Machine& machine, std::string_view name);
inline constexpr std::string_view kCountPrefix = "count.";

}  // namespace cm384::supernode
