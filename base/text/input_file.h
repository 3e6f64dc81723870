// Files that a run reads. All of them are opened here, with a limit: a device that never ends, or a file of
// another kind, is refused in one line.
#pragma once

#include <cstddef>
#include <fstream>
#include <string>

namespace cm384 {

inline constexpr std::size_t kLargestText = std::size_t{64} << 20;  // of a file that people write
inline constexpr std::size_t kLargestInput = std::size_t{1} << 30;  // of one that a program writes

// Opens it for reading bytes, and tells RunFiles::current(). Throws InputError with the system's reason where
// it cannot be opened, and for folders and devices; a terminal or pipe is read as a file is.
std::ifstream open_input(const std::string& path);
// All of it. Throws InputError as open_input() does, and where it holds more than `most` bytes.
std::string read_input(const std::string& path, std::size_t most = kLargestInput);

}  // namespace cm384
