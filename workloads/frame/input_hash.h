// What tells whether an input of a run is the same as another time.
#pragma once

#include <optional>
#include <string>

namespace cm384::studies {

// Of all bytes of a file: "fnv1a64:0123456789abcdef". FNV-1a: tells whether it is the same file, nothing
// more.
std::string hash_of_file(const std::string& path);

// Of what a 64-bit ELF loads and where it begins to run: names of sections, symbols and lines, which a
// comment in the source changes, have no part in it. Nothing for other files.
std::optional<std::string> hash_of_code(const std::string& path);

}  // namespace cm384::studies
