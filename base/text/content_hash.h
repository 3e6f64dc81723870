// Hashes that tell whether two contents are the same: XXH3 of 128 bits. Against accidents, not against
// malice.
#pragma once

#include <string>
#include <string_view>

namespace cm384 {

// "xxh3:" and 32 hexadecimal digits.
std::string hash_of(std::string_view bytes);
// Of a file's content; "none: not a file" of a pipe or terminal. Throws InputError with the system's reason.
std::string hash_of_file(const std::string& path);

}  // namespace cm384
