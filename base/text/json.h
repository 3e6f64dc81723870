// JSON as every file and every result of the project has it.
#pragma once

#include <nlohmann/json.hpp>

namespace cm384 {

// Keys keep the order in which they were set.
using Json = nlohmann::ordered_json;

}  // namespace cm384
