#include "base/text/installation.h"

#include <cstdlib>
#include <filesystem>

namespace cm384 {

std::optional<std::string> find_installed(std::string_view relative) {
  namespace fs = std::filesystem;
  constexpr int kLevels = 4;
  std::error_code error;
  if (const char* home = std::getenv("CM384_HOME"); home != nullptr && *home != '\0') {
    const fs::path path = fs::path(home) / relative;
    if (fs::exists(path, error)) return path.string();
    return std::nullopt;
  }
  fs::path folder = fs::read_symlink("/proc/self/exe", error);
  for (int level = 0; level < kLevels && !error && folder.has_relative_path(); ++level) {
    folder = folder.parent_path();
    if (fs::exists(folder / relative, error)) return (folder / relative).string();
    error.clear();
  }
  return std::nullopt;
}

}  // namespace cm384
