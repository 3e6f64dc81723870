// Suggestions for mistyped names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cm384::hw {

// The name nearest to `typed` by edit distance (insert, delete, replace, swap of neighbours); the first of
// equals. Empty where none is near enough to be what was meant.
std::string nearest_name(std::string_view typed, std::span<const std::string> names);

// "; did you mean X?" or nothing.
std::string suggestion(std::string_view typed, std::span<const std::string> names);

}  // namespace cm384::hw
