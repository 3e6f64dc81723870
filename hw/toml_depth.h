// A guard before toml++: keys such as a.a.a.a.a of a hundred thousand parts make it take all stack.
#pragma once

#include <string>
#include <string_view>

namespace cm384::hw {

// Refuses a line with more than 64 dots. Throws InputError: file:line.
void refuse_deep_keys(std::string_view text, const std::string& file);

}  // namespace cm384::hw
