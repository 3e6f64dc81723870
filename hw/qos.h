// Service classes of the bus: how its texts are read, and which parameters of it have an effect.
#pragma once

#include <string>

#include "hw/machine.h"

namespace cm384::hw {

// Throws InputError where lists have more entries than there are classes.
void check_qos(const Machine& machine);

// Why a parameter of section `ub.qos`, or one that names a service level, has no effect beside the others;
// empty: it has one, or is of another section.
std::string without_effect_of_qos(const Machine& machine, const std::string& key);

}  // namespace cm384::hw
