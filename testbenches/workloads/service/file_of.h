// A file of a test's own, gone behind it.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace cm384 {

class FileOf {
 public:
  explicit FileOf(const std::string& text, const std::string& ending = "txt")
      : path_(std::filesystem::temp_directory_path() /
              ("cm384-service-" + std::to_string(getpid()) + "." + ending)) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~FileOf() { std::filesystem::remove(path_); }
  FileOf(const FileOf&) = delete;
  FileOf& operator=(const FileOf&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// `../shared/traces/requests`, or where CM384_SHARED says; empty: neither is there.
inline std::filesystem::path recorded_requests(const char* source) {
  const char* named = std::getenv("CM384_SHARED");
  for (const std::filesystem::path& folder :
       {std::filesystem::path(named == nullptr ? "" : named), std::filesystem::path(source) / "../shared"}) {
    if (!folder.empty() && std::filesystem::exists(folder / "traces/requests"))
      return folder / "traces/requests";
  }
  return {};
}

}  // namespace cm384
