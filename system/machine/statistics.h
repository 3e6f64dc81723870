// The glossary of everything the machine counts.
#pragma once

#include <string>
#include <vector>

#include "hw/machine.h"

namespace cm384::supernode {

// The page docs/statistics.md: pattern, unit and sentence of every counter, in the order of declaration.
std::string statistics_page(const hw::Machine& machine);
// The first column of it, without marks.
std::vector<std::string> statistic_patterns(const hw::Machine& machine);

}  // namespace cm384::supernode
