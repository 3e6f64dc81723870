// Which parameters of a topology have an effect with which kind of it.
#pragma once

#include <string_view>

namespace cm384::hw {

// Of a parameter of the machine, by its key; true for what is not of the topology.
bool counts_with_topology(std::string_view key, std::string_view kind);

}  // namespace cm384::hw
