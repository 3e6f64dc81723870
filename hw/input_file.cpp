#include "hw/input_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "hw/error.h"

namespace cm384 {

std::ifstream open_input(const std::string& path) {
  // The system opens a folder as well, and fails at the first byte.
  std::error_code none;
  if (std::filesystem::is_directory(path, none))
    throw InputError(fmt::format("{}: is a folder; allowed: a file", path));
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw InputError(fmt::format("{}: cannot be opened", path));
  return stream;
}

}  // namespace cm384
