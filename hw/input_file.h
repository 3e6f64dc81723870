// Files that a run reads.
#pragma once

#include <fstream>
#include <string>

namespace cm384 {

// Opens it for reading bytes. Throws InputError where it cannot be opened, or is a folder.
std::ifstream open_input(const std::string& path);

}  // namespace cm384
