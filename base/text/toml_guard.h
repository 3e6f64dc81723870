// A guard before toml++ 3.3, which takes all stack for keys such as a.a.a.a.a of a hundred thousand parts,
// and whose behaviour is undefined for many characters outside ASCII where TOML allows none: outside strings
// and comments.
#pragma once

#include <string>
#include <string_view>

namespace cm384::hw {

// Refuses a line with more than 64 dots, and such characters. Throws InputError: file:line.
void guard_toml(std::string_view text, const std::string& file);

}  // namespace cm384::hw
