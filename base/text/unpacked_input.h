// Files that a program wrote and somebody may have packed with gzip: read as if they were not.
#pragma once

#include <istream>
#include <memory>
#include <string>

namespace cm384 {

// Opens a file as open_input() does; one that begins as gzip does is unpacked while it is read. A damaged
// gzip file throws InputError from whatever reads the stream.
std::unique_ptr<std::istream> open_unpacked(const std::string& path);

// The name without ".gz" at its end.
std::string without_gz(const std::string& path);

}  // namespace cm384
